"""Rare work is timed and recorded: passes, turns and windows are of whole periods, and the detailed one holds it."""

import pytest

from tests.capture.capturing import perform, read_trace
from tests.capture.small_scripts import EAGER, PLAIN, event_names, script
from tracekit.capture import passes, process
from tracekit.capture.child import timing
from tracekit.capture.child.live import _steps_in_turn
from tracekit.capture.child.live_end import _steps_to_trace
from tracekit.capture.child.timing import ALONE, ONE_OF_SEVERAL
from tracekit.capture.child.traces import DETAIL, planned_windows
from tracekit.capture.job import Job
from tracekit.capture.options import Options

MS = 1_000_000
RARELY = (
    PLAIN
    + """
    if _ % {every} == {every} - 1:
        with torch.profiler.record_function("rare"):
            __import__('time').sleep(0.04)
"""
)


@pytest.mark.parametrize(
    ("available", "period", "steady", "detailed"),
    [
        (None, 1, 20, 3),
        (None, 10, 20, 10),
        (None, 7, 21, 7),
        (None, 50, 50, 12),
        (200, 50, 50, 12),
        (60, 10, 20, 10),
        (40, 10, 20, 10),
        (30, 10, 10, 10),
        (20, 10, 10, 3),
        (9, 10, 4, None),
    ],
)
def test_windows_are_of_whole_periods(available, period, steady, detailed):
    windows = planned_windows(20, available, period)
    assert windows.steady.steps == steady
    assert (windows.detail.steps if windows.detail else None) == detailed
    if available is not None:
        planned = [window for window in (windows.cold, windows.steady, windows.marked, windows.detail) if window]
        assert sum(window.steps + window.warmup for window in planned) <= available


def test_without_a_period_windows_are_as_they_were():
    assert planned_windows(20, None).detail == DETAIL


@pytest.mark.parametrize(
    ("step_ms", "period", "steps"),
    [(1, 1, 250), (1, 40, 80), (1, 100, 100), (25, 20, 20), (50, 5, 5), (50, 20, 20), (250, 20, 3), (1000, 3, 3)],
)
def test_a_turn_is_of_whole_periods_unless_it_would_take_too_long(step_ms, period, steps):
    assert _steps_in_turn(250 * MS, step_ms * MS, period) == min(steps, 100)


@pytest.mark.parametrize(("known", "turns", "traced"), [
    (1, [[20 * MS] + [MS] * 99] * 8, 4),  # the first step of each turn, after a halt
    (1, [([MS] * 4 + [20 * MS]) * 20] * 8, 5),
    (7, [[MS] * 70] * 8, 7),
    (80, [[MS] * 80] * 8, 50),
])  # fmt: skip
def test_the_trace_after_the_last_turn_holds_a_whole_period(known, turns, traced):
    job = Job(stage="live", program="r.py", steps=20, period=known)
    assert _steps_to_trace(job, turns) == traced


def test_a_pass_times_a_few_periods():
    assert ONE_OF_SEVERAL.steps(50 * MS, 20) == 60
    assert ALONE.steps(50 * MS, 100) == 300
    assert ONE_OF_SEVERAL.steps(1000 * MS, 20) == 10  # its patience ends first


@pytest.mark.parametrize(("rare_ms", "least"), [(0, 0), (200, 60)])
def test_more_steps_are_timed_until_rare_ones_show_their_period(monkeypatch, rare_ms, least):
    """Of 30 steps of 30 ms, one or two are longer: nobody could tell how many there are of a hundred."""
    now = [0]
    monkeypatch.setattr(timing.time, "perf_counter_ns", lambda: now[0])
    taken = []

    def step():
        taken.append(len(taken))
        now[0] += (30 + rare_ms * (len(taken) % 20 == 0)) * MS

    times = timing.run_steps(timing.time_many("cpu", ALONE), step)
    assert len(times) >= max(33, least) if rare_ms else len(times) == 33
    assert len(times) <= 300


def test_the_detailed_window_holds_the_rare_step(tmp_path):
    """Of a period of 20 steps, it records 12."""
    job = {"steps": 20, "period": 20, "warmup": 4, "is_script": True, "requested": EAGER}
    result = perform(tmp_path, "profile", script(tmp_path, RARELY.format(every=20)), **job)
    assert result.outcome == "ok", result.traceback or result.error
    for window, steps in (("steady", 20), ("detail", 12)):
        path = tmp_path / f"{window}.json.gz"
        assert len(read_trace(path).steps) == steps
        assert event_names(path).count("rare") == 1


def test_a_script_with_rare_work(tmp_path):
    path = script(tmp_path, RARELY.format(every=10))
    job = Job(stage="measure", program=str(path), is_script=True, folder=str(tmp_path), warmup=4, arguments=["400"])
    with process.scratch() as scratch:
        result = process.perform(job, scratch, tmp_path / "measure.log", 120)
    (measured,) = passes.finished(job, result, began=0, load=None, options=Options("")).measured.passes
    assert (measured.alike, measured.period) == (False, 10)
    assert 4 * MS < measured.step_ns < 6 * MS + 2 * sorted(measured.step_all_ns)[len(measured.step_all_ns) // 2]
