"""The steps of a run have one pattern, whatever each pass would decide alone."""

import math
import random

import pytest
from msgspec.structs import replace

from tests.statistics.test_typical_step import EVALUATION, MS, on_a_machine
from tracekit.run import Measured, Pass, Requested, Run, Turn, Variant, with_common_period
from tracekit.statistics.uncertainty import typical


def timed(name, passes, params=None):
    timed_passes = [
        Pass(round=number, started_ns=number, step_ns=1, step_all_ns=times, counted=number > 0)
        for number, times in enumerate(passes)
    ]
    every = [ns for times in passes for ns in times]
    measured = Measured(step_ns=1, step_all_ns=every, spread_ns=0, clock="perf_counter", passes=timed_passes)
    return Variant(name=name, outcome="ok", requested=Requested(compile=False), params=params or {}, measured=measured)


def decided(*variants):
    run = Run(created="2026-11-26", tracekit="0", recipe="r", script="r.py", variants=[*variants])
    return with_common_period(run).variants


def test_one_period_for_all_passes_of_all_variants():
    """The passes of `slow` are too short to show any: each would quote the median of the cheap steps."""
    rng = random.Random(1)
    eager = timed("eager", [on_a_machine(EVALUATION, 300, rng, first=rng.randrange(10)) for _ in range(4)])
    slow = timed("slow", [on_a_machine([3 * ms for ms in EVALUATION], 24, rng, first=k) for k in range(4)])
    variants = decided(eager, slow)
    assert {(each.alike, each.period) for variant in variants for each in variant.measured.passes} == {(False, 10)}
    quoted = [variant.measured.step_ns / MS for variant in variants]
    assert quoted == [pytest.approx(1.9, rel=0.05), pytest.approx(5.7, rel=0.05)]
    for variant in variants:
        counted = [each.step_ns for each in variant.measured.counted_passes]
        assert variant.measured.step_ns == round(math.exp(typical([math.log(step_ns) for step_ns in counted])))
        assert (variant.measured.alike, variant.measured.period) == (False, 10)


def test_variants_of_other_parameters_may_repeat_otherwise():
    rng = random.Random(2)
    small = timed("small", [on_a_machine([1] * 4 + [9], 100, rng) for _ in range(3)], {"batch": 4})
    large = timed("large", [on_a_machine([10], 100, rng) for _ in range(3)], {"batch": 8})
    assert [variant.measured.period for variant in decided(small, large)] == [5, 1]


def test_a_variant_that_alternates_alone_is_not_quoted_by_the_median_of_one_kind():
    rng = random.Random(3)
    steady = timed("steady", [on_a_machine([10], 60, rng, tail=0.0) for _ in range(3)])
    uneven = timed("uneven", [on_a_machine([10, 30], 60, rng, tail=0.0) for _ in range(3)])
    variants = decided(steady, uneven)
    quoted = [variant.measured.step_ns / MS for variant in variants]
    assert quoted == [pytest.approx(10, rel=0.05), pytest.approx(20, rel=0.05)]


@pytest.mark.parametrize("steps", [3, 12, 100])
def test_the_first_step_after_each_halt_is_no_period(steps):
    """A process that was halted meets cold caches and a core that slept; its turns are all of one length."""
    rng = random.Random(4)
    halted = []
    for _ in range(4):
        times = [int((20 if step % steps == 0 else 1) * rng.uniform(1, 1.1) * MS) for step in range(8 * steps)]
        halted.append(times)
    first = timed("first", [[int(rng.uniform(1, 1.1) * MS) for _ in range(300)], *halted])
    turns = [Turn(started_ns=number, steps=steps, processor_ns=1) for number in range(8)]
    passes = [replace(each, turns=turns if each.round else []) for each in first.measured.passes]
    (variant,) = decided(replace(first, measured=replace(first.measured, passes=passes)))
    assert variant.measured.period == 1
    if steps > 3:  # else a third of all steps are such first ones, a kind of their own
        assert variant.measured.step_ns == pytest.approx(1.05 * MS, rel=0.05)


def test_what_recurs_within_turns_is_one():
    rng = random.Random(5)
    made = timed("eager", [on_a_machine(EVALUATION, 100, rng) for _ in range(4)])
    turns = [Turn(started_ns=number, steps=50, processor_ns=1) for number in range(2)]
    passes = [replace(each, turns=turns) for each in made.measured.passes]
    (variant,) = decided(replace(made, measured=replace(made.measured, passes=passes)))
    assert variant.measured.period == 10


def test_what_was_not_measured_stays_as_it_is():
    failed = Variant(name="failed", outcome="error", requested=Requested(compile=False))
    assert decided(failed) == [failed]
