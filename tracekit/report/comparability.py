"""May two variants be compared? Do their traces do the same work, were they captured under the same conditions, and do
the traces and the unprofiled passes agree on the difference? Where passes were compared, they decide: a difference
between traces rests on few processes, and on steps that the profiler slows down.
"""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import msgspec

from tracekit.analyses import summary
from tracekit.base.names import sanitize
from tracekit.base.units import percent
from tracekit.profile import Member, Profile
from tracekit.profile.cached import name_of
from tracekit.profile.compare import Comparison, Difference
from tracekit.profile.grouping import kernel_times, summed
from tracekit.profile.run_facts import contrast_of
from tracekit.profile.subject import device_name
from tracekit.report.blocks import Note
from tracekit.run import Run
from tracekit.run.contrast import prior_of_pairs
from tracekit.statistics.uncertainty import CONFIDENCE, Interval, half_width_of_mean, interval_from_logs
from tracekit.trace.reading.event_details import BYTES_OF_TYPE
from tracekit.trace.storing.cache import kept
from tracekit.vocabulary.kernel_class import kernel_class

if TYPE_CHECKING:
    from tracekit.report.model import Report


# Kinds of work that no compiler adds or removes; attention that is not fused consists of matrix products.
_KINDS = {
    "convolution": "convolutions",
    "matmul": "matrix products",
    "attention": "matrix products",
    "recurrent": "recurrent layers",
    "sparse": "sparse products",
    "embedding": "embeddings",
}
_LARGE_SHARE = 0.2  # of the work: where one side has so much of a kind and the other has none, they do different work
_PRODUCTS = ("matmul", "convolution")
_MIN_SIZES = 3  # sizes of operands on either side, to say that the sides have none in common
_MAX_REASONS = 2  # reasons that a sentence carries
_ALWAYS_DIFFERENT = {"captured", "cpu load", "gather bytes per s"}  # these differ between any two runs
# What unprofiled passes say instead: `opposite`, the other one is faster; `unsure`, it is not known that they differ;
# `smaller` or `larger`, they differ in that direction, but the intervals of the two ratios do not overlap.
Contradiction = Literal["", "opposite", "unsure", "smaller", "larger"]


class Work(msgspec.Struct, frozen=True):
    """What a step does: figures by which two traces are told apart."""

    device: str
    shares: dict[str, float]  # of each of these kinds in the time of kernels, or of operators on a CPU
    sizes: set[tuple[int, ...]]  # of what one step multiplies, in any order of dimensions, where recorded
    types: set[str]  # of the same


def unlike(member: Member, base: Member) -> str:
    """A sentence, after a space, if the two did different work, or the same on another device or in another type.

    Variants of one run are of one program: what differs there was asked for.
    """
    if member.run is not None and member.run is base.run:
        return ""
    (name, device), (base_name, other_device) = ((sanitize(side.name), device_name(side)) for side in (member, base))
    same_program = member.run is not None and base.run is not None and member.run.recipe == base.run.recipe
    types: list[set[str]] = []
    if isinstance(member, Profile) and isinstance(base, Profile) and not same_program:
        work, base_work = known_work(member), known_work(base)
        reasons = [*_differences(member.name, work, base.name, base_work)]
        if min(len(work.sizes), len(base_work.sizes)) >= _MIN_SIZES and work.sizes.isdisjoint(base_work.sizes):
            reasons.append("no operand of their matrix products and convolutions has the same size")
        if reasons:
            return f" This is hardly a comparison: {'; '.join(reasons[:_MAX_REASONS])}."
        types = [work.types, base_work.types]
    if device and other_device and device != other_device:
        return f" They ran on different devices: {name} on {sanitize(device)}, {base_name} on {sanitize(other_device)}."
    if all(types) and types and types[0].isdisjoint(types[1]):
        type_texts = [" and ".join(sorted(side_types)) for side_types in types]
        return f" They compute with different types: {name} multiplies {type_texts[0]}, {base_name} {type_texts[1]}."
    return ""


def known_work(profile: Profile) -> Work:
    """What a step of the variant does; from the cache where the same code worked it out."""
    modules = __name__, "tracekit.profile.grouping", "tracekit.profile.profile", "tracekit.analyses.operators"
    return kept(profile.trace.entry, lambda: name_of(profile, "work", *modules), Work, lambda: _work(profile))


def _work(profile: Profile) -> Work:
    by_kind = work_by_kind(profile)
    total = sum(by_kind.values())
    shares: dict[str, float] = {}
    for kind, name in _KINDS.items():
        if by_kind.get(kind):
            shares[name] = shares.get(name, 0.0) + by_kind[kind] / total
    work = Work(profile.trace.device, shares, set(), set())
    for row, operator in profile.sample.arguments.items():
        if kernel_class("", profile.trace.names[profile.trace.name_codes[row]]) in _PRODUCTS:
            work.sizes.update(tuple(sorted(dims)) for dims in operator.inputs or () if len(dims) > 1)
            work.types.update(kind.removeprefix("c10::") for kind in operator.types if kind in BYTES_OF_TYPE)
    return work


def _differences(name: str, work: Work, base_name: str, base_work: Work) -> Iterator[str]:
    if work.device != base_work.device:
        yield f"one computes on a {work.device.upper()}, the other on a {base_work.device.upper()}"
        return
    for kind in dict.fromkeys(_KINDS.values()) if work.shares and base_work.shares else ():
        for richer_name, richer, poorer_name, poorer in (
            (name, work, base_name, base_work),
            (base_name, base_work, name, work),
        ):
            if richer.shares.get(kind, 0.0) >= _LARGE_SHARE and kind not in poorer.shares:
                share = f"{percent(richer.shares[kind])} of {sanitize(richer_name)}'s work is {kind}"
                yield f"{share}, and {sanitize(poorer_name)} has none"


def work_by_kind(profile: Profile) -> dict[str, float]:
    """The time of a step by kind of work, ns: that of the GPU's kernels, or of operators on the CPU."""
    if profile.trace.device == "gpu":
        return summed(kernel_times(profile), "label")
    work: dict[str, float] = {}
    for row in summary(profile, "operators").table.select(["class", "step_ns"]).to_pylist():
        work[row["class"]] = work.get(row["class"], 0.0) + row["step_ns"]
    return work


def condition_notes(report: "Report") -> Iterator[Note]:
    """Which conditions differ between runs, and which comparisons are of different recipes, data or devices."""
    for entry in report.comparisons:
        member, baseline = report.member(entry.variant), report.member(entry.baseline)
        for condition, our_value, their_value in different_things(member, baseline):
            differs = f"its {condition} differs from that of {entry.baseline} ({our_value}; {their_value})"
            yield Note("warning", (entry.variant,), f"{differs}: that alone may explain a difference in time.")
    # Conditions whose values differ between the runs.
    of_runs = {name: dict(described(run)) for name, run in report.subject.runs.items()}
    for label in dict.fromkeys(label for conditions in of_runs.values() for label in conditions):
        values = {name: conditions.get(label, "–") for name, conditions in of_runs.items()}
        if label.replace("_", " ") not in _ALWAYS_DIFFERENT and len(set(values.values())) > 1:
            listed = ", ".join(f"{value} ({name})" for name, value in values.items())
            yield Note("conditions", (), f"{label}: {listed}.")


def described(run: Run) -> list[tuple[str, str]]:
    """The conditions of a run, label and value."""
    passes = [timed_pass for variant in run.variants if variant.measured for timed_pass in variant.measured.passes]
    turns = "blocks of steps" if any(timed_pass.turns for timed_pass in passes) else ""
    lines = [
        ("recipe", run.recipe),
        ("captured", run.created),
        ("device", run.device),
        ("data", run.data or ""),
        ("taking turns", f"whole passes, because {run.why_no_turns}" if run.why_no_turns else turns),
        ("parameters", ", ".join(f"{key}={value}" for key, value in run.params.items())),
        *((key, str(value)) for key, value in run.environment.items() if isinstance(value, str | int | float)),
    ]
    return [(label, value) for label, value in lines if value]


def different_things(member: Member, baseline: Member) -> Iterator[tuple[str, str, str]]:
    """Recipe, data or device, where both are known and differ."""
    pairs = [("device", device_name(member), device_name(baseline))]
    if member.run is not None and baseline.run is not None and member.run is not baseline.run:
        pairs += [(name, getattr(member.run, name), getattr(baseline.run, name)) for name in ("recipe", "data")]
    for condition, our_value, their_value in pairs:
        if our_value and their_value and our_value != their_value:
            yield condition, our_value, their_value


def contradiction(report: "Report", entry: Comparison) -> Contradiction:
    """How the unprofiled passes contradict the difference in wall time; empty if they do not, or were not compared."""
    member, baseline = report.member(entry.variant), report.member(entry.baseline)
    contrast, wall, mean = contrast_of(member, baseline), entry.wall, baseline.means["wall"]
    if contrast is None or wall is None or mean is None:
        return ""
    if contrast.noise:
        return "" if wall.is_noise() else "unsure"
    if (contrast.ratio > 1) != (wall.delta_ns > 0):
        return "opposite"
    traced = _ratio_of_traces(wall, mean.step_ns, member, baseline)
    if contrast.interval is None or traced is None:
        return ""
    if contrast.interval[0] <= traced[1] and traced[0] <= contrast.interval[1]:  # they overlap
        return ""
    middle = math.sqrt(traced[0] * traced[1])
    # Both are on the same side of 1, so the larger difference is the one further from it.
    return "larger" if abs(math.log(contrast.ratio)) > abs(math.log(middle)) else "smaller"


def _ratio_of_traces(wall: Difference, base_ns: float, member: Member, baseline: Member) -> Interval | None:
    """The interval of the ratio of the traced steps: over pairs of traces, or else of one trace each, which differ as
    much as pairs of processes are expected to."""
    if wall.pairs and wall.delta_interval is not None:
        low, high = (1 + end / base_ns for end in wall.delta_interval)
        return (low, high) if low > 0 else None
    sides = [side.variant.measured for side in (member, baseline) if side.variant and side.variant.measured]
    if base_ns + wall.delta_ns <= 0:
        return None
    log = math.log((base_ns + wall.delta_ns) / base_ns)
    half = half_width_of_mean([log], CONFIDENCE, prior_of_pairs(*sides))
    return interval_from_logs(log - half, log + half)
