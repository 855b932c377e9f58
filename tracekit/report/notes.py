"""Notes beside the figures: limits, warnings, what was inferred."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, get_args

from tracekit.compare import Comparison
from tracekit.profile import Member, Profile
from tracekit.profile.start_up import cold_said
from tracekit.report.blocks import Note, NoteKind
from tracekit.report.conditions import condition_notes
from tracekit.report.contradictions import contradiction
from tracekit.report.warnings import busy, remarks, warnings
from tracekit.run_facts import contrast_of
from tracekit.units import ratio

if TYPE_CHECKING:
    from tracekit.report.model import Report


_ONE_TRACE = "the differences of the buckets are from one trace each: another trace may differ by more."
_WORTH_A_NOTE = 0.25  # of a step that recording adds: of less, the headline says enough
_GRAVEST_FIRST: tuple[NoteKind, ...] = get_args(NoteKind)


def notes(report: "Report") -> list[Note]:
    """All notes, one for each variant that they apply to."""
    collected = [Note("problem", (name,), text) for name, text in report.subject.problems]
    for member in report.members:
        collected += _of_run(report, member)
        if isinstance(member, Profile):
            collected += _of_trace(member)
    return [*collected, *condition_notes(report), *_of_comparisons(report)]


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


def _of_run(report: "Report", member: Member) -> Iterator[Note]:
    variants = (member.name,)
    if member.run is not None and (text := busy(member.run)):
        yield Note("warning", variants, text)
    for warning in warnings(member, report.base_of(member)):
        yield Note("warning", variants, warning)
    calibration = report.calibrations.get(member.name)
    if calibration is not None and calibration.stretch > _WORTH_A_NOTE and calibration.why_not:
        slower = f"traced steps take {ratio(1 + calibration.stretch)} as long as unprofiled ones"
        yield Note("warning", variants, f"{slower}, and are not calibrated: {calibration.why_not}.")
    for remark in remarks(member):
        yield Note("remark", variants, remark)


def _of_trace(profile: Profile) -> Iterator[Note]:
    variants = (profile.name,)
    for view, reason in profile.attribution.cannot_answer.items():
        yield Note("cannot answer", variants, f"the {view} time: {reason}{'' if reason.endswith('?') else '.'}")
    yield from _unknown_steps(profile)
    if profile.all_compile:
        yield Note("mean", variants, "no step is steady: the means are over all steps, compilation included.")
    if profile.cold_steps:
        yield Note("mean", variants, f"the means leave out {cold_said(profile)}.")
    if "host" not in profile.attribution.cannot_answer and not profile.trace.has_stacks:
        text = (
            "there are no Python stacks, so Python is inferred: it is the time between operators on the driving thread."
        )
        yield Note("inferred", variants, text)
    for limit in profile.trace.health:
        yield Note("health", variants, limit.message)


def _unknown_steps(profile: Profile) -> Iterator[Note]:
    for name, view in profile.views.items():
        unknown = int((~view.known).sum())
        if not unknown or view.reason:
            continue
        why = (
            "the file was cut, and some of their events may be missing."
            if profile.trace.cut_short
            else "they launched work, but none of it is in the trace."
        )
        yield Note("cannot answer", (profile.name,), f"the {name} time of {unknown} of {len(view.known)} steps: {why}")


def _of_comparisons(report: "Report") -> Iterator[Note]:
    for entry in report.comparisons:
        if entry.wall is None:
            text = f"its wall time cannot be compared with that of {entry.baseline}."
            yield Note("comparison", (entry.variant,), text)
        elif entry.wall.delta_interval is None:
            yield Note(
                "comparison", (entry.variant,), "there are too few steps to distinguish a difference from noise."
            )
        else:
            yield Note("comparison", (entry.variant,), _what_intervals_cover(report, entry))


def _what_intervals_cover(report: "Report", entry: Comparison) -> str:
    contrast = contrast_of(report.member(entry.variant), report.member(entry.baseline))
    contradicted = contradiction(report, entry)
    rests = _ONE_TRACE
    if entry.wall is not None and entry.wall.pairs:
        rests = (
            f"the intervals of its differences are over {entry.wall.pairs} pairs of traces, each of a separate "
            "process; the differences themselves are from the longest trace each."
        )
    if contradicted == "opposite":
        return f"{rests} Unprofiled, it differs in the opposite direction: trust that."
    if contradicted in {"smaller", "larger"}:
        return f"{rests} Unprofiled, the difference is {contradicted}: trust that."
    if contradicted == "unsure" and contrast is not None:
        doubt = f"{'untested' if contrast.interval is None else 'not significant'}: {contrast.doubt}"
        return f"{rests} Unprofiled, its difference from {entry.baseline} is {doubt}."
    return rests
