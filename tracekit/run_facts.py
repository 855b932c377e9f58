"""What a run says beside its traces: the unprofiled pace, what compiling cost, memory, losses, conditions.

Unprofiled and profiled times are two statements, never mixed: the first is the one to quote, the second explains it.
"""

import statistics
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tracekit.profile import Profile
from tracekit.run import Run, Variant, loss_tolerance
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


def facts(profiles: list[Profile], baseline: Profile) -> list[Fact]:
    """The lines that a run adds to the report; none for bare traces."""
    if not any(profile.variant for profile in profiles):
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
        Fact(label, {p.name: text for p in profiles if (text := tell(p)) is not None}, meaning)
        for label, tell, meaning in lines
    ]
    return [fact for fact in found if fact.values]


def warnings(profile: Profile, baseline: Profile) -> Iterator[str]:
    """What makes a variant's figures doubtful."""
    variant = profile.variant
    if variant is None:
        return
    off = loss_difference(profile, baseline)
    if off is not None and off > tolerance_of(profile, baseline):
        yield (
            f"its losses differ from {baseline.name}'s by up to {percent(off)}, and rounding explains "
            f"{percent(tolerance_of(profile, baseline))}: the variants may not compute the same thing."
        )
    if variant.measured is not None and variant.measured.steps < LEAST_STEPS:
        steps = "one step" if variant.measured.steps == 1 else f"{variant.measured.steps} steps"
        yield f"its unprofiled pace rests on {steps} only: train longer before comparing it."
    if variant.measured is not None and variant.measured.compiles_timed:
        yield (
            f"{count(variant.measured.compiles_timed)} compilations fell into the timed steps: it never settled, "
            "and its unprofiled pace contains them."
        )
    if variant.measured is not None and variant.profiled is not None and profile.answered["wall"].any():
        walls = profile.cost.wall_ns[profile.answered["wall"]]
        # The run's figure is a median on a CPU, and a mean on a GPU, which the host runs ahead of.
        pace = float(np.median(walls) if variant.measured.clock == "perf_counter" else walls.mean())
        if abs(pace / variant.profiled.step_ns - 1) > PACE_TOLERANCE:
            yield (
                f"the trace's pace ({duration(pace)}) is not the profiled pass's "
                f"({duration(variant.profiled.step_ns)}): the traced steps may not be representative."
            )
    yield from _too_fast(profile)
    if reasons := variant.gpu.get("throttled_by"):
        yield f"its GPU ran slower than it could ({', '.join(map(str, reasons))}) while it was measured."
    yield from variant.effective.notes


def _too_fast(profile: Profile) -> Iterator[str]:
    inflation = inflation_of(profile)
    if inflation is not None and inflation < _LEAST_INFLATION:
        yield (
            f"its traced steps took {ratio(inflation)} the unprofiled step time, and a profiler only ever adds: either "
            "the traced steps did less, or something else slowed the unprofiled ones. Capture again before comparing."
        )


def inflation_of(profile: Profile) -> float | None:
    """The mean of the trace in unprofiled step times."""
    mean, measured = profile.means["wall"], profile.variant.measured if profile.variant else None
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


def pay_back_steps(profile: Profile, baseline: Profile) -> float | None:
    """After how many steps the faster ones have made up for the dearer start; infinite where they never do.

    None where that cannot be said, as where the difference is within noise.
    """
    ours, theirs = profile.variant, baseline.variant
    if profile is baseline or ours is None or theirs is None or ours.measured is None or theirs.measured is None:
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


def contrast_of(profile: Profile, baseline: Profile) -> Contrast | None:
    """How the unprofiled step times compare; None for the baseline, and where one of the two was not measured."""
    ours, theirs = (p.variant.measured if p.variant else None for p in (profile, baseline))
    return None if ours is None or theirs is None or profile is baseline else contrast(ours, theirs)


def pays_back_within_noise(profile: Profile, baseline: Profile) -> bool:
    """Whether compiling cost something, and it cannot be said whether steps are faster for it."""
    found = contrast_of(profile, baseline)
    return bool(found and found.noise and profile.variant and profile.variant.requested.compile)


def loss_difference(profile: Profile, baseline: Profile) -> float | None:
    """The largest relative difference between the losses of the seeded check steps; None where they were not taken."""
    if profile is baseline or profile.variant is None or baseline.variant is None:
        return None
    pairs = list(zip(profile.variant.losses, baseline.variant.losses, strict=False))
    if not pairs:
        return None
    if any((ours is None) != (theirs is None) for ours, theirs in pairs):
        return float("inf")
    ours, theirs = (np.array([pair[side] or 0.0 for pair in pairs]) for side in (0, 1))
    return float((np.abs(ours - theirs) / np.maximum(np.abs(theirs), 1e-12)).max())


def tolerance_of(profile: Profile, baseline: Profile) -> float:
    """How far losses may lie apart before it says something: more where rounding alone moves them further."""
    return loss_tolerance(*(each.variant.loss_drift for each in (profile, baseline) if each.variant))


def described(run: Run) -> list[tuple[str, str]]:
    """The conditions of a run, label and value."""
    environment = run.environment
    lines = [("recipe", run.recipe), ("captured", run.created), ("device", run.device), ("data", run.data or "")]
    lines += [("parameters", ", ".join(f"{key}={value}" for key, value in run.params.items()))]
    lines += [(key, str(value)) for key, value in environment.items() if isinstance(value, str | int | float)]
    return [(label, value) for label, value in lines if value]


def _pace(profile: Profile) -> str | None:
    measured = profile.variant.measured if profile.variant else None
    if measured is None:
        return None
    step = duration(measured.step_ns)
    interval = own_interval(measured)
    if interval and len(measured.counted) >= _TELLING_PASSES:
        low, high = (duration(end, like=measured.step_ns) for end in interval)
        return f"{step} ({low} … {high})"
    return f"{step} ± {duration(measured.spread_ns / 2)}" if measured.steps > 1 else step  # a single step has none


def _throughput(profile: Profile) -> str | None:
    measured = profile.variant.measured if profile.variant else None
    return f"{rate(1e9 / measured.step_ns)} steps/s" if measured is not None and measured.step_ns else None


def _against(profile: Profile, baseline: Profile) -> str | None:
    found = contrast_of(profile, baseline)
    return compared(found) if found is not None else None


def _profiled(profile: Profile) -> str | None:
    mean, inflation = profile.means["wall"], inflation_of(profile)
    if mean is None:
        return None
    return f"{duration(mean.step_ns)} ({ratio(inflation)})" if inflation is not None else duration(mean.step_ns)


def _first(profile: Profile) -> str | None:
    measured = profile.variant.measured if profile.variant else None
    return duration(measured.first_steps_ns[0]) if measured and measured.first_steps_ns else None


def _cold_cost(profile: Profile) -> str | None:
    cost = cold_cost_ns(profile.variant)
    compiled = profile.variant is not None and profile.variant.requested.compile
    return duration(cost) if cost is not None and compiled else None


def _pay_back(profile: Profile, baseline: Profile) -> str | None:
    if pays_back_within_noise(profile, baseline):
        return "cannot be said: within noise"
    steps = pay_back_steps(profile, baseline)
    if steps is None:
        return None
    return "never: its steps are no faster" if steps == float("inf") else count(round(steps))


def _mode(profile: Profile) -> str | None:
    if profile.variant is None:
        return None
    asked, got = profile.variant.requested, profile.variant.effective.mode
    if not asked.compile:
        return "eager"
    text = f"{asked.mode or 'default'}{'' if asked.dynamic is None else f', dynamic={asked.dynamic}'}"
    return text if got in (None, asked.mode or "default") else f"{text} → {got}"


def _memory(profile: Profile) -> str | None:
    memory = profile.variant.memory if profile.variant else None
    if memory is None or memory.peak_allocated_bytes is None:
        return None
    if records_graphs(profile.variant):
        return f"{size(memory.peak_reserved_bytes)} reserved, its CUDA graphs' own among it"
    return f"{size(memory.peak_allocated_bytes)} ({size(memory.peak_reserved_bytes)})"


def records_graphs(variant: Variant | None) -> bool:
    """Whether CUDA graphs hold memory that the allocator counts as free, so that only what it reserved tells."""
    entries = variant.ledger.compiles if variant is not None else []
    return any(entry.kind == "cudagraph" and entry.span != "cudagraphify.get_container" for entry in entries)


def _gpu(profile: Profile) -> str | None:
    state = profile.variant.gpu if profile.variant else {}
    pairs = (("clocks.sm", "clocks.max.sm"), ("power.draw", "power.limit"))
    told = [f"{state[is_]} of {state[most]}" for is_, most in pairs if is_ in state and most in state]
    return ", ".join(told) or None


def _host_memory(profile: Profile) -> str | None:
    memory = profile.variant.memory if profile.variant else None
    return size(memory.host_peak_rss_bytes) if memory and memory.host_peak_rss_bytes else None


def _losses(profile: Profile, baseline: Profile) -> str | None:
    off = loss_difference(profile, baseline)
    if off is None:
        return None
    tolerance = tolerance_of(profile, baseline)
    if off > tolerance:
        return f"differs by {off:.1e}, more than the {tolerance:.0e} of rounding"
    if off > loss_tolerance():
        return f"the same but for rounding ({off:.1e} of up to {tolerance:.0e})"
    return f"the same (within {off:.0e})" if off else "the same"


def _metric(profile: Profile) -> str | None:
    metrics = profile.variant.metrics if profile.variant else {}
    return ", ".join(f"{key} {value:.3f}" for key, value in metrics.items() if value is not None) or None
