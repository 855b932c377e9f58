"""Captures on simulated machines: the real rounds, which decide when to stop, with passes whose times are drawn."""

import itertools
import math
import statistics
from types import SimpleNamespace

import numpy as np

from tracekit.capture import rounds
from tracekit.capture.job import PassResult
from tracekit.capture.options import Options
from tracekit.capture.rounds import Rounds, merged
from tracekit.run import Measured, Pass, Requested, Run, Variant
from tracekit.run.contrast import contrast

STEPS = 12
STEP_NS = 5_000_000
count_passes = itertools.count()  # replaced where passes take time


def one_pass(number, step_ns, start, steps=None):
    return Pass(round=number, started_ns=start, step_ns=step_ns, step_all_ns=steps or [step_ns], seconds=1.0)


def measured(*passes):
    nothing = Measured(step_ns=1, step_all_ns=[1], spread_ns=0, clock="perf_counter")
    return merged(nothing, list(passes))


# How the level of a pass changes from one to the next, as logarithms.
def steady(rng, count):
    return 0.005 * rng.standard_normal(count)


def apart(rng, count):
    return 0.04 * rng.standard_normal(count)


def walking(rng, count):
    return np.cumsum(0.03 * rng.standard_normal(count))


def correlated(rng, count):
    level, levels = 0.05 * rng.standard_normal(), []
    for _ in range(count):
        level = 0.8 * level + 0.03 * rng.standard_normal()
        levels.append(level)
    return np.array(levels)


def heating_up(rng, count):
    return np.linspace(0, 0.3, count) + 0.01 * rng.standard_normal(count)


def disturbed(rng, count):
    return 0.01 * rng.standard_normal(count) + (rng.random(count) < 0.15) * rng.exponential(0.4, count)


def joined_half_way(rng, count):
    return 0.01 * rng.standard_normal(count) + 0.3 * (np.arange(count) > rng.integers(count))


def persistent(rng, count):
    """Processes of one code differ for as long as they live, as in the captures that `prior_of_pairs` is based on."""
    between_pairs = rng.choice([0.027, 0.039, 0.048, 0.075, 0.08])
    return between_pairs / math.sqrt(2) * rng.standard_normal(count)


def heavy_tailed(rng, count):
    return 0.02 * rng.standard_t(3, count)


def two_speeds(rng, count):
    """A machine that is slower for a while, whatever runs."""
    slower = np.cumsum(rng.random(count) < 0.2) % 2
    return 0.15 * slower + 0.01 * rng.standard_normal(count)


def everything(rng, count):
    return persistent(rng, count) + walking(rng, count) / 3 + heating_up(rng, count) / 3


MACHINES = [
    steady,
    apart,
    walking,
    correlated,
    heating_up,
    disturbed,
    joined_half_way,
    persistent,
    heavy_tailed,
    two_speeds,
    everything,
]


def run_on(monkeypatch, rng, machine, effects, passes=8, scatter=0.05, begins=0, **options):
    """The run of a capture of variants by their effects, as logarithms of times, on that machine; steps have
    outliers."""
    levels, clock = iter(machine(rng, len(effects) * passes)), itertools.count(begins)

    def run_pass(name, number):
        noise = scatter * np.abs(rng.standard_normal(STEPS)) + (rng.random(STEPS) < 0.05)
        times = (STEP_NS * np.exp(next(levels) + effects[name] + noise)).astype(int).tolist()
        return one_pass(number, round(statistics.median(times)), next(clock), times)

    def measure_again(number, planned, *_, **__):
        next(count_passes)
        return PassResult(measured=measured(run_pass(planned.name, number)))

    monkeypatch.setattr(rounds, "measure_again", measure_again)
    # Nothing recurs in these steps; looking for what does would take most of the time of the simulations.
    monkeypatch.setattr(rounds, "with_common_period", lambda run: run)
    variants = [
        Variant(name=name, outcome="ok", requested=Requested(compile=False), measured=measured(run_pass(name, 0)))
        for name in effects
    ]
    run = Run(created="", tracekit="", recipe="", script="", variants=variants)
    prepared = SimpleNamespace(variants=[SimpleNamespace(name=name) for name in effects])
    given = Options("", **{"budget": 1e9, "passes": passes, "tell": lambda _: None, **options})
    *_, last = Rounds(prepared, None, dict.fromkeys(effects), given).runs(run)
    return last


def captured(monkeypatch, rng, machine, effect, passes=8, scatter=0.05, **options):
    """How the second of two variants compares with the first."""
    run = run_on(monkeypatch, rng, machine, {"a": 0.0, "b": effect}, passes, scatter, **options)
    return contrast(run.variants[1].measured, run.variants[0].measured)
