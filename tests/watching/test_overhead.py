"""What watching costs is measured, and told in words: few steps here; `make bench` measures until it is sure."""

import itertools
import json
import math
import time
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from tracekit.watching import overhead


def test_the_cost_of_one_training_is_measured(monkeypatch):
    monkeypatch.setattr(overhead, "BLOCK_S", 0.0)
    monkeypatch.setattr(overhead, "LEAST_PAIRS", 2)
    monkeypatch.setattr(overhead, "FIRST_STEPS", 16)
    cost = overhead.measure("a DataLoader loop", overhead.loader_loop, seconds=0.0)
    assert cost.pairs == 2
    assert cost.step_ms > 0
    assert math.isfinite(cost.calls_us + cost.step_us)


@pytest.mark.parametrize(("rare_ns", "expected_us"), [(640_000, 19.84375), (10**9, 41.09375)])
def test_what_is_done_rarely_is_part_of_the_cost(monkeypatch, rare_ns, expected_us):
    monkeypatch.setattr(overhead, "BLOCK_S", 0.0)
    stopwatch, numbers = SimpleNamespace(ns=0, running_in=nullcontext), itertools.count(1)

    def step():
        stopwatch.ns = 10_000 if next(numbers) % 64 else rare_ns

    assert overhead._block(step, stopwatch, 5).calls_us == expected_us  # 10^9 ns is other work: 2 ms of it count


def test_only_the_time_in_the_calls_is_measured(monkeypatch):
    class Loop:
        def inner(self):
            time.sleep(0.002)

    monkeypatch.setattr(overhead, "_CALLS", ((Loop, "inner"),))
    stopwatch = overhead._Stopwatch()
    with stopwatch.stopped_in():
        called = Loop.inner

        def around(loop):
            time.sleep(0.02)
            called(loop)

        monkeypatch.setattr(Loop, "inner", around)
        with stopwatch.running_in():
            Loop().inner()
        assert Loop.inner is around
    assert stopwatch.ns >= 20_000_000


@pytest.mark.parametrize(
    ("calls_us", "half_width_us", "step_us", "verdict"),
    [
        (12.0, 3.0, 40, "Watching costs at most 20 µs a step here."),
        (12.0, 9.0, 40, "Not shown to cost at most 20 µs a step here: a loop. Other work"),
        (25.0, 1.0, 40, "Not shown to cost at most 20 µs a step here: a loop. Other work"),
        (12.0, 3.0, 60, "Not shown to cost at most 20 µs a step here: a loop. Other work"),
    ],
)
def test_the_verdict_counts_the_whole_interval(calls_us, half_width_us, step_us, verdict):
    cost = overhead.Cost("a loop", 4.0, calls_us, half_width_us, step_us, 30, 9)
    assert overhead.verdict([cost]).startswith(verdict)
    assert cost.sentence() == (
        f"a loop: {calls_us:.1f} ± {half_width_us:.1f} µs in its calls, {calls_us / 4e3:.2%} of a step of 4.00 ms; "
        f"the whole step, {step_us} ± 30 µs (9 pairs of blocks)"
    )
    assert json.loads(overhead.as_json([cost]))["costs"][0]["calls_us"] == calls_us
