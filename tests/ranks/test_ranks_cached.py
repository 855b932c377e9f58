"""The data for comparing ranks are cached with each trace: a second report reads no events."""

import json

import pytest

from tests.ranks.jobs import job, job_of_groups, merged, profile_of
from tracekit.faces.shared.document import as_document
from tracekit.profile import open_subject
from tracekit.ranks import columns, rank_columns
from tracekit.ranks.readers import read_one
from tracekit.report import report
from tracekit.trace import sources
from tracekit.trace.storing import cache


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A cache that accepts traces of any size."""
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("TRACEKIT_NO_CACHE", raising=False)
    monkeypatch.setattr(cache, "WORTH_BYTES", 0)
    monkeypatch.setattr(cache, "_SMALLEST", 0)


@pytest.fixture
def traces(tmp_path):
    (tmp_path / "ranks").mkdir()
    return job(tmp_path / "ranks", late=2, skew_us=7)


@pytest.fixture
def read_nothing(monkeypatch):
    """Fail from now on if a file or its columns are read."""

    def refuse():
        for owner, name in ((sources, "source_of"), (cache.Entry, "columns")):
            monkeypatch.setattr(owner, name, lambda *_, **__: pytest.fail("it was read again"))

    return refuse


def document(path):
    return json.dumps(as_document(report(open_subject([path]))), sort_keys=True)


def test_a_second_report_of_a_folder_reads_nothing(traces, read_nothing):
    first = document(traces)
    assert "Rank 2 delays the others" in first
    read_nothing()
    assert document(traces) == first


def test_nor_does_that_of_a_file_that_merges_ranks(tmp_path, read_nothing):
    (tmp_path / "single").mkdir()
    path = merged(tmp_path, sorted(job(tmp_path / "single", late=2).iterdir()), moved=True)
    first = document(path)
    assert "Rank 2 delays the others" in first
    read_nothing()
    assert document(path) == first


def test_nor_does_that_of_a_single_rank(tmp_path, read_nothing):
    (tmp_path / "groups").mkdir()
    path = job_of_groups(tmp_path / "groups") / "rank2.json"
    first = document(path)
    assert "This rank spends" in first
    read_nothing()
    assert document(path) == first


def test_a_reader_of_ranks_returns_what_it_returned(traces, read_nothing):
    paths = sorted(traces.iterdir())
    first = [read_one(path) for path in paths]
    read_nothing()
    for once, again in zip(first, map(read_one, paths), strict=True):
        assert once.calls.equals(again.calls, check_metadata=True)
        assert once.steps.equals(again.steps, check_metadata=True)
        assert (once.rank, once.means, once.groups) == (again.rank, again.means, again.groups)


def test_another_trace_or_another_rank_is_asked_anew(traces, monkeypatch):
    ranks = profile_of(traces).per_rank
    known = {rank: rank_columns(each, rank) for rank, each in ranks.items()}
    asked = []
    monkeypatch.setattr(columns, "calls_of", lambda *given, ask=columns.calls_of: asked.append(given[1]) or ask(*given))
    assert rank_columns(ranks[1], 1).calls.equals(known[1].calls)
    assert asked == []
    rank_columns(ranks[1], 5)
    assert asked == [5]
    job(traces, ranks=1, late=0, world=4)
    assert not rank_columns(profile_of(traces).per_rank[0], 0).calls.equals(known[0].calls)
    assert asked == [5, 0]


@pytest.mark.parametrize("harm", ["cut", "foreign"])
def test_a_damaged_answer_is_worked_out_again(traces, harm):
    first = document(traces)
    for path in cache.home().glob("traces/*/calls-*"):
        content = path.read_bytes()
        path.write_bytes(content[: len(content) // 2] if harm == "cut" else b"no table")
    assert document(traces) == first
