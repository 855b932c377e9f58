"""Notes beside the figures: limits, warnings about what makes figures doubtful, what was inferred."""

import statistics
from collections.abc import Iterator
from typing import TYPE_CHECKING, get_args

from tracekit.base.disclosure import current
from tracekit.base.units import duration, many, percent, ratio
from tracekit.profile import Member, Profile
from tracekit.profile.opening import as_shown
from tracekit.profile.run_facts import contrast_of, inflation_of, loss_difference, tolerance_of
from tracekit.profile.start_up import cold_steps_sentence
from tracekit.report.blocks import Note, NoteKind
from tracekit.report.comparability import condition_notes, contradiction
from tracekit.run import Run, was_busy
from tracekit.run.contrast import queued
from tracekit.statistics.typical_step import typical_step

if TYPE_CHECKING:
    from tracekit.report.model import Report


_ONE_TRACE = "the differences of the buckets are from one trace each: another trace may differ by more."
_WORTH_A_NOTE = 0.25  # of a step that recording adds: of less, the headline says enough
_GRAVEST_FIRST: tuple[NoteKind, ...] = get_args(NoteKind)
PACE_TOLERANCE = 0.05
LEAST_STEPS = 5  # with fewer, one odd step moves the median, and a spread means little
_LEAST_INFLATION = 0.9  # profiled step time divided by unprofiled: a profiler can only add time


def notes(report: "Report") -> list[Note]:
    """All notes, one for each variant that they apply to."""
    collected = [Note("problem", (name,), text) for name, text in report.subject.problems]
    for member in report.members:
        doubts = [text] if member.run is not None and (text := busy(member.run)) else []
        doubts += warnings(member, report.base_of(member))
        calibration = report.calibrations.get(member.name)
        if calibration is not None and calibration.stretch > _WORTH_A_NOTE and calibration.why_not:
            slower = f"traced steps take {ratio(1 + calibration.stretch)} as long as unprofiled ones"
            why = f"{calibration.why_not}. Costs are scaled down to the unprofiled step"
            doubts.append(f"{slower}, and are not calibrated: {why}.")
        collected += [Note("warning", (member.name,), text) for text in doubts]
        collected += [Note("remark", (member.name,), text) for text in remarks(member)]
        if isinstance(member, Profile):
            collected += [Note(kind, (member.name,), text) for kind, text in _of_trace(report, member)]
    return [*collected, *condition_notes(report), *_of_comparisons(report), *_of_stand_ins(report)]


def _of_stand_ins(report: "Report") -> Iterator[Note]:
    """What a confidential report does not show."""
    if (filter_ := current()) is not None:
        # What is read or shown only on demand has secrets, too, which the sentence counts.
        for profile in report.profiles:
            _ = profile.ownership, profile.module_paths, profile.loading
            _ = [of_rank.loading for of_rank in profile.per_rank.values()]
            for capture in profile.captures:
                if capture.window != "detail":  # whose path no face shows
                    filter_.path(capture.path)
        if (watched := report.subject.watch) is not None:
            _ = watched.shown.loading, [as_shown(error, path) for path, error in watched.unreadable.items()]
            records = [record.path for record in (watched.shown, *watched.others)]
            for path in (watched.folder, *records, *(trace.path for trace in watched.traces)):
                filter_.path(path)
        yield Note("conditions", (), filter_.sentence())


def merged(notes: list[Note], all_variants: list[str]) -> list[Note]:
    """Equal notes merged, the gravest first; one that applies to every variant names none."""
    variants_of: dict[tuple[NoteKind, str], list[str]] = {}
    for note in notes:
        variants_of.setdefault((note.kind, note.text), []).extend(note.variants)
    once = [
        Note(kind, () if variants == all_variants else tuple(variants), text)
        for (kind, text), variants in variants_of.items()
    ]
    return sorted(once, key=lambda note: _GRAVEST_FIRST.index(note.kind))


def _of_trace(report: "Report", profile: Profile) -> Iterator[tuple[NoteKind, str]]:
    for view, reason in profile.attribution.cannot_answer.items():
        yield "cannot answer", f"the {view} time: {reason}{'' if reason.endswith('?') else '.'}"
    why_unknown = (
        "the file was cut, and some of their events may be missing."
        if profile.trace.cut_short
        else "they launched work, but none of it is in the trace."
    )
    for name, step_view in profile.views.items():
        unknown = int((~step_view.known).sum())
        if unknown and not step_view.reason:
            yield "cannot answer", f"the {name} time of {unknown} of {len(step_view.known)} steps: {why_unknown}"

    # What the means are over.
    if profile.all_compile:
        yield "mean", "no step is steady: the means are over all steps, compilation included."
    if profile.cold_steps:
        yield "mean", f"the means leave out {cold_steps_sentence(profile)}."
    if steps := [*profile.unshared]:
        lasting = profile.attribution.answered_view.step_ns
        left_out = f"{len(steps)} steps, of {duration(float(lasting[steps].mean()))} on average: they do"
        if len(steps) == 1:
            left_out = f"step {profile.trace.steps.number[steps[0]]}, of {duration(int(lasting[steps[0]]))}: it does"
        yield "mean", f"the means leave out {left_out} work that another variant's trace does not hold at all."

    host = profile.views["host"]
    if not host.reason and not profile.trace.has_stacks and host.totals[:, host.keys.index("python")].any():
        inferred = "it is the time between operators on the driving thread."
        yield "inferred", f"there are no Python stacks, so Python is inferred: {inferred}"
    for limit in profile.health:
        yield "health", limit.message

    # What would be told if the trace broke no law, for each law: the kinds of finding, in words.
    kinds: dict[str, dict[str, None]] = {}
    for withheld in report.diagnoses[profile.name].withheld:
        kinds.setdefault(withheld.reason, {})[withheld.id.replace("_", " ")] = None
    for reason, names in kinds.items():
        finding, rests = ("finding", "is withheld, since it rests")
        if len(names) > 1:
            finding, rests = ("findings", "are withheld, since they rest")
        yield "cannot answer", f"the {finding} {', '.join(names)} {rests} on figures in doubt. {reason}"


def _of_comparisons(report: "Report") -> Iterator[Note]:
    """What the intervals of differences cover, and what unprofiled passes say instead."""
    for entry in report.comparisons:
        contrast = contrast_of(report.member(entry.variant), report.member(entry.baseline))
        text = _ONE_TRACE
        if entry.wall is None:
            text = f"its wall time cannot be compared with that of {entry.baseline}."
        elif entry.wall.delta_interval is None:
            text = "there are too few steps to distinguish a difference from noise."
        elif entry.wall.pairs:
            text = (
                f"the intervals of its differences are over {entry.wall.pairs} pairs of traces, each of a separate "
                "process; the differences themselves are from the longest trace each."
            )
        if entry.wall is not None and entry.wall.delta_interval is not None:
            match contradiction(report, entry):
                case "opposite":
                    text += " Unprofiled, it differs in the opposite direction: trust that."
                case "smaller" | "larger" as contradicted:
                    text += f" Unprofiled, the difference is {contradicted}: trust that."
                case "unsure" if contrast is not None:
                    doubt = f"{'untested' if contrast.interval is None else 'not significant'}: {contrast.doubt}"
                    text += f" Unprofiled, its difference from {entry.baseline} is {doubt}."
        yield Note("comparison", (entry.variant,), text)


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
        step_ns = float(typical_step(walls.tolist(), member.pattern).step_ns if on_a_cpu else walls.mean())
        if abs(step_ns / variant.profiled.step_ns - 1) > PACE_TOLERANCE:
            yield (
                f"a step takes {duration(step_ns)} in the trace, but {duration(variant.profiled.step_ns)} over the "
                "whole profiled pass: the traced steps may not be representative."
            )
    inflation = inflation_of(member)
    if inflation is not None and inflation < _LEAST_INFLATION:
        yield (
            f"its traced steps took only {ratio(inflation)} the unprofiled step time, but a profiler adds time: either "
            "the traced steps did less, or something else slowed the unprofiled ones. Capture again before comparing."
        )
    if reasons := variant.gpu_throttled_by:
        yield f"its GPU ran slower than it could ({', '.join(reasons)}) while it was measured."
    if others := variant.gpu_neighbours:
        yield (
            f"{many(others, 'other process', 'other processes')} had its GPU open while it was measured: if "
            "they computed, its steps waited for theirs."
        )
    yield from variant.effective.notes


def remarks(member: Member) -> Iterator[str]:
    """Remarks about a variant that cast no doubt on its figures."""
    if member.variant is None:
        return
    if member.variant.step:
        yield f"a step is {member.variant.step}."
    measured = member.variant.measured
    if measured is not None and not measured.alike:
        low, *_, high = statistics.quantiles(measured.step_all_ns, n=10)
        steps = f"its steps are not alike ({duration(low)} to {duration(high)})"
        periods = f", but repeat every {measured.period}: its unprofiled step time is the mean over whole periods."
        mean = ": its unprofiled step time is their mean, not their median."
        yield f"{steps}{periods if measured.period > 1 else mean}"
    for remark in member.variant.effective.remarks:
        yield f"{remark.rstrip('.')}."


def busy(run: Run) -> str | None:
    """A sentence if more processes wanted to run than there are cores, or one had the core of steps, else None."""
    cores, before = run.environment.get("cpus_usable"), run.environment.get("cpu_load")
    loads = [timed_pass.load for variant in run.variants if variant.measured for timed_pass in variant.measured.passes]
    during = statistics.median([load for load in loads if load is not None] or [0.0])
    waited = queued(run.variants)
    if not was_busy(run.environment, before, during):
        return f"{waited}." if waited else None
    load = f"load {before:.1f} before, {during:.1f} between the passes" if any(loads) else f"load {before:.1f} before"
    return f"the machine was busy ({load}, on {cores} cores): {waited or 'other work disturbed the measurements'}."
