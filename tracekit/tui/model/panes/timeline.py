"""The timeline: variants one above the other, at the selected event, steps or stretch of time; and what stands on it
for a row of another pane: its gap, its step, or its longest event, on its rank and in its recording.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from msgspec.structs import replace

from tracekit.analyses.stages import BUCKET_OF_STAGE, BUILDING
from tracekit.base.intervals import NO_INTS, Bools, Ints
from tracekit.base.names import sanitize
from tracekit.base.units import duration
from tracekit.engine.buckets import BUCKETS, CODES
from tracekit.errors import TracekitError
from tracekit.profile import Profile
from tracekit.ranks import rank_columns
from tracekit.report.sections.owners import NO_LIBRARY
from tracekit.timeline.categories import FRAMES, Kinds
from tracekit.trace.steps import in_steps
from tracekit.tui.model.content import Content, Lanes, Pane, place_in, prose
from tracekit.tui.model.opened import OpenReport, has_gpu, steps_of
from tracekit.tui.model.panes.instances import to_event
from tracekit.tui.model.panes.names import OWNING, name_code, of_owner, owned_by, work_chosen
from tracekit.tui.model.selection import Kind, Selection
from tracekit.tui.model.sheet import ON_TIMELINE, Destination, Sheet
from tracekit.tui.timeline import Event, Moment, Step, Stretch, Target

# What the value of a facet names on the timeline, beginning with a variant; the first of them that is selected counts.
_TARGETS: dict[Kind, Callable[..., Target]] = {"event": Event, "moment": Moment, "window": Stretch}
_NARROWS: tuple[Kind, ...] = ("kernel", "operator", "bucket", *OWNING)
_NAMES = ("call", "operator", "host")  # columns that name events, the most precise first


def timeline(opened: OpenReport, selection: Selection) -> Content:
    """The lanes of the variants, and which part of them to show."""
    selected_profiles = {profile.name: profile for profile in opened.profiles_of(selection)}
    for facet in selection.facets:
        if facet.kind in _TARGETS:
            selected_profiles.setdefault(facet.value[0], opened.profile(facet.value[0]))
    profiles = tuple(profile for profile in selected_profiles.values() if len(profile.trace.steps))
    if not profiles:
        return Content((prose("No event has a duration: there is nothing to draw."),))
    return Content((Lanes(profiles, _target(opened, selection)),))


def _target(opened: OpenReport, selection: Selection) -> Target | None:
    for kind, target in _TARGETS.items():
        if (value := selection.of(kind)) is not None:
            return target(*value)
    if (finding := selection.of("finding")) is not None:
        name, index = finding
        evidence = opened.report.diagnoses[name].findings[index].evidence
        return Event(name, evidence[0].event) if evidence else None
    if (steps := selection.of("steps")) is not None:
        numbers = np.array(opened.profiles_of(selection)[0].trace.steps.number)
        later_steps = np.flatnonzero(numbers >= steps[0])
        return Step(int(later_steps[0])) if len(later_steps) else None
    return None


def on_timeline(opened: OpenReport, now: Selection, sheet: Sheet, index: int) -> Selection | None:
    """The timeline at what stands for the row at this position; None if nothing of the recording does.

    A row that names something by itself is of its variant: of a column of that name, of the sheet's, or of any; and of
    the rank that it names, or of the recording of the first steps. Else it stands for the events to which Enter
    narrows, or for those of the line that it names.
    """
    if not 0 <= index < len(sheet):
        return None
    row = sheet.row_at(index)
    target = sheet.enter(row)
    if isinstance(target, Selection) and target.pane == "timeline":
        return target
    values = {name: sheet.table[name][row].as_py() for name in sheet.table.column_names}
    variant = values.get("variant") or sheet.variant
    profiles = [profile for profile in opened.profiles_of(now) if variant in ("", profile.name)]
    recordings: list[Profile | None] = [*profiles]
    if isinstance(rank := values.get("rank"), int):
        recordings = [opened.of_rank(profile, rank) for profile in profiles]
    if values.get("trace") == "cold":
        recordings = [opened.cold(profile) for profile in profiles]
    profiles = [recording for recording in recordings if recording is not None]
    place = place_in(sheet, row)
    to_line = now.to_line(place.file, place.line, None) if place is not None else None
    try:
        destination = _by_itself(opened, now, profiles, values)
        for narrowed in (target, _narrower(now, values, has_gpu(profiles)), to_line):
            if destination is None and isinstance(narrowed, Selection):
                destination = _longest_of(opened, now, narrowed, profiles)
    except TracekitError:  # the recording of the lines, for example, is gone
        return None
    return destination


def leading_on(sheet: Sheet, selection: Selection, on_gpu: bool = True) -> Sheet:
    """The sheet, in which Enter leads to what a row is about: its line, the lines of its phase or library, or else to
    what it names on the timeline.
    """
    columns = {*sheet.table.column_names}
    naming_columns = [name for name in ("gap_ns", "event", "step", "rank", "kind", "phase", *_NAMES) if name in columns]
    is_of_owner = bool(sheet.fields) and sheet.fields[0].name in ("phase", "library", "stage")

    def enter(row: int) -> Destination:
        if is_of_owner:
            name = sheet.fields[0].name
            return _narrower(selection, {name: sheet.table[name][row].as_py()}, on_gpu)
        if (place := place_in(sheet, row)) is not None:
            return selection.to_line(place.file, place.line)
        if "builder" in columns:  # of which only the function that calls it is known
            return _narrower(selection, {"stage": BUILDING}, on_gpu)
        return ON_TIMELINE if any(sheet.table[name][row].is_valid for name in naming_columns) else None

    return replace(sheet, enter=enter)


def _narrower(now: Selection, values: Mapping[str, Any], on_gpu: bool) -> Selection | None:
    """What the row of a phase, a library or a stage is made of."""
    stage = values.get("stage")
    if phase := BUILDING if stage == BUILDING or "builder" in values else values.get("phase"):  # which is a phase, too
        return now.narrowed("phase", phase, phase, "lines")
    if library := values.get("library"):
        return now.narrowed("library", "" if library == NO_LIBRARY else library, sanitize(library, 32), "lines")
    if stage:
        bucket = BUCKET_OF_STAGE.get(stage, "dataload")
        return now.to_bucket(bucket if on_gpu or bucket != "gpu_compute" else "cpu_compute", stage)
    return None


def _by_itself(
    opened: OpenReport, now: Selection, profiles: list[Profile], values: Mapping[str, Any]
) -> Selection | None:
    """The timeline at the gap, the event, the collective, the longest of the named events, or the step that a row
    names; for a rank, at what makes it late.
    """
    if not profiles:
        return None
    if values.get("gap_ns") is not None:
        middle = values["start_ns"] + values["gap_ns"] // 2
        return _at_moment(now, profiles[0].name, middle, f"gap of {duration(values['gap_ns'])}")
    if isinstance(values.get("event"), int):
        return _at_event(now, profiles[0], values["event"])
    if isinstance(values.get("rank"), int) or ("kind" in values and "ranks" in values):
        return _late(opened, now, profiles, values) or _longest(
            now, ((profile, _collectives(profile, values)) for profile in profiles)
        )
    if any(values.get(name) for name in _NAMES):
        return _longest(now, ((profile, _events_named(profile, now, values)) for profile in profiles))
    if isinstance(step := values.get("step"), int):
        return now.without("event", "moment").to_steps(step, step, "timeline")
    return None


def _late(opened: OpenReport, now: Selection, profiles: list[Profile], values: Mapping[str, Any]) -> Selection | None:
    """The timeline at the longest stretch of the bucket that makes a rank late."""
    bucket = next(
        (candidate for candidate in BUCKETS.values() if values.get("because") in (candidate.key, candidate.label)), None
    )
    if bucket is None:
        return None
    narrowed = now.narrowed("bucket", bucket.key, bucket.label)
    if isinstance(step := values.get("step"), int):
        narrowed = narrowed.to_steps(step, step)
    return _longest_stretch(opened, now, replace(narrowed, view="wall"), profiles)


def _collectives(profile: Profile, values: Mapping[str, Any]) -> Ints:
    """The collectives of a rank that a row means, as far as it says which."""
    calls = rank_columns(profile, profile.captures[0].rank).calls
    is_meant = np.ones(len(calls), bool)
    for name in ("kind", "group", "ranks", "step", "seq", "bytes"):
        if values.get(name) is not None:
            fits = is_meant & np.array([cell == values[name] for cell in calls[name].to_pylist()], bool)
            is_meant = fits if fits.any() else is_meant
    base, trace = profile.trace.base_ns, profile.trace
    start, end = (calls[name].to_numpy()[is_meant] - base for name in ("start_ns", "end_ns"))
    rows = np.flatnonzero(np.isin(trace.ts_ns, start))
    return rows[np.isin(trace.ts_ns[rows] + trace.dur_ns[rows], end)]


def _events_named(profile: Profile, now: Selection, values: Mapping[str, Any]) -> Ints:
    """The events that the row's names mean, in its step if it has one, else in the steps that count."""
    trace, steps = profile.trace, steps_of(profile, now)
    if isinstance(step := values.get("step"), int):
        steps = np.array(trace.steps.number) == step
    name = next(values[key] for key in _NAMES if values.get(key))
    rows = np.flatnonzero((trace.name_codes == name_code(profile, name)) & (Kinds.of(trace).lanes != FRAMES))
    if values.get("call") and values.get("operator"):
        rows = rows[trace.name_codes[trace.operators.of(rows)] == name_code(profile, values["operator"])]
    if values.get("file") and values.get("line"):
        line = now.to_line(values["file"], values["line"])
        rows = _subset_or_all(rows, of_owner(profile, rows, line))
    return _subset_or_all(rows, in_steps(steps, trace.steps.of(trace.ts_ns[rows])))


def _subset_or_all(rows: Ints, mask: Bools) -> Ints:
    """The rows of the mask, or all where that would leave none."""
    return rows[mask] if mask.any() else rows


def _longest_of(opened: OpenReport, now: Selection, narrowed: Selection, profiles: list[Profile]) -> Selection | None:
    """The timeline at the longest event of a narrower selection, or the longest stretch of a bucket of the host."""
    if (finding_key := narrowed.of("finding")) is not None:
        name, index = finding_key
        finding, late = opened.report.diagnoses[name].findings[index], opened.report.straggler(name)
        if finding.id == "late_rank" and late is not None:
            late_profile = opened.of_rank(opened.profile(name), late.rank)
            destination = _late(opened, now, [late_profile], {"because": late.bucket}) if late_profile else None
            if destination is not None:
                return destination
        evidence = finding.evidence
        return _longest(now, [(opened.profile(name), np.array([instance.event for instance in evidence], np.int64))])
    if all(narrowed.of(kind) is None for kind in _NARROWS):
        return None
    if narrowed.is_of_host and narrowed.of("operator") is None:
        return _longest_stretch(opened, now, narrowed, profiles)
    events = ((profile, _events_of(opened, profile, narrowed)) for profile in profiles)
    return _longest(now, events) or _longest_stretch(opened, now, narrowed, profiles)


def _events_of(opened: OpenReport, profile: Profile, narrowed: Selection) -> Ints:
    name, is_of_host = narrowed.of("kernel") or narrowed.of("operator"), narrowed.is_of_host
    work = opened.behind(profile, narrowed)
    is_candidate = work.event >= 0
    if narrowed.of("kernel") is not None or (name is not None and (is_of_host or profile.trace.device != "gpu")):
        is_candidate &= work.name == name_code(profile, name)
    all_steps = np.ones(len(profile.trace.steps), bool)
    for steps in (steps_of(profile, narrowed), all_steps):
        is_selected = is_candidate & work_chosen(profile, work, narrowed, steps)
        if is_selected.any():
            return work.event[is_selected].astype(np.int64)
    return NO_INTS


def _longest(now: Selection, events: Iterable[tuple[Profile, Ints]]) -> Selection | None:
    """The timeline at the longest of these events of each variant."""
    longest = None
    for profile, rows in events:
        if len(rows):
            row = int(rows[np.argmax(profile.trace.dur_ns[rows])])
            if longest is None or profile.trace.dur_ns[row] > longest[0].trace.dur_ns[longest[1]]:
                longest = profile, row
    return _at_event(now, *longest) if longest is not None else None


def _longest_stretch(
    opened: OpenReport, now: Selection, narrowed: Selection, profiles: list[Profile]
) -> Selection | None:
    """The timeline at the longest stretch of the selected bucket or owner in the steps that count."""
    longest = (0, "", 0)
    for profile in profiles:
        start, end = _stretches(opened, profile, narrowed)
        pieces, middle = opened.pieces(profile, narrowed.view), (start + end) // 2
        step = pieces.step[np.searchsorted(pieces.start, middle, side="right") - 1] if len(pieces.start) else middle
        rows = np.flatnonzero(in_steps(steps_of(profile, narrowed), step))
        if len(rows):
            row = int(rows[np.argmax((end - start)[rows])])
            longest = max(longest, (int(end[row] - start[row]), profile.name, int(middle[row])))
    length, name, moment = longest
    if not length:
        return None
    return _at_moment(now, name, moment, f"{sanitize(narrowed.facets[-1].label, 24)} {duration(length)}")


def _stretches(opened: OpenReport, profile: Profile, narrowed: Selection) -> tuple[Ints, Ints]:
    """Where the stretches of the selected bucket and owner begin and end."""
    bucket = narrowed.of("bucket")
    if all(narrowed.of(kind) is None for kind in OWNING):
        pieces = opened.pieces(profile, narrowed.view)
        in_bucket = pieces.of(bucket)
        return pieces.start[in_bucket], pieces.end[in_bucket]
    blame = profile.ownership.blame.get(narrowed.view)
    if blame is None:
        return NO_INTS, NO_INTS
    is_selected = blame.known & owned_by(profile.ownership.owners, narrowed)[blame.owner]
    if bucket is not None:
        is_selected &= blame.bucket == CODES[bucket]
    bounds = np.flatnonzero(np.diff(is_selected[: len(blame.edges) - 1].astype(np.int8), prepend=0, append=0))
    return blame.edges[bounds[::2]], blame.edges[bounds[1::2]]


def _at_moment(now: Selection, variant: str, at_ns: int, label: str) -> Selection:
    return now.without("event").narrowed("moment", (variant, at_ns), label, "timeline")


def _at_event(now: Selection, profile: Profile, row: int) -> Selection:
    if now.of("event") == (profile.name, row):
        return now.at("timeline")
    return to_event(now.without("moment"), profile, row, "timeline")


TIMELINE = Pane(
    "timeline",
    "Timeline",
    "Every event over time: what the GPU did and what kept it idle, streams, threads, compilations. The selected event "
    "is described below; t shows what encloses its launch. A range (r) narrows kernels and operators to it.",
    timeline,
    key="T",
)
