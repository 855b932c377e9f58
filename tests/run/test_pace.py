"""Two captures of different minutes: what the machine did to steps does not pass for what their code does."""

import math

import numpy as np
import pytest
from msgspec.structs import replace
from scipy import stats
from simulated import STEP_NS, measured, one_pass

from tracekit.run import Turn
from tracekit.run.contrast import contrast, contrast_of_captures, fastest_logs
from tracekit.run.pace import comparable, drift, slower
from tracekit.statistics.uncertainty import SURE, TOLERANCE

YARDSTICKS_NS = 1_000_000, 3_000_000
PASSES, TURNS = 10, 3


def captured(rng, effect=0.0, pace=(0.0, 0.0), slopes=(0.3, 0.2), disturbed=0.3, at=0):
    """A capture on a machine whose two paces, as logarithms, are so much slower, and more so in some of the passes."""
    passes = []
    for number in range(PASSES):
        disturbance = (rng.random() < disturbed) * rng.exponential(0.2, 2)
        process, steps, turns = 0.005 * rng.standard_normal(), [], []
        for turn in range(TURNS):
            paces = np.array(pace) + disturbance + np.abs(0.01 * rng.standard_normal(2))
            steps.append(round(STEP_NS * math.exp(effect + process + paces @ np.array(slopes))))
            yards = [round(ns * math.exp(each)) for ns, each in zip(YARDSTICKS_NS, paces, strict=True)]
            turns.append(Turn(started_ns=at + 9 * number + turn, steps=1, processor_ns=STEP_NS, yardsticks_ns=yards))
        made = one_pass(number + 1, round(np.median(steps)), at + 9 * number, steps)
        passes.append(replace(made, turns=turns))
    return measured(*passes)


def alarms(rng, count, slopes=(0.3, 0.2), **later):
    found = 0
    for _ in range(count):
        sides = captured(rng, slopes=slopes, at=1000, **later), captured(rng, slopes=slopes)
        low, high = contrast_of_captures(*sides, SURE).interval
        found += low > 1 + TOLERANCE or high < 1 / (1 + TOLERANCE)
    return found


@pytest.mark.parametrize("pace", [(0.0, 0.0), (0.1, 0.1), (0.3, 0.0), (0.3, 0.3), (-0.2, -0.4)])
@pytest.mark.parametrize("slopes", [(0.3, 0.2), (0.7, 0.0), (0.0, 0.8), (0.0, 0.0)])
def test_a_slower_machine_is_no_slower_code(pace, slopes):
    assert alarms(np.random.default_rng(1), 100, slopes, pace=pace) <= stats.binom.ppf(0.99, 100, 1 - SURE)


@pytest.mark.parametrize(("disturbed", "least"), [(0.0, 85), (0.3, 80), (0.5, 70)])
def test_slower_code_is_found_where_the_machine_is_as_fast(disturbed, least):
    assert alarms(np.random.default_rng(3), 100, effect=math.log(1.1), disturbed=disturbed) >= least


def test_what_the_machine_did_is_in_the_interval_and_told():
    rng = np.random.default_rng(4)
    sides = captured(rng, pace=(0.2, 0.2), at=1000), captured(rng)
    compared = contrast_of_captures(*sides, SURE)
    assert compared.ratio == pytest.approx(math.exp(0.1), rel=0.02)
    assert math.log(compared.slower) == pytest.approx(0.1, abs=0.04)
    assert compared.interval[0] < 1 < compared.interval[1]
    other_way = contrast_of_captures(*sides[::-1], SURE)
    assert other_way.slower == pytest.approx(1 / compared.slower)
    assert other_way.interval == pytest.approx([1 / end for end in compared.interval[::-1]])


def test_an_unsteady_machine_may_drift_the_more_the_more_time_has_passed():
    minute_ns, rng = 60 * 10**9, np.random.default_rng(7)
    steady, unsteady = captured(rng, disturbed=0.0), captured(rng, disturbed=0.5)
    assert drift(unsteady, unsteady) < 1e-4  # it lasted for a microsecond
    later = [drift(captured(rng, disturbed=0.5, at=minutes * minute_ns), unsteady) for minutes in (1, 15, 600)]
    assert later[1] / later[0] == pytest.approx(math.sqrt(15), rel=0.5)
    assert later[2] == pytest.approx(later[1], rel=0.5)
    assert drift(captured(rng, disturbed=0.0, at=600 * minute_ns), steady) < later[2] / 5
    soon, late = (
        measured(*(replace(each, started_ns=each.started_ns + apart_ns) for each in unsteady.passes))
        for apart_ns in (1000, 60 * minute_ns)
    )
    (low, high), (lowest, highest) = (contrast_of_captures(side, unsteady, SURE).interval for side in (soon, late))
    assert lowest < low < 1 < high < highest


def test_disturbed_passes_alone_say_nothing_of_the_machine():
    rng = np.random.default_rng(5)
    told = [slower(captured(rng, disturbed=0.4, at=1000), captured(rng, disturbed=0.0)) for _ in range(100)]
    assert np.mean([each != 0 for each in told]) <= 0.1


def test_without_turns_there_is_no_yardstick_and_whole_passes_count():
    sides = [measured(*(one_pass(k, STEP_NS + k, at + k) for k in range(4))) for at in (0, 1000)]
    assert slower(*sides) == 0
    assert fastest_logs(sides[0].counted_passes) == [math.log(each.step_ns) for each in sides[0].counted_passes]
    assert contrast_of_captures(*sides, SURE).ratio == pytest.approx(contrast(*sides, SURE).ratio)


def test_the_fastest_turn_is_the_median_of_its_steps_or_their_mean_where_these_are_not_alike():
    turns = [Turn(started_ns=k, steps=3, processor_ns=1) for k in range(2)]
    one = replace(one_pass(1, 20, 0, [20, 30, 70, 10, 20, 90]), turns=turns)
    assert fastest_logs([one]) == [math.log(20)]
    assert fastest_logs([replace(one, alike=False)]) == [math.log(40)]


def test_passes_beside_a_busy_sibling_are_left_out_where_enough_are_not():
    rng = np.random.default_rng(6)
    quiet, half_busy = captured(rng, disturbed=0.0), captured(rng, disturbed=0.0)
    busy = captured(rng, pace=(0.4, 0.2), disturbed=0.0, at=1000)
    mixed = measured(*half_busy.passes[:5], *busy.passes[5:])
    assert comparable(mixed, quiet) == [mixed.passes[:5], quiet.passes]
    assert comparable(measured(*half_busy.passes[:3], *busy.passes[3:]), quiet)[0] == [
        *half_busy.passes[:3],
        *busy.passes[3:],
    ]
    assert comparable(busy, busy) == [busy.passes, busy.passes]  # as fast as that machine is known to be
