"""The record of a watch: what is written can be read at once, and the oldest entries give way."""

import errno

import pytest

from tracekit.errors.reading import BadWatchError
from tracekit.watched import Facts, Minute, Record, Step
from tracekit.watched.record import STEPS

FACTS = Facts(process=7, began_ns=1_780_000_000_000_000_000, script="train.py")


def a_step(number: int) -> Step:
    return Step(number, number * 1000, 900, 950, 10, 1, 0, 0, 0, 0, 0)


def test_what_is_written_is_read_while_it_is_being_written(tmp_path):
    path = tmp_path / f"{FACTS.stem}.watch"
    written = Record.create(path, FACTS)
    written.steps.append(a_step(0))
    read = Record.open(path)
    assert read.facts == FACTS
    assert read.steps.entries() == [a_step(0)]
    written.minutes.append(Minute(0, 0, 1, 900, 900, 900, 0, 0, 10, 0))
    assert [minute.most_ns for minute in read.minutes.entries()] == [900]
    assert read.slow.entries() == []


def test_the_oldest_steps_give_way(tmp_path):
    record = Record.create(tmp_path / "a.watch", FACTS)
    for number in range(STEPS + 5):
        record.steps.append(a_step(number))
    left = [step.number for step in record.steps.entries()]
    assert left == list(range(6, STEPS + 5))  # one fewer than there is room for: it may be half overwritten


def test_columns_are_those_of_the_entries_also_where_the_ring_comes_round(tmp_path):
    record = Record.create(tmp_path / "a.watch", FACTS)
    for number in range(STEPS + 40):
        if number % 64 == 0:
            record.steps.make_ready(64)  # what is prepared stays as it is
        record.steps.append(a_step(number))
    for first, end in ((STEPS - 30, STEPS + 40), (STEPS, STEPS), (STEPS + 39, STEPS + 40), (50, STEPS + 1)):
        expected = [list(range(first, end)), [number * 1000 for number in range(first, end)], [900] * (end - first)]
        assert record.steps.columns(first, end, [0, 1, 2]) == expected
    record.close()  # nothing holds on to the memory


@pytest.mark.parametrize("has_links", [True, False])
def test_a_record_is_never_replaced(tmp_path, monkeypatch, has_links):
    def refused(*_):
        raise OSError(errno.EPERM, "Operation not permitted")

    if not has_links:
        monkeypatch.setattr("os.link", refused)
    Record.create(tmp_path / "a.watch", FACTS)
    assert [path.name for path in tmp_path.iterdir()] == ["a.watch"]
    with pytest.raises(FileExistsError):
        Record.create(tmp_path / "a.watch", FACTS)


@pytest.mark.parametrize("content", [b"", b"{}", b"tracekit.watch/1".ljust(24, b"\n") + b" " * 100])
def test_what_is_no_record_is_named(tmp_path, content):
    (tmp_path / "a.watch").write_bytes(content)
    with pytest.raises(BadWatchError, match=r"a\.watch is not a record"):
        Record.open(tmp_path / "a.watch")


def test_an_empty_file_is_said_to_be_empty(tmp_path):
    (tmp_path / "a.watch").write_bytes(b"")
    with pytest.raises(BadWatchError, match=r"\(it is empty\)"):
        Record.open(tmp_path / "a.watch")
