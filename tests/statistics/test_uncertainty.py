"""Intervals keep what they promise: for values of a known origin, and for simulated captures on drifting machines."""

import math
import re
import statistics
from collections.abc import Iterator

import numpy as np
import pytest
from msgspec.structs import replace
from scipy import stats
from simulated import (
    MACHINES,
    apart,
    captured,
    heating_up,
    measured,
    one_pass,
    persistent,
    run_on,
    steady,
    walking,
)

from tracekit.capture import rounds
from tracekit.run import with_common_period
from tracekit.run.contrast import SPREAD_OF_PAIRS, compared, contrast, passes_needed, prior_of_pairs, step_interval
from tracekit.statistics.uncertainty import (
    SURE,
    TOLERANCE,
    Prior,
    half_width_of_difference,
    half_width_of_mean,
    half_width_of_typical,
    interval_from_logs,
    interval_of_median,
    square_of_error,
    student_t,
    typical,
)


@pytest.mark.parametrize("inside", [0.9, 0.95, 0.97])
def test_students_t(inside):
    for freedom in (*range(1, 12), 30, 101):
        assert student_t(freedom, inside) == pytest.approx(stats.t.ppf((1 + inside) / 2, freedom))


def test_of_one_value_nothing_is_known():
    assert half_width_of_mean([1.0], 0.95) == half_width_of_difference([1.0], [1.0, 2.0], 0.95) == math.inf
    assert half_width_of_mean([1.0, 1.0], 0.95) == half_width_of_difference([1.0, 1.0], [2.0, 2.0], 0.95) == 0


def test_an_interval_beyond_what_floats_hold_has_finite_ends():
    assert interval_from_logs(math.log(0.5), math.log(2)) == pytest.approx((0.5, 2))
    low, high = interval_from_logs(-900, 900)
    assert low == 0
    assert 1e300 < high < math.inf


def test_the_median_lies_between_two_of_the_values():
    assert interval_of_median([3]) == (3, 3)
    assert interval_of_median([1, 2, 3, 4, 5]) == (1, 5)
    # For ten values, the second and the ninth: 2 × (1 + 10) / 1024 of cases are outside.
    assert interval_of_median(range(10)) == (1, 8)


def test_the_interval_of_a_difference_of_three_values_each_is_that_of_scipy():
    ours, theirs = [1.0, 1.2, 0.9], [1.3, 1.2, 1.5]
    known = stats.ttest_ind(ours, theirs, equal_var=False)
    error = (statistics.fmean(ours) - statistics.fmean(theirs)) / known.statistic
    assert half_width_of_difference(ours, theirs, 0.95) == pytest.approx(student_t(int(known.df), 0.95) * error)


def test_neither_the_luckiest_nor_the_unluckiest_value_counts():
    middle = [1.0, 1.1, 1.2]
    values = [-50.0, *middle, 70.0]
    assert typical(values) == pytest.approx(1.1)
    # Tukey and McLaughlin: the deviation of the shortened values, by the share that is kept.
    error = np.std([1.0, *middle, 1.2], ddof=1) / 0.6 / math.sqrt(5)
    assert half_width_of_typical(values, 0.95) == pytest.approx(stats.t.ppf(0.975, 2) * error)
    assert half_width_of_typical([-9.0, *middle, 6.0], 0.95) == half_width_of_typical(values, 0.95)
    assert [typical([-value for value in values]), typical([3.0, 5.0])] == pytest.approx([-1.1, 4.0])


def test_the_error_is_that_of_trimmed_means_of_scipy():
    rng = np.random.default_rng(11)
    for count in (6, 13, 40):
        values = rng.standard_t(3, count).tolist()
        known = stats.ttest_ind(values, [0.0] * count, trim=0.2, equal_var=False)
        assert typical(values) == pytest.approx(stats.trim_mean(values, 0.2))
        square, freedom = square_of_error(values, Prior(0.0, 0))
        assert freedom == count - 2 * int(0.2 * count) - 1
        # Yuen divides by one less than the values that count, Tukey and McLaughlin by the square of their share.
        kept = freedom + 1
        yuen = (stats.trim_mean(values, 0.2) / known.statistic) ** 2
        assert square == pytest.approx(yuen * kept * freedom / ((count - 1) * (kept / count) ** 2 * count))


def test_of_a_normal_distribution_the_middle_shows_what_is_expected():
    """With as many degrees of freedom as are wanted, the prior alone gives the error that simulations have."""
    rng = np.random.default_rng(4)
    for count in (3, 5, 7, 20):
        means = [typical(rng.standard_normal(count).tolist()) for _ in range(2000)]
        known = half_width_of_typical([0.0] * count, 0.95, Prior(1.0, 10**6))
        assert known == pytest.approx(1.96 * np.std(means), rel=0.06), count


@pytest.mark.parametrize("count", [4, 7, 12, 30])
@pytest.mark.parametrize("disturbs", [0.0, 0.1])
def test_captures_that_are_disturbed_unlike_each_other_are_alike(count, disturbs):
    """The passes of one of them are quiet, and up to a tenth of those of the other far longer."""
    rng, prior = np.random.default_rng(20_261_130), Prior(0.02, 4)
    apart = []
    for _ in range(400):
        ours, theirs = rng.normal(0, 0.02, (2, count))
        theirs += (rng.random(count) < disturbs) * rng.exponential(0.4, count)
        half = half_width_of_difference(ours.tolist(), theirs.tolist(), SURE, prior)
        apart.append(abs(typical(ours.tolist()) - typical(theirs.tolist())) > half + math.log(1 + TOLERANCE))
    assert sum(apart) <= stats.binom.ppf(0.99, len(apart), 1 - SURE), (sum(apart), len(apart))


def in_turns(ours, theirs):
    """Passes of two variants, which took turns."""
    sides = zip(ours, theirs, strict=True)
    pairs = [(one_pass(k, a, 10 * k), one_pass(k, b, 10 * k + 5)) for k, (a, b) in enumerate(sides)]
    return tuple(measured(*side) for side in zip(*pairs, strict=True))


def test_what_drifts_in_both_leaves_with_their_ratio():
    drifting = [1000, 2000, 3000, 4000]
    ours, theirs = in_turns([round(1.1 * ns) for ns in drifting], drifting)
    comparison = contrast(ours, theirs)
    assert (comparison.covers, comparison.passes, comparison.noise) == ("rounds", 3, False)
    assert comparison.ratio == pytest.approx(1.1)
    assert comparison.ratio == pytest.approx(ours.step_ns / theirs.step_ns, rel=1e-3)  # the quoted values agree
    assert step_interval(ours) is None  # its passes differ too much to say what a step takes


def test_passes_of_two_captures_are_no_pairs():
    ours, theirs = (measured(*(one_pass(k, 1000 + k, 10 * k + at) for k in range(4))) for at in (0, 1000))
    assert contrast(ours, theirs).covers == "passes"


def test_one_pass_each_says_what_it_does_not_know():
    ours, theirs = (measured(one_pass(0, ns, 0, [ns - 1, ns, ns + 1] * 10)) for ns in (1000, 2000))
    comparison = contrast(ours, theirs)
    assert (comparison.covers, comparison.passes, comparison.interval, comparison.noise) == ("one pass", 1, None, True)
    assert comparison.document()["interval_covers"].startswith("nothing: with one pass each")
    assert compared(comparison, "eager") == "2.0 × faster than eager, untested: one pass each"
    assert compared(comparison) == "2.0 × faster, one pass each"
    assert step_interval(ours) is None


def test_two_passes_prove_little():
    ours, theirs = in_turns([1000, 1001], [1100, 1100])  # however well they agree
    assert contrast(ours, theirs).noise


def test_what_is_expected_counts_as_so_many_values_until_these_refute_it():
    prior = Prior(0.06, 4)
    agreeing, apart = [0.1, 0.1, 0.1], [0.1, 0.5, -0.3]
    assert half_width_of_mean(agreeing, 0.95, prior) == pytest.approx(
        stats.t.ppf(0.975, 6) * math.sqrt(4 * 0.06**2 / 6 / 3)
    )
    assert half_width_of_mean(apart, 0.95, prior) == half_width_of_mean(apart, 0.95)
    calm = [0.1, 0.101, 0.099, 0.1, 0.1]
    assert half_width_of_mean(calm, 0.95, prior) == half_width_of_mean(calm, 0.95)
    assert half_width_of_mean([0.1], 0.95, prior) == pytest.approx(stats.t.ppf(0.975, 4) * 0.06)
    assert half_width_of_difference(agreeing, agreeing, 0.95, prior) > 0.05


def test_a_busy_machine_is_expected_to_scatter_more():
    quiet, busy = (measured(*(replace(one_pass(k, 1000, k), load=load, cores=2) for k in range(3))) for load in (2, 9))
    assert prior_of_pairs(quiet).deviation == SPREAD_OF_PAIRS
    assert prior_of_pairs(busy).deviation == pytest.approx(3 * SPREAD_OF_PAIRS)


def test_the_first_pass_counts_where_few_follow():
    few, many = (
        measured(*(one_pass(k, ns, k) for k, ns in enumerate([8000, *later]))) for later in ([1000] * 2, [1000] * 3)
    )
    assert few.step_ns == 2000  # the geometric mean
    assert many.step_ns == 1000
    assert [each.counted for each in many.passes] == [False, True, True, True]


def test_a_comparison_in_words():
    faster, slower = (contrast(*in_turns(ours, [1000] * 5)) for ours in ([500, 510, 490, 500, 505], [1100] * 5))
    assert compared(faster, "eager") == "2.00 × faster than eager (1.87–2.13; 4 pairs)"
    assert compared(slower) == "1.10 × slower (1.03–1.17; 4 pairs)"
    apart = contrast(*in_turns([1000, 15_000], [1000, 1000]))
    assert compared(apart, "eager") == (
        "too uncertain to compare with eager: passes differ too much for 2 pairs; run again with --budget 120"
    )
    assert compared(contrast(*in_turns([1000, 1100, 900, 1000, 1000], [1000] * 5))).endswith("; 4 pairs), within noise")


@pytest.mark.parametrize("machine", MACHINES)
def test_the_interval_holds_the_truth_as_often_as_it_promises(monkeypatch, machine):
    """95 % of the intervals, however few pairs there are, and even with early stopping."""
    rng = np.random.default_rng(20_261_121)
    for passes in (2, 3, 8):
        intervals = [captured(monkeypatch, rng, machine, 0.1, passes).interval for _ in range(150)]
        missed = sum(not low <= math.exp(0.1) <= high for low, high in intervals)
        assert missed <= stats.binom.ppf(0.99, len(intervals), 0.05), (passes, missed)


@pytest.mark.parametrize("machine", MACHINES)
def test_code_against_itself_is_within_noise(monkeypatch, machine):
    rng = np.random.default_rng(20_261_122)
    for passes in (2, 3, 8):
        claims = sum(not captured(monkeypatch, rng, machine, 0.0, passes).noise for _ in range(150))
        assert claims <= stats.binom.ppf(0.99, 150, 0.05), (passes, claims)


@pytest.mark.parametrize(
    ("machine", "least"), [(steady, 0.99), (apart, 0.8), (walking, 0.95), (heating_up, 0.95), (persistent, 0.85)]
)
def test_a_real_difference_of_a_tenth_is_seen(monkeypatch, machine, least):
    rng = np.random.default_rng(20_261_121)
    seen = [captured(monkeypatch, rng, machine, math.log(1.1)).interval[0] > 1 for _ in range(100)]
    assert np.mean(seen) >= least


def test_a_quiet_machine_needs_fewer_passes(monkeypatch):
    quiet, loud = (captured(monkeypatch, np.random.default_rng(1), each, 0.0, 24) for each in (steady, apart))
    assert rounds.ENOUGH_ROUNDS <= quiet.passes < loud.passes == 23


def test_code_against_itself_is_within_noise_on_a_crowded_machine(monkeypatch):
    """Where steps take 1 to 600 ms, two or three pairs of passes agree on anything by chance."""

    def crowded(rng, count):
        return 0.5 * rng.standard_normal(count)

    rng = np.random.default_rng(20_261_123)
    claims = [not captured(monkeypatch, rng, crowded, 0.0, passes, 1.5).noise for passes in (2, 3) for _ in range(300)]
    assert sum(claims) <= stats.binom.ppf(0.5, len(claims), 0.05)


def test_of_steps_that_are_not_alike_whole_periods_scatter():
    times = [16_000, 80_000] * 10
    alike, unlike = (
        measured(*(replace(one_pass(k, 48_000, k, times), period=period) for k in range(3))) for period in (1, 2)
    )
    assert prior_of_pairs(alike).deviation > 1
    assert prior_of_pairs(unlike).deviation == SPREAD_OF_PAIRS


def test_outliers_do_not_pass_for_steps_that_recur(monkeypatch):
    """The other simulations leave out the search for steps that do."""
    rng = np.random.default_rng(20_261_126)
    for machine in (steady, apart, walking, heating_up) * 5:
        run = with_common_period(run_on(monkeypatch, rng, machine, {"a": 0.0, "b": 0.1}))
        passes = [each for variant in run.variants for each in variant.measured.passes]
        assert all(each.alike and each.period == 1 for each in passes)


def test_passes_are_taken_until_the_precision_is_reached(monkeypatch):
    comparisons = [
        captured(monkeypatch, np.random.default_rng(1), steady, 0.1, 100, precision=share) for share in (0.03, 0.01)
    ]
    assert [math.log(high / low) / 2 <= 0.03 for low, high in (each.interval for each in comparisons)] == [True, True]
    low, high = comparisons[1].interval
    assert math.log(high / low) / 2 <= 0.01
    assert comparisons[0].passes < comparisons[1].passes < 99


def test_where_nothing_differs_it_stops_before_the_precision_is_reached(monkeypatch):
    same = captured(monkeypatch, np.random.default_rng(1), steady, 0.0, 100, precision=1e-6)
    assert same.is_known_equal
    assert compared(same, "eager").endswith("pairs), no difference above 1.5 %")
    assert same.passes < 99
    assert not captured(monkeypatch, np.random.default_rng(1), steady, 0.1, 20, precision=1e-6).is_known_equal


@pytest.fixture
def slow_passes(monkeypatch):
    """A clock by which each pass takes 5 s; each time at which a time left was told, with that time; who tells it."""
    now, told = [0.0], []
    monkeypatch.setattr(rounds.time, "monotonic", lambda: now[0])

    class Slow(Iterator):
        def __next__(self):
            now[0] += 5.0
            return 0

    def tell(line):
        told.append((now[0], float(re.search("about ([0-9]+) s left", line)[1])))

    monkeypatch.setattr("simulated.count_passes", Slow())
    return now, told, tell


@pytest.mark.parametrize("seconds", [100.0, 1e9])
def test_the_time_left_is_true(monkeypatch, slow_passes, seconds):
    """What is told is about what is left, and within the budget."""
    now, told, tell = slow_passes
    monkeypatch.setattr(rounds, "_expected_seconds", lambda _: 10.0)
    captured(monkeypatch, np.random.default_rng(1), apart, 0.1, 100, precision=0.03, budget=seconds, tell=tell)
    (at, left) = told[-1]
    assert now[0] == at + 10
    assert left == 10 or (left == 20 and seconds > 1e6)  # scatter decides when it is narrow, the budget is certain
    assert now[0] <= seconds
    assert 0.5 < statistics.median(left / (now[0] - at) for at, left in told) < 2
    assert all(left <= seconds - at for at, left in told)


@pytest.mark.parametrize("options", [{}, {"min_detectable": 0.05}, {"min_detectable": 0.01}])
def test_the_time_left_of_a_single_variant_counts_until_a_check_would_see_enough(monkeypatch, slow_passes, options):
    now, told, tell = slow_passes
    monkeypatch.setattr(rounds, "_expected_seconds", lambda _: 5.0)
    run_on(monkeypatch, np.random.default_rng(2), apart, {"a": 0.0}, 100, budget=300.0, tell=tell, **options)
    assert len(told) > 10
    late = [left / (now[0] - at) for at, left in told if now[0] - at >= 20][2:]
    assert 0.7 < statistics.median(late) < 1.4


def test_two_pairs_that_agree_by_chance_promise_no_early_end():
    ours, theirs = (measured(*(one_pass(number, ns, number) for number in (1, 2))) for ns in (1_100_000, 1_000_000))
    needed = passes_needed(ours, theirs, 0.02, 100)
    assert 8 <= passes_needed(ours, theirs, 0.02, 100) < passes_needed(ours, theirs, 0.01, 100)
    more = [measured(*(one_pass(number, side.step_ns, number) for number in range(1, 9))) for side in (ours, theirs)]
    assert passes_needed(*more, 0.02, 100) < needed  # eight that agree show that pairs scatter little here


def test_three_rounds_come_before_everything_else_is_spent(monkeypatch):
    monkeypatch.setattr(rounds, "seconds_for_rounds", lambda *_: 0.0)
    comparison = captured(monkeypatch, np.random.default_rng(1), steady, 0.0)
    assert (comparison.covers, comparison.passes) == ("rounds", 3)
