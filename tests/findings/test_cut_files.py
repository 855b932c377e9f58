"""The verdict on a truncated file does not say that nothing was recorded."""

import json

from small import training

from tracekit.findings import diagnose
from tracekit.profile import open_subject


def test_a_cut_file_is_not_an_empty_one(tmp_path):
    path = training(tmp_path / "t.json")
    content = json.loads(path.read_text())
    content["traceEvents"].reverse()  # out of order: anything may be missing
    path.write_text(json.dumps(content)[:-200])
    (profile,) = open_subject([path]).profiles
    assert diagnose(profile).verdict.sentence == "The file was cut short: what bounds a step is unknown."
