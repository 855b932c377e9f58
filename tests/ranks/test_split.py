"""A file that merges ranks is taken apart into what the single files hold, event by event."""

import json

import numpy as np
import pytest

from tests.ranks.jobs import compared, job, merged
from tracekit.engine.attribution import attribute
from tracekit.faces.shared.document import as_document
from tracekit.profile import open_subject
from tracekit.report import report as make_report
from tracekit.trace import Trace
from tracekit.trace.split import split


def same(one, other):
    return np.array_equal(one.wall, other.wall) and np.array_equal(one.host, other.host)


def test_planted_ranks_come_out_as_they_went_in(tmp_path):
    (tmp_path / "single").mkdir()
    paths = sorted(job(tmp_path / "single", late=2).iterdir())
    path = merged(tmp_path, paths, moved=True)
    parts = split(Trace.load(path))
    assert [(part.rank, part.trace.process) for part in parts] == [(rank, str(1000 + rank)) for rank in range(4)]
    for part, alone in zip(parts, paths, strict=True):
        assert same(attribute(part.trace), attribute(Trace.load(alone)))
    (profile,) = open_subject([path]).profiles
    together, apart = compared(profile), compared(open_subject(paths).profiles[0])
    assert together.table.drop(["ranks"]).equals(apart.table.drop(["ranks"]))  # no trace says how many ranks there are
    (variant,) = as_document(make_report(open_subject([path])))["variants"]
    assert [each["rank"] for each in variant["ranks"]] == [0, 1, 2, 3]
    assert any(entry["code"] == "merged_file" for entry in variant["health"])


def test_ranks_on_a_device_of_one_number_cannot_be_told_apart(tmp_path):
    (tmp_path / "single").mkdir()
    paths = sorted(job(tmp_path / "single", ranks=2).iterdir())
    path = merged(tmp_path, paths, moved=True)
    content = json.loads(path.read_text())
    for each in content["traceEvents"]:
        each["pid"] = 0 if each["pid"] == 1 else each["pid"]
    path.write_text(json.dumps(content))
    assert split(Trace.load(path)) == []
    (profile,) = open_subject([path]).profiles
    assert "2 processes launch work in this file" in profile.attribution.cannot_answer["wall"]


def test_a_file_of_one_process_is_no_merge(tmp_path):
    (path,) = job(tmp_path, ranks=1).iterdir()
    assert split(Trace.load(path)) == []
    assert not open_subject([path], ranks=False).profiles[0].per_rank


@pytest.mark.traces
def test_four_real_ranks_in_one_file_are_those_of_four_files(tmp_path, shared_traces):
    paths = [shared_traces / f"param_dlrm_v100_rank{rank}.json.gz" for rank in range(4)]
    parts = split(Trace.load(merged(tmp_path, paths)))
    assert [part.rank for part in parts] == [0, 1, 2, 3]
    for part, path in zip(parts, paths, strict=True):
        alone = Trace.load(path)
        assert same(attribute(part.trace), attribute(alone))
        assert len(part.trace.communications) == len(alone.communications)
