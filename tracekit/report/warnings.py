"""Sentences about what makes a variant's figures doubtful, and other remarks."""

import statistics
from collections.abc import Iterator

from tracekit.profile import Member, Profile
from tracekit.run import Measured, Run, was_busy
from tracekit.run_facts import inflation_of, loss_difference, tolerance_of
from tracekit.typical_step import typical_step
from tracekit.units import duration, many, percent, ratio

PACE_TOLERANCE = 0.05
LEAST_STEPS = 5  # with fewer, one odd step moves the median, and a spread means little
_LEAST_INFLATION = 0.9  # profiled step time divided by unprofiled: a profiler can only add time


def warnings(member: Member, baseline: Member) -> Iterator[str]:
    """What makes a variant's figures doubtful."""
    variant = member.variant
    if variant is None:
        return
    on_a_gpu = not isinstance(member, Profile) or member.trace.device == "gpu"
    if variant.memory.peak_allocated_bytes == 0 and not on_a_gpu:  # None where a CPU was asked for
        yield 'it put nothing on the GPU, and computed on the CPU: move its model and batches there (.to("cuda")).'
    difference = loss_difference(member, baseline)
    if difference is not None and difference > tolerance_of(member, baseline):
        yield (
            f"its losses differ from {baseline.name}'s by up to {percent(difference)}, but rounding explains only "
            f"{percent(tolerance_of(member, baseline))}: the variants may not compute the same thing."
        )
    if variant.measured is not None and variant.measured.steps < LEAST_STEPS:
        steps = "one step" if variant.measured.steps == 1 else f"{variant.measured.steps} steps"
        yield f"its unprofiled step time is based on only {steps}: train longer before comparing it."
    if variant.measured is not None and variant.measured.compiles_timed:
        compiles = many(variant.measured.compiles_timed, "compilation")
        yield f"{compiles} happened during the timed steps, so its unprofiled step time includes compiling."
    if isinstance(member, Profile) and variant.measured and variant.profiled and member.answered["wall"].any():
        walls = member.attribution.wall_ns[member.answered["wall"]]
        # The run's figure is the typical step on a CPU, and a mean on a GPU, which the host runs ahead of.
        on_a_cpu = variant.measured.clock == "perf_counter"
        step_ns = float(typical_step(walls.tolist()).step_ns if on_a_cpu else walls.mean())
        if abs(step_ns / variant.profiled.step_ns - 1) > PACE_TOLERANCE:
            yield (
                f"a step takes {duration(step_ns)} in the trace, but {duration(variant.profiled.step_ns)} over the "
                "whole profiled pass: the traced steps may not be representative."
            )
    yield from _too_fast(member)
    if reasons := variant.gpu.get("throttled_by"):
        yield f"its GPU ran slower than it could ({', '.join(map(str, reasons))}) while it was measured."
    yield from variant.effective.notes


def remarks(member: Member) -> Iterator[str]:
    """Remarks about a variant that cast no doubt on its figures."""
    if member.variant is None:
        return
    if member.variant.step:
        yield f"a step is {member.variant.step}."
    if member.variant.measured is not None:
        yield from _unlike(member.variant.measured)
    for remark in member.variant.effective.remarks:
        yield f"{remark.rstrip('.')}."


def _unlike(measured: Measured) -> Iterator[str]:
    """A sentence if most passes saw steps that are not alike, so that the step time is no median."""
    unlike = [timed_pass for timed_pass in measured.counted_passes if not timed_pass.alike]
    if 2 * len(unlike) <= len(measured.counted_passes):
        return
    low, *_, high = statistics.quantiles(measured.step_all_ns, n=10)
    steps = f"its steps are not alike ({duration(low)} to {duration(high)})"
    period = statistics.mode(timed_pass.period for timed_pass in unlike)
    if period > 1:
        yield f"{steps}, but repeat every {period}: its unprofiled step time is the mean over whole periods."
    else:
        yield f"{steps}: its unprofiled step time is their mean, not their median."


def _too_fast(member: Member) -> Iterator[str]:
    inflation = inflation_of(member)
    if inflation is not None and inflation < _LEAST_INFLATION:
        yield (
            f"its traced steps took only {ratio(inflation)} the unprofiled step time, but a profiler adds time: either "
            "the traced steps did less, or something else slowed the unprofiled ones. Capture again before comparing."
        )


def busy(run: Run) -> str | None:
    """A sentence if more processes wanted to run than there are cores, else None."""
    cores, before = run.environment.get("cpus_usable"), run.environment.get("cpu_load")
    loads = [timed_pass.load for variant in run.variants if variant.measured for timed_pass in variant.measured.passes]
    during = statistics.median([load for load in loads if load is not None] or [0.0])
    if not was_busy(run.environment, before, during):
        return None
    load = f"load {before:.1f} before, {during:.1f} between the passes" if any(loads) else f"load {before:.1f} before"
    return f"the machine was busy ({load}, on {cores} cores): other work disturbed the measurements."
