"""What is quoted for a step where steps are not alike: never the median of one kind."""

import math
import random

import pytest

from tracekit.typical_step import TypicalStep, typical_step

MS = 1_000_000


def noisy(*durations_ms, count, seed=1, outliers=0.0):
    """So many steps with these durations in turn, which scatter by 3 %; some take three times as long."""
    rng = random.Random(seed)
    return [
        round(
            durations_ms[k % len(durations_ms)]
            * MS
            * rng.lognormvariate(0, 0.03)
            * (3 if rng.random() < outliers else 1)
        )
        for k in range(count)
    ]


def test_of_steps_that_are_alike_it_is_the_median():
    assert typical_step([5]) == TypicalStep(5)
    assert typical_step([4, 5, 90]) == TypicalStep(5)
    assert typical_step([0, 0, 0]).step_ns == 1  # a clock that did not advance
    for seed in range(200):
        for outliers in (0.0, 0.02):
            assert typical_step(noisy(10, count=30, seed=seed, outliers=outliers)).alike


@pytest.mark.parametrize("period", [(16, 80), (16, 16, 80), (10, 10, 10, 10, 10, 10, 10, 10, 10, 60), (10, 20, 30)])
@pytest.mark.parametrize("count", [30, 31, 100])
def test_of_steps_that_repeat_it_is_the_mean_over_whole_periods(period, count):
    for seed in range(20):
        typical = typical_step(noisy(*period, count=count, seed=seed, outliers=0.01 if count == 100 else 0.0))
        assert (typical.alike, typical.period) == (False, len(period))
        assert typical.step_ns == pytest.approx(sum(period) / len(period) * MS, rel=0.06)


def test_of_two_kinds_in_no_order_it_is_the_mean_over_all():
    rng = random.Random(3)
    times = [round(rng.choice((16, 80)) * MS * rng.lognormvariate(0, 0.03)) for _ in range(40)]
    typical = typical_step(times)
    assert (typical.alike, typical.period) == (False, 1)
    assert typical.step_ns == round(sum(times) / len(times))


def test_two_kinds_of_steps_are_compared_by_what_an_epoch_takes():
    """Half the steps become twice as fast: the median of either kind would say 2.0 or 1.0, and it is neither."""
    before, after = typical_step(noisy(80, 16, count=40)), typical_step(noisy(40, 16, count=40, seed=2))
    assert before.step_ns / after.step_ns == pytest.approx(96 / 56, rel=0.03)


def test_drift_is_no_period():
    for seed in range(50):
        drifting = [round(ns * math.exp(k / 100)) for k, ns in enumerate(noisy(10, count=60, seed=seed))]
        assert typical_step(drifting).period == 1
