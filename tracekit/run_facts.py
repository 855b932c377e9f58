"""What a run says beside its traces: the unprofiled pace, what compiling cost, memory, losses, conditions.

Unprofiled and profiled times are two statements, never mixed: the first is the one to quote, the second explains it.
"""

import statistics
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tracekit.profile import Member, Profile
from tracekit.run import Run, Variant, divergence, loss_tolerance
from tracekit.units import count, duration, percent, rate, ratio, size
from tracekit.unprofiled import Contrast, compared, contrast, own_interval

PACE_TOLERANCE = 0.05
LEAST_STEPS = 5  # of fewer, one odd step moves the median, and a spread says little
_LEAST_INFLATION = 0.9  # profiled step time over unprofiled: a profiler only ever adds
_TELLING_PASSES = 3  # an interval from two is some thirty times as wide as they lie apart
_OWN_LOAD = 1.5  # loads, in cores: while passes run they are part of it


@dataclass(frozen=True)
class Fact:
    """One line about every variant. `values` has the text by variant; where nothing is known, nothing."""

    label: str
    values: dict[str, str]
    meaning: str


def facts(members: list[Member], baseline: Member) -> list[Fact]:
    """The lines that a run adds to the report; none for bare traces."""
    if not any(member.variant for member in members):
        return []
    lines = (
        (
            "step, unprofiled",
            _pace,
            "middle of its passes' medians, 95 % interval; of one pass the median, half the spread between quartiles",
        ),
        ("throughput", _throughput, "steps in a second at the unprofiled step time"),
        ("against the baseline", lambda p: _against(p, baseline), "ratio of the unprofiled step times, 95 % interval"),
        ("step, profiled", _profiled, "mean of the trace, and how much slower than unprofiled"),
        ("first step", _first, "unprofiled, compilation included"),
        ("compiling cost", _cold_cost, "what the first steps took beyond as many steady ones"),
        ("steps to break even", lambda p: _pay_back(p, baseline), "until the faster steps have made up for compiling"),
        ("mode", _mode, "requested, and effective where it differs"),
        ("peak GPU memory", _memory, "allocated (reserved) in the unprofiled pass, once it had settled"),
        ("GPU under load", _gpu, "clock and power right after the timed steps, of the highest allowed"),
        ("peak host memory", _host_memory, "resident set of the unprofiled pass"),
        (
            "loss against the baseline",
            lambda p: _losses(p, baseline),
            "largest relative difference over the check steps; rounding explains 1e-4, or thrice what it does to eager",
        ),
        ("metric", _metric, "the recipe's own, after the check steps"),
    )
    found = [
        Fact(label, {p.name: text for p in members if (text := tell(p)) is not None}, meaning)
        for label, tell, meaning in lines
    ]
    return [fact for fact in found if fact.values]


def warnings(member: Member, baseline: Member) -> Iterator[str]:
    """What makes a variant's figures doubtful."""
    variant = member.variant
    if variant is None:
        return
    off = loss_difference(member, baseline)
    if off is not None and off > tolerance_of(member, baseline):
        yield (
            f"its losses differ from {baseline.name}'s by up to {percent(off)}, and rounding explains "
            f"{percent(tolerance_of(member, baseline))}: the variants may not compute the same thing."
        )
    if variant.measured is not None and variant.measured.steps < LEAST_STEPS:
        steps = "one step" if variant.measured.steps == 1 else f"{variant.measured.steps} steps"
        yield f"its unprofiled pace rests on {steps} only: train longer before comparing it."
    if variant.measured is not None and variant.measured.compiles_timed:
        yield (
            f"{count(variant.measured.compiles_timed)} compilations fell into the timed steps: it never settled, "
            "and its unprofiled pace contains them."
        )
    if isinstance(member, Profile) and variant.measured and variant.profiled and member.answered["wall"].any():
        walls = member.cost.wall_ns[member.answered["wall"]]
        # The run's figure is a median on a CPU, and a mean on a GPU, which the host runs ahead of.
        pace = float(np.median(walls) if variant.measured.clock == "perf_counter" else walls.mean())
        if abs(pace / variant.profiled.step_ns - 1) > PACE_TOLERANCE:
            yield (
                f"the trace's pace ({duration(pace)}) is not the profiled pass's "
                f"({duration(variant.profiled.step_ns)}): the traced steps may not be representative."
            )
    yield from _too_fast(member)
    if reasons := variant.gpu.get("throttled_by"):
        yield f"its GPU ran slower than it could ({', '.join(map(str, reasons))}) while it was measured."
    yield from variant.effective.notes


def remarks(member: Member) -> Iterator[str]:
    """What is worth knowing of a variant, and nothing to doubt."""
    if member.variant is None:
        return
    if member.variant.step:
        yield f"a step is {member.variant.step}."
    for remark in member.variant.effective.remarks:
        yield remark if remark.endswith((".", "?", ")")) else f"{remark}."


def _too_fast(member: Member) -> Iterator[str]:
    inflation = inflation_of(member)
    if inflation is not None and inflation < _LEAST_INFLATION:
        yield (
            f"its traced steps took {ratio(inflation)} the unprofiled step time, and a profiler only ever adds: either "
            "the traced steps did less, or something else slowed the unprofiled ones. Capture again before comparing."
        )


def inflation_of(member: Member) -> float | None:
    """The mean of the trace in unprofiled step times."""
    mean, measured = member.means["wall"], member.variant.measured if member.variant else None
    return mean.step_ns / measured.step_ns if mean is not None and measured is not None else None


def busy(run: Run) -> str | None:
    """What to say where more wanted to run than there are processors."""
    cores, before = run.environment.get("cpus_usable"), run.environment.get("cpu_load")
    loads = [each.load for variant in run.variants if variant.measured for each in variant.measured.passes]
    during = statistics.median([load for load in loads if load is not None] or [0.0])
    if not isinstance(cores, int) or not isinstance(before, int | float):
        return None
    if before <= cores and during <= _OWN_LOAD * cores:
        return None
    load = f"load {before:.1f} before, {during:.1f} between the passes" if any(loads) else f"load {before:.1f} before"
    return f"the machine was busy ({load}, on {cores} cores): what else ran disturbed what was measured."


def cold_cost_ns(variant: Variant | None) -> float | None:
    """What the first steps took beyond as many steady ones, unprofiled."""
    if variant is None or variant.measured is None or not variant.measured.first_steps_ns:
        return None
    first = variant.measured.first_steps_ns
    return max(sum(first) - len(first) * variant.measured.step_ns, 0)


def pay_back_steps(member: Member, baseline: Member) -> float | None:
    """After how many steps the faster ones have made up for the dearer start; infinite where they never do.

    None where that cannot be said, as where the difference is within noise.
    """
    ours, theirs = member.variant, baseline.variant
    if member is baseline or ours is None or theirs is None or ours.measured is None or theirs.measured is None:
        return None
    if not ours.requested.compile:
        return None
    extra, base = cold_cost_ns(ours), cold_cost_ns(theirs)
    if extra is None or base is None:
        return None
    if contrast(ours.measured, theirs.measured).noise:
        return None  # a difference that may be none pays nothing back
    saved = theirs.measured.step_ns - ours.measured.step_ns
    return max(extra - base, 0) / saved if saved > 0 else float("inf")


def contrast_of(member: Member, baseline: Member) -> Contrast | None:
    """How the unprofiled step times compare; None for the baseline, and where one of the two was not measured."""
    ours, theirs = (p.variant.measured if p.variant else None for p in (member, baseline))
    return None if ours is None or theirs is None or member is baseline else contrast(ours, theirs)


def pays_back_within_noise(member: Member, baseline: Member) -> bool:
    """Whether compiling cost something, and it cannot be said whether steps are faster for it."""
    found = contrast_of(member, baseline)
    return bool(found and found.noise and member.variant and member.variant.requested.compile)


def loss_difference(member: Member, baseline: Member) -> float | None:
    """The largest relative difference between the losses of the seeded check steps; None where they were not taken."""
    if member is baseline or member.variant is None or baseline.variant is None:
        return None
    return divergence(baseline.variant.losses, member.variant.losses)


def tolerance_of(member: Member, baseline: Member) -> float:
    """How far losses may lie apart before it says something: more where rounding alone moves them further."""
    return loss_tolerance(*(each.variant.loss_drift for each in (member, baseline) if each.variant))


def described(run: Run) -> list[tuple[str, str]]:
    """The conditions of a run, label and value."""
    environment = run.environment
    lines = [("recipe", run.recipe), ("captured", run.created), ("device", run.device), ("data", run.data or "")]
    lines += [("parameters", ", ".join(f"{key}={value}" for key, value in run.params.items()))]
    lines += [(key, str(value)) for key, value in environment.items() if isinstance(value, str | int | float)]
    return [(label, value) for label, value in lines if value]


def _pace(member: Member) -> str | None:
    measured = member.variant.measured if member.variant else None
    if measured is None:
        return None
    step = duration(measured.step_ns)
    interval = own_interval(measured)
    if interval and len(measured.counted) >= _TELLING_PASSES:
        low, high = (duration(end, like=measured.step_ns) for end in interval)
        return f"{step} ({low} … {high})"
    return f"{step} ± {duration(measured.spread_ns / 2)}" if measured.steps > 1 else step  # a single step has none


def _throughput(member: Member) -> str | None:
    measured = member.variant.measured if member.variant else None
    return f"{rate(1e9 / measured.step_ns)} steps/s" if measured is not None and measured.step_ns else None


def _against(member: Member, baseline: Member) -> str | None:
    found = contrast_of(member, baseline)
    return compared(found) if found is not None else None


def _profiled(member: Member) -> str | None:
    mean, inflation = member.means["wall"], inflation_of(member)
    if mean is None:
        return None
    return f"{duration(mean.step_ns)} ({ratio(inflation)})" if inflation is not None else duration(mean.step_ns)


def _first(member: Member) -> str | None:
    measured = member.variant.measured if member.variant else None
    return duration(measured.first_steps_ns[0]) if measured and measured.first_steps_ns else None


def _cold_cost(member: Member) -> str | None:
    cost = cold_cost_ns(member.variant)
    compiled = member.variant is not None and member.variant.requested.compile
    return duration(cost) if cost is not None and compiled else None


def _pay_back(member: Member, baseline: Member) -> str | None:
    if pays_back_within_noise(member, baseline):
        return "cannot be said: within noise"
    steps = pay_back_steps(member, baseline)
    if steps is None:
        return None
    return "never: its steps are no faster" if steps == float("inf") else count(round(steps))


def _mode(member: Member) -> str | None:
    if member.variant is None:
        return None
    asked, got = member.variant.requested, member.variant.effective.mode
    if not asked.compile:
        return "eager"
    text = f"{asked.mode or 'default'}{'' if asked.dynamic is None else f', dynamic={asked.dynamic}'}"
    return text if got in (None, asked.mode or "default") else f"{text} → {got}"


def _memory(member: Member) -> str | None:
    memory = member.variant.memory if member.variant else None
    if memory is None or memory.peak_allocated_bytes is None:
        return None
    if records_graphs(member.variant):
        return f"{size(memory.peak_reserved_bytes)} reserved, its CUDA graphs' own among it"
    return f"{size(memory.peak_allocated_bytes)} ({size(memory.peak_reserved_bytes)})"


def records_graphs(variant: Variant | None) -> bool:
    """Whether CUDA graphs hold memory that the allocator counts as free, so that only what it reserved tells."""
    entries = variant.ledger.compiles if variant is not None else []
    return any(entry.kind == "cudagraph" and entry.span != "cudagraphify.get_container" for entry in entries)


def _gpu(member: Member) -> str | None:
    state = member.variant.gpu if member.variant else {}
    pairs = (("clocks.sm", "clocks.max.sm"), ("power.draw", "power.limit"))
    told = [f"{state[is_]} of {state[most]}" for is_, most in pairs if is_ in state and most in state]
    return ", ".join(told) or None


def _host_memory(member: Member) -> str | None:
    memory = member.variant.memory if member.variant else None
    return size(memory.host_peak_rss_bytes) if memory and memory.host_peak_rss_bytes else None


def _losses(member: Member, baseline: Member) -> str | None:
    off = loss_difference(member, baseline)
    if off is None:
        return None
    tolerance = tolerance_of(member, baseline)
    if off > tolerance:
        return f"differs by {off:.1e}, more than the {tolerance:.0e} of rounding"
    if off > loss_tolerance():
        return f"the same but for rounding ({off:.1e} of up to {tolerance:.0e})"
    return f"the same (within {off:.0e})" if off else "the same"


def _metric(member: Member) -> str | None:
    metrics = member.variant.metrics if member.variant else {}
    return ", ".join(f"{key} {value:.3f}" for key, value in metrics.items() if value is not None) or None
