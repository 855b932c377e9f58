"""Pairs of short turns on simulated machines: what they show of code against itself, and of code that is slower."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from simulated import STEP_NS, measured

from tracekit.run import Pass, Turn
from tracekit.run.contrast import contrast, otherwise

TURNS, STEPS = 2, 4
PROCESSES = 0.02  # by how much processes of one code differ, as the standard deviation of logarithms


# What a machine adds to the logarithm of each of many consecutive steps, of both sides alike.
def quiet(rng, count):
    return np.abs(0.01 * rng.standard_normal(count))


def drifting(rng, count):
    return np.abs(np.cumsum(0.01 * rng.standard_normal(count)))


def in_steps(rng, count):
    """Slower by a fifth for a second or so, again and again."""
    return 0.2 * (np.cumsum(rng.random(count) < 0.08) % 2) + quiet(rng, count)


def heavy_tailed(rng, count):
    return 0.01 * np.abs(rng.standard_t(2, count))


def contended(rng, count):
    """Other work takes its part of every third step or so."""
    return (rng.random(count) < 0.35) * rng.exponential(0.5, count) + quiet(rng, count)


MACHINES = [quiet, drifting, in_steps, heavy_tailed, contended]


def captured(rng, machine, effect, pairs):
    """Two variants that took turns in so many pairs, A B B A, B A A B, …, the second slower by the effect, as a
    logarithm."""
    added = iter(machine(rng, 2 * pairs * TURNS * STEPS).reshape(-1, STEPS))
    sides = ([], [])
    clock = itertools.count(1)
    for number in range(1, pairs + 1):
        levels = rng.normal((0.0, effect), PROCESSES / math.sqrt(2))
        steps, turns = ([], []), ([], [])
        for at in range(TURNS):
            for side in (0, 1) if (at + number) % 2 else (1, 0):
                times = (STEP_NS * np.exp(levels[side] + next(added))).astype(int).tolist()
                steps[side].extend(times)
                worked_ns = round(STEP_NS * math.exp(levels[side]) * STEPS)
                turn = Turn(started_ns=next(clock), steps=STEPS, processor_ns=worked_ns, thread_ns=worked_ns)
                turns[side].append(turn)
        started_ns = next(clock)
        for side in (0, 1):
            sides[side].append(
                Pass(
                    round=number,
                    started_ns=started_ns,
                    step_ns=round(np.median(steps[side])),
                    step_all_ns=steps[side],
                    turns=turns[side],
                )
            )
    first, second = (measured(*side) for side in sides)
    return first, second


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("pairs", [3, 6, 12, 30])
def test_code_against_itself_is_noise(machine, pairs):
    rng = np.random.default_rng(20_261_126)
    captures = [captured(rng, machine, 0.0, pairs) for _ in range(200)]
    claims = sum(not contrast(second, first).noise for first, second in captures)
    assert claims <= stats.binom.ppf(0.99, len(captures), 0.05)


@pytest.mark.parametrize("machine", MACHINES)
def test_a_tenth_more_is_found_with_twelve_pairs(machine):
    rng = np.random.default_rng(20_261_127)
    found = [
        contrast(second, first) for first, second in (captured(rng, machine, math.log(1.1), 12) for _ in range(60))
    ]
    assert np.mean([not each.noise and each.ratio > 1 for each in found]) >= (0.65 if machine is contended else 0.9)
    assert np.mean([each.ratio for each in found]) == pytest.approx(1.1, rel=0.01)


def test_contention_moves_the_estimate_less_than_a_mean_of_all_steps():
    rng = np.random.default_rng(20_261_128)
    captures = [captured(rng, contended, math.log(1.1), 12) for _ in range(100)]
    robust = [abs(math.log(contrast(second, first).ratio / 1.1)) for first, second in captures]
    means = [
        abs(math.log(np.mean(second.step_all_ns) / np.mean(first.step_all_ns) / 1.1)) for first, second in captures
    ]
    assert np.median(robust) < 0.6 * np.median(means)


def test_waiting_is_told_apart_by_the_processor_time_of_the_thread():
    """The second side waits half of its time, and works as much as the first."""
    rng = np.random.default_rng(1)
    first, second = captured(rng, quiet, 0.0, 8)
    for each in second.passes:
        each.step_all_ns[:] = [2 * ns for ns in each.step_all_ns]
    assert contrast(second, first).ratio == pytest.approx(2, rel=0.05)
    assert otherwise(second, first).ratio == pytest.approx(1, rel=0.05)
    assert otherwise(first, first) is None
