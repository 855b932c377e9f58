"""What is read of a watch's folder: the newest job, with its ranks and traces; what no watch writes is left out."""

import random
import struct
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.watched.written import BEGAN_NS, FACTS, MS, steps, write
from tracekit.errors.reading import BadWatchError
from tracekit.watched import Cause, Flag, Record
from tracekit.watched.course import course
from tracekit.watched.reading import is_watch, read_watch
from tracekit.watched.record import LAYOUT, STEPS, Step

LATE = {"step_ns": 40 * MS, "waited_ns": 41 * MS, "worker": 2}
STEP_BYTES = 8 * len(Step._fields)


def test_each_slow_step_has_its_cause_and_how_much_it_explains(tmp_path):
    compiled = {"step_ns": 90 * MS, "compile_ns": 80 * MS, "compiles": 1}
    write(tmp_path, steps(1_000, {300: LATE, 700: compiled}))
    late, compilation = read_watch(tmp_path).slow
    assert (late.step.number, late.explanation.cause) == (300, Cause.BATCH)
    assert 39 * MS <= late.explanation.explained_ns <= late.explanation.beyond_ns
    assert late.sentence == "It waited 41.0 ms for its batch, made by worker 2 (usually 500 µs)."
    assert compilation.explanation.cause is Cause.COMPILATION
    assert compilation.explanation.explained_ns == 80 * MS


def test_an_unknown_cause_stays_unknown_when_something_else_has_become_usual(tmp_path):
    waiting = {number: {"waited_ns": 9 * MS} for number in range(1_000)}
    write(tmp_path, steps(12_000, waiting | {300: {"waited_ns": 9 * MS, "step_ns": 9 * MS, "processor_ns": -1}}))
    (slow,) = read_watch(tmp_path).slow
    assert slow.step.number == 300
    assert slow.explanation.cause is Cause.UNKNOWN


def test_a_slow_step_outlives_the_ring_of_steps(tmp_path):
    write(tmp_path, steps(STEPS + 500, {300: LATE}))
    watched = read_watch(tmp_path)
    assert watched.shown.steps[0].number > 300
    (slow,) = watched.slow
    assert (slow.step.number, slow.explanation.cause) == (300, Cause.BATCH)
    assert watched.number_of_steps == STEPS + 500


def test_the_newest_job_is_shown(tmp_path):
    write(tmp_path, steps(100, {}))
    newest = write(tmp_path, steps(50, {}), replace(FACTS, process=8, began_ns=BEGAN_NS + 10**12, job="two"))
    watched = read_watch(tmp_path)
    assert watched.shown.path == newest
    assert watched.earlier == 1
    assert watched.others == []


def test_a_record_that_is_named_is_shown(tmp_path):
    named = write(tmp_path, steps(100, {}))
    write(tmp_path, steps(50, {}), replace(FACTS, process=8, began_ns=BEGAN_NS + 10**12, job="two"))
    assert is_watch(named)
    assert read_watch(named).shown.path == named


def test_the_rank_that_came_late_is_named(tmp_path):
    waits = {"step_ns": 40 * MS}  # off the processor, as far as it knows itself
    write(tmp_path, steps(500, {300: waits, 400: LATE}), replace(FACTS, ranks=2))
    write(tmp_path, steps(500, {300: LATE, 400: waits}, seed=2), replace(FACTS, ranks=2, rank=1, process=8))
    watched = read_watch(tmp_path)
    assert [other.facts.rank for other in watched.others] == [1]
    waited, came_late = watched.slow
    assert (waited.explanation.cause, waited.late_rank) == (Cause.RANK, 1)
    assert waited.sentence.startswith("Rank 1 came late. It waited 41.0 ms for its batch")
    assert (came_late.explanation.cause, came_late.late_rank) == (Cause.BATCH, None)


@pytest.mark.parametrize(
    ("device", "late"), [("cpu", {"processor_ns": 50 * MS}), ("cuda:0", {"processor_ns": 10 * MS})]
)
def test_a_rank_that_works_or_sleeps_while_this_one_waits_came_late(tmp_path, device, late):
    waits = {"step_ns": 40 * MS, "processor_ns": 60 * MS - late["processor_ns"]}
    facts = replace(FACTS, ranks=2, device=device)
    write(tmp_path, steps(500, {300: waits}), facts)
    write(tmp_path, steps(500, {300: {"step_ns": 40 * MS, **late}}, seed=2), replace(facts, rank=1, process=8))
    (slow,) = read_watch(tmp_path).slow
    assert (slow.explanation.cause, slow.late_rank) == (Cause.RANK, 1)


def test_nobody_knows_which_of_two_ranks_was_late_that_both_slept(tmp_path):
    slept = {300: {"step_ns": 40 * MS}}
    write(tmp_path, steps(500, slept), replace(FACTS, ranks=2))
    write(tmp_path, steps(500, slept, seed=2), replace(FACTS, ranks=2, rank=1, process=8))
    (slow,) = read_watch(tmp_path).slow
    assert (slow.explanation.cause, slow.late_rank) == (Cause.OFF_PROCESSOR, None)


def test_ranks_of_another_job_are_not_joined(tmp_path):
    write(tmp_path, steps(100, {}), replace(FACTS, ranks=2))
    write(tmp_path, steps(100, {}), replace(FACTS, ranks=2, rank=1, process=8, job="two"))
    assert read_watch(tmp_path).others == []


def test_a_trend_says_what_grew(tmp_path):
    growing = [
        step._replace(step_ns=step.step_ns + ns, host_ns=step.step_ns + ns, processor_ns=step.processor_ns + ns)
        for step in steps(2_000, {})
        for ns in [step.number * 5_000]
    ]
    write(tmp_path, growing)
    (trend,) = read_watch(tmp_path).slow
    assert trend.explanation.cause is Cause.TREND
    assert trend.sentence.startswith("steps had become longer, from 10.3 ms to ")
    assert "Its thread computed for" in trend.sentence


def test_of_a_trend_whose_steps_are_gone_no_durations_are_told(tmp_path):
    growing = [
        step._replace(step_ns=step.step_ns + ns, host_ns=step.step_ns + ns, processor_ns=step.processor_ns + ns)
        for step in steps(14_000, {})
        for ns in [step.number * 5_000]
    ]
    write(tmp_path, growing)
    trend, *_ = read_watch(tmp_path).slow
    assert trend.step.number < 4_000
    assert trend.sentence == "steps had become longer."


def test_traces_of_the_job_are_listed_by_the_step_before_them(tmp_path):
    write(tmp_path, steps(500, {300: LATE}))
    for name in (f"{FACTS.stem}-step300-slow-batch", f"{FACTS.stem}-step90-signal", "other-step1-signal"):
        (tmp_path / f"{name}.pt.trace.json.gz").write_bytes(b"")
    watched = read_watch(tmp_path)
    assert [(trace.after, trace.reason) for trace in watched.traces] == [(90, "signal"), (300, "slow-batch")]
    assert watched.trace_after(300) is watched.traces[1]
    assert watched.trace_after(301) is None


def test_no_stretch_hides_its_longest_step(tmp_path):
    slow = dict.fromkeys((17, 2_345, 9_111, 11_998), LATE)
    write(tmp_path, steps(12_000, slow))
    stretches = course(read_watch(tmp_path).shown, most=50)
    assert 30 <= len(stretches) <= 50
    assert {stretch.most_number for stretch in stretches if stretch.most_ns > 45 * MS} == {*slow}
    assert all(9 * MS < stretch.median_ns < 11 * MS for stretch in stretches)


def test_a_folder_without_records_is_no_watch(tmp_path):
    assert not is_watch(tmp_path)
    assert not is_watch(tmp_path / "absent")


def test_a_record_that_cannot_be_read_is_named_beside_one_that_can(tmp_path):
    write(tmp_path, steps(100, {}))
    (tmp_path / "torn.watch").write_bytes(b"tracekit.watch/1")
    (error,) = read_watch(tmp_path).unreadable.values()
    assert "torn.watch is not a record" in str(error)
    with pytest.raises(BadWatchError):
        read_watch(tmp_path / "torn.watch")


@pytest.mark.parametrize(
    "facts",
    [{"began_ns": 1 << 62}, {"began_ns": -5}, {"rank": 3}, {"rank": -1}, {"ranks": 1 << 40}, {"process": 10**100}],
)
def test_facts_that_no_watch_writes_are_refused(tmp_path, facts):
    path = tmp_path / "a.watch"
    Record.create(path, replace(FACTS, **facts)).close()
    with pytest.raises(BadWatchError):
        read_watch(path)


@pytest.mark.parametrize(
    "damage",
    [
        {"number": 1 << 50},
        {"number": 500_000},
        {"began_ns": 7},
        {"step_ns": 1 << 60},
        {"host_ns": -1},
        {"edges": -2},
        {"flags": 1 << 40},
        {"cause": 99},
    ],
)
def test_a_step_that_no_watch_writes_is_left_out_and_counted(tmp_path, damage):
    path = write(tmp_path, steps(100, {}))
    content = bytearray(path.read_bytes())
    for name, value in damage.items():
        at = LAYOUT.rings_at + 50 * STEP_BYTES + 8 * Step._fields.index(name)
        content[at : at + 8] = struct.pack("<q", value)
    path.write_bytes(content)
    read = read_watch(tmp_path).shown
    assert read.left_out == 1
    assert [step.number for step in read.steps] == [number for number in range(100) if number != 50]


def test_damage_anywhere_ends_in_an_error_or_in_a_report(tmp_path):
    path = write(tmp_path, steps(300, {100: LATE, 200: LATE}), minute_steps=100)
    sound, source = path.read_bytes(), random.Random(3)
    for _ in range(60):
        content = bytearray(sound)
        for _ in range(source.choice((1, 5, 200))):
            at = source.choice(
                (source.randrange(8_300), LAYOUT.counts_at + source.randrange(24), source.randrange(60_000))
            )
            content[at] = source.choice((0, 1, 0x7F, 0x80, 0xFF, source.randrange(256)))
        path.write_bytes(content)
        try:
            watched = read_watch(path)
        except BadWatchError:
            continue
        assert all(step.flags & Flag.SLOW or step.cause is Cause.TREND for step in watched.shown.slow)
        assert [slow.sentence for slow in watched.slow].count("") == 0
        assert course(watched.shown) or not watched.shown.steps


def test_a_record_is_read_from_a_folder_that_cannot_be_listed(tmp_path, monkeypatch):
    write(tmp_path, steps(100, {}))
    (path,) = tmp_path.glob("*.watch")

    def refused(_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "glob", lambda *_: iter(()))  # as it does then
    monkeypatch.setattr(Path, "iterdir", refused)
    watched = read_watch(path)
    assert (watched.shown.path, watched.number_of_steps, watched.traces) == (path, 100, [])


def test_records_that_have_gone_are_no_watch(tmp_path):
    with pytest.raises(BadWatchError, match="it has no record"):
        read_watch(tmp_path)
    with pytest.raises(BadWatchError, match="No such file"):
        read_watch(tmp_path / "gone.watch")
