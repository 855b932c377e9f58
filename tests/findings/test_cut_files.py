"""The verdict on a truncated file does not say that nothing was recorded."""

import json

from small import kernel, launch, op, training, write

from tracekit.findings import diagnose
from tracekit.profile import open_subject


def test_a_cut_file_is_not_an_empty_one(tmp_path):
    path = training(tmp_path / "t.json")
    content = json.loads(path.read_text())
    content["traceEvents"].reverse()  # out of order: anything may be missing
    path.write_text(json.dumps(content)[:-200])
    (profile,) = open_subject([path]).profiles
    assert diagnose(profile).verdict.sentence == "The file was cut short: what bounds a step is unknown."


def test_a_file_that_is_cut_before_its_gpu_rows_does_not_say_that_none_were_recorded(tmp_path):
    events = [op("aten::mm", 10 * k, 10 * k + 8) for k in range(40)]
    events += [launch(10 * k + 2, 10 * k + 4, k + 1) for k in range(40)]
    path = write(tmp_path / "t.json", *events, kernel("gemm", 500, 600, 1))
    path.write_text(path.read_text().partition(', {"ph": "X", "cat": "kernel"')[0])
    (profile,) = open_subject([path]).profiles
    assert "may be in the part of the file that is missing" in profile.trace.health[0].message
    (finding,) = diagnose(profile).findings
    assert finding.headline == "The GPU side is missing: the file was cut"
    assert finding.do.startswith("Get the whole file.")
