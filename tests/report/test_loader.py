"""The section about the workers of a data loader, and what it says of each rank."""

import pytest

from tests.loading.made import taking_turns
from tracekit.profile import open_subject
from tracekit.report import report


def slow_third(worker, _):
    return (45.0 if worker == 2 else 6.0, 1000)


def section(path):
    sections = report(open_subject([path])).sections
    return next((section for section in sections if section.id == "loader_workers"), None)


def test_a_row_for_each_worker(tmp_path):
    sentences, table = section(taking_turns(slow_third, 8.0, 60).trace(tmp_path)).blocks
    rows = table.rows.to_pylist()
    assert [row["worker"] for row in rows] == [0, 1, 2]
    assert [row["making_ns"] for row in rows] == pytest.approx([6e6, 6e6, 45e6])
    assert all(row["fetching_ns"] + row["collating_ns"] == pytest.approx(row["making_ns"]) for row in rows)
    assert max(rows, key=lambda row: row["waited_ns"])["worker"] == 2
    assert rows[2]["where"] == "data.py:88"
    assert rows[2]["at_line"] == pytest.approx(0.9, abs=0.05)
    assert sentences.lines[0].startswith("The loop waited 336 ms for 48 batches.")
    assert "% fetching its samples" in sentences.lines[0]


def test_nothing_is_said_where_nothing_was_recorded(tmp_path):
    made = taking_turns(slow_third, 8.0, 60)
    made.write = lambda folder: None
    assert section(made.trace(tmp_path)) is None
