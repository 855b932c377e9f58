"""The costs of owners are cached with the trace, as long as nothing that they depend on changes."""

import pytest

from tests.lines.recorded import recorded, recorded_run
from tracekit.lines import means as costs
from tracekit.profile import open_subject
from tracekit.report import report
from tracekit.trace.storing import cache
from tracekit.vocabulary.lines_file import lines_path


@pytest.fixture
def detail(tmp_path, monkeypatch):
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("TRACEKIT_NO_CACHE", raising=False)
    monkeypatch.setattr(cache, "WORTH_BYTES", 0)
    monkeypatch.setattr(cache, "_SMALLEST", 0)
    return recorded(tmp_path / "trace.json")


def means(run):
    return open_subject([run]).profiles[0].owner_means


def test_no_name_is_worked_out_for_what_is_not_kept(detail, monkeypatch):
    run = recorded_run(detail)
    monkeypatch.setattr(cache, "code_version", lambda *_: pytest.fail("it takes 20 ms"))
    monkeypatch.setenv("TRACEKIT_NO_CACHE", "1")
    subject = open_subject([run])
    assert report(subject).sections
    assert subject.profiles[0].owner_means.means


def test_a_second_report_asks_no_recording(detail, monkeypatch):
    run = recorded_run(detail)
    first = means(run)
    assert first.means
    monkeypatch.setattr(costs, "owner_means", lambda *_: pytest.fail("it was worked out again"))
    assert means(run) == first


def test_a_steady_trace_too_small_for_an_entry_shares_that_of_its_recording(detail, monkeypatch):
    run = recorded_run(detail)
    monkeypatch.setattr(cache, "WORTH_BYTES", detail.stat().st_size)
    assert (detail.parent / "steady.json").stat().st_size < cache.WORTH_BYTES
    test_a_second_report_asks_no_recording(detail, monkeypatch)
    assert [entry.facts["path"] for entry in cache.entries()] == [str(detail)]
    monkeypatch.setenv("TRACEKIT_NO_CACHE", "1")
    with pytest.raises(pytest.fail.Exception):
        means(run)


def test_other_lines_are_other_costs(detail):
    run = recorded_run(detail)
    first = means(run)
    lines_path(detail).unlink()
    assert means(run) != first
