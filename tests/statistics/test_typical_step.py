"""What is quoted for a step where steps are not alike: never the median of one kind."""

import math
import random
import statistics

import pytest

from tracekit.statistics.typical_step import (
    StepPattern,
    TypicalStep,
    common_period,
    costliest_start,
    has_unexplained_work,
    step_pattern,
    typical_step,
    typical_steps,
)

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


EVALUATION = [1] * 9 + [10]
CHECKPOINT_AND_METRIC = ([1] * 4 + [3]) * 3 + [1] * 4 + [20]  # every 5th step and every 20th
CHECKPOINT_AND_EVALUATION = [1 + 2 * (k % 4 == 3) + 9 * (k % 10 == 9) for k in range(20)]


def on_a_machine(kinds, count, rng, noise=0.1, tail=0.02, first=0):
    """So many steps of these kinds in turn, from one of them on: they scatter, and some take several times as long."""
    return [
        round(
            kinds[(first + k) % len(kinds)]
            * MS
            * math.exp(rng.gauss(0, noise))
            * (rng.choice((1.5, 2, 3, 6)) if rng.random() < tail else 1)
        )
        for k in range(count)
    ]


@pytest.mark.parametrize(
    "kinds",
    [EVALUATION, [1] * 19 + [30], [1] * 4 + [4], CHECKPOINT_AND_METRIC, CHECKPOINT_AND_EVALUATION],
    ids=["every 10th", "every 20th", "every 5th", "5th and 20th", "4th and 10th"],
)
@pytest.mark.parametrize("counts", [[320], [320] * 5, [100] * 5, [40, 30, 90, 100, 310]])
def test_rare_work_is_a_part_of_every_step(kinds, counts):
    """Passes begin anywhere in the period, and only some are long enough to show it; their step times are alike."""
    rng = random.Random(f"{kinds} {counts}")
    for _ in range(10):
        passes = [on_a_machine(kinds, count, rng, first=rng.randrange(100)) for count in counts]
        pattern = step_pattern(passes)
        assert pattern == StepPattern(alike=False, period=len(kinds))
        quoted = statistics.geometric_mean(typical_steps(passes, pattern))
        # Of 16 rare steps, three that the machine makes several times as long still show.
        assert quoted == pytest.approx(statistics.fmean(kinds) * MS, rel=0.05 if len(counts) > 1 else 0.07)


def test_rare_work_of_a_long_period_shows_in_several_passes():
    rng, kinds = random.Random(1), [1] * 99 + [60]
    passes = [on_a_machine(kinds, 320, rng, first=rng.randrange(100)) for _ in range(5)]
    pattern = step_pattern(passes)
    assert pattern.period == 100
    quoted = statistics.geometric_mean(typical_steps(passes, pattern))
    assert quoted == pytest.approx(statistics.fmean(kinds) * MS, rel=0.05)


@pytest.mark.parametrize("noise", [0.03, 0.1, 0.3])
@pytest.mark.parametrize("tail", [0.0, 0.02, 0.1, 0.25])
def test_steps_that_are_alike_have_no_period(noise, tail):
    rng = random.Random(f"{noise} {tail}")
    alone = [
        common_period([on_a_machine([10], count, rng, noise, tail)]) for count in (30, 60, 100, 300) for _ in range(25)
    ]
    together = [
        common_period([on_a_machine([10], count, rng, noise, tail) for count in (20, 50, 100, 320) * 2])
        for _ in range(5)
    ]
    assert sum(period > 1 for period in alone) <= 1
    assert set(together) == {1}


def with_its_own_tails(kinds, count, rng, held_up=0.0, slowed=0.0, first=0):
    """So many steps, of which the long ones take longer by themselves at times; other work holds up steps for 1 to 6
    ms, so often a millisecond, and makes all steps of some stretches of 40 half as long again, so many of them."""
    times, slow = [], 1.0
    for number in range(count):
        if number % 40 == 0:
            slow = 1.5 if rng.random() < slowed else 1.0
        kind = kinds[(first + number) % len(kinds)]
        time = kind * rng.lognormvariate(0, 0.03) * (1 + rng.expovariate(6) if kind > 2 else 1) * slow
        waits, at = 0.0, rng.expovariate(1)
        while at < held_up * time:
            waits, at = waits + rng.uniform(1, 6), at + rng.expovariate(1)
        times.append(round((time + waits) * MS))
    return times


@pytest.mark.parametrize(("held_up", "slowed"), [(0.0, 0.0), (0.01, 0.0), (0.0, 0.3), (0.01, 0.3)])
@pytest.mark.parametrize("kinds", [EVALUATION, [1] * 19 + [10], [1] * 4 + [6]])
def test_the_tails_of_rare_work_count_and_those_of_other_work_do_not(kinds, held_up, slowed):
    """On a quiet machine, medians of each kind leave a part out; on a busy one, the mean has a fifth too much."""
    rng, period = random.Random(8), len(kinds)
    undisturbed = statistics.fmean(with_its_own_tails(kinds, 40_000 // period * period, rng))
    passes = [with_its_own_tails(kinds, 300, rng, held_up, slowed) for _ in range(60)]
    quoted = statistics.fmean(typical_steps(passes, StepPattern(alike=False, period=period)))
    medians = statistics.fmean(statistics.median(times[k::period]) for times in passes for k in range(period))
    assert quoted == pytest.approx(undisturbed, rel=0.015 if not held_up and not slowed else 0.04)
    if not held_up and not slowed:
        assert medians < 0.99 * undisturbed
    else:
        assert abs(statistics.fmean(map(statistics.fmean, passes)) - undisturbed) > 2 * abs(quoted - undisturbed)


SAVES_AND_EVALUATES = ([1] * 4 + [8]) + ([1] * 4 + [12])  # which overlap: saving takes up to 12 ms, too


@pytest.mark.parametrize("held_up", [0.0, 0.01, 0.03])
def test_two_kinds_of_rare_work_that_overlap_have_the_longer_period(held_up):
    rng = random.Random(9)
    for _ in range(10):
        passes = [with_its_own_tails(SAVES_AND_EVALUATES, 160, rng, held_up, first=rng.randrange(10)) for _ in range(4)]
        assert common_period(passes) == 10


@pytest.mark.parametrize("held_up", [0.0, 0.01, 0.03])
def test_one_kind_of_rare_work_has_no_longer_period_than_its_own(held_up):
    rng = random.Random(10)
    for _ in range(15):
        passes = [
            with_its_own_tails([1] * 4 + [8], 160, rng, held_up, slowed=0.3, first=rng.randrange(5)) for _ in range(4)
        ]
        assert common_period(passes) == 5


def test_two_kinds_in_no_order_have_no_period():
    rng = random.Random(3)
    for _ in range(50):
        passes = [
            [round(rng.choice((16, 80)) * MS * rng.lognormvariate(0, 0.05)) for _ in range(100)] for _ in range(3)
        ]
        assert step_pattern(passes) == StepPattern(alike=False)


def test_drift_within_a_pass_hides_no_period():
    rng = random.Random(4)
    steps = [round(ns * math.exp(k / 1000)) for k, ns in enumerate(on_a_machine(EVALUATION, 300, rng, tail=0.0))]
    assert common_period([steps]) == 10


def test_a_pass_that_saw_no_rare_step_is_no_cheaper():
    """Its steps are half as fast as those of the others: so is its period, which it did not see."""
    rng = random.Random(5)
    passes = [on_a_machine(EVALUATION, 100, rng, noise=0.02, tail=0.0), [2 * MS] * 6]
    long, short = typical_steps(passes, StepPattern(alike=False, period=10))
    assert short == pytest.approx(2 * long, rel=0.03)


def test_long_steps_that_no_period_explains_call_for_more_of_them():
    rng = random.Random(6)
    assert has_unexplained_work(on_a_machine(EVALUATION, 15, rng, tail=0.0))
    assert not has_unexplained_work(on_a_machine(EVALUATION, 40, rng, tail=0.0))
    assert not has_unexplained_work(on_a_machine([10], 40, rng, tail=0.0))


def test_a_window_begins_where_it_holds_the_costliest_steps():
    kinds = [1] * 20
    kinds[13], kinds[15] = 9, 5
    start = costliest_start(kinds * 2, 20, 3)
    assert start == 13
    assert costliest_start(kinds * 2, 20, 20) == 0


def test_what_python_collects_every_few_steps_is_no_period():
    """It recurs exactly, and is of no account."""
    steps = [MS + (MS // 2 if k % 57 == 3 else 0) + k % 7 * 1000 for k in range(300)]
    assert typical_step(steps).alike


@pytest.mark.parametrize("kinds", [EVALUATION, [1] * 19 + [20]], ids=["every 10th", "every 20th"])
def test_rare_work_shows_where_the_machine_holds_up_a_quarter_of_the_steps(kinds):
    rng = random.Random(7)
    for _ in range(5):
        passes = [on_a_machine(kinds, 320, rng, tail=0.25, first=rng.randrange(20)) for _ in range(3)]
        assert common_period(passes) == len(kinds)
