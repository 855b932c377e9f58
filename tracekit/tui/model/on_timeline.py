"""What stands for a row on the timeline: its gap, its step, or its longest event."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import PurePath
from typing import Any

import numpy as np

from tracekit.engine.buckets import ON_THE_GPU
from tracekit.errors import TracekitError
from tracekit.intervals import Bools, Ints
from tracekit.profile import Profile
from tracekit.sanitize import sanitize
from tracekit.timeline.categories import FRAMES, Kinds
from tracekit.trace.steps import in_steps
from tracekit.tui.model.content import place_in, to_source
from tracekit.tui.model.opened import Opened, steps_of
from tracekit.tui.model.panes.instances import event_label
from tracekit.tui.model.panes.names import name_code, of_owner, work_chosen
from tracekit.tui.model.selection import Kind, Selection
from tracekit.tui.model.sheet import ON_TIMELINE, Destination, Sheet
from tracekit.units import duration

_NARROWS: tuple[Kind, ...] = ("kernel", "operator", "module", "line", "bucket")
_NAMES = ("call", "operator", "host")  # columns that name events, the most precise first


def on_timeline(opened: Opened, now: Selection, sheet: Sheet, index: int) -> Selection | None:
    """The timeline at what stands for the row at this position; None if nothing of the recording does.

    A row that names something by itself is of its variant: of a column of that name, of the sheet's, or of any. Else it
    stands for the events to which Enter narrows, or for those of the line that it names.
    """
    if not 0 <= index < len(sheet):
        return None
    row = sheet.row_at(index)
    target = sheet.enter(row)
    if isinstance(target, Selection) and target.pane == "timeline":
        return target
    values = {name: sheet.table[name][row].as_py() for name in sheet.table.column_names}
    variant = values.get("variant") or sheet.of
    profiles = [profile for profile in opened.chosen(now) if variant in ("", profile.name)]
    try:
        shown = _by_itself(now, profiles, values) if not _is_cold(sheet, row) else None
        if shown is None and isinstance(target, Selection):
            shown = _longest_of(opened, now, target, profiles)
        if shown is None and (place := place_in(sheet, index)) is not None:
            narrowed = now.narrowed("line", (place.file, place.line), f"{PurePath(place.file).name}:{place.line}")
            shown = _longest_of(opened, now, narrowed, profiles)
    except TracekitError:  # the recording of the lines, for example, is gone
        return None
    return shown


def leading_on(sheet: Sheet, selection: Selection) -> Sheet:
    """The sheet, in which Enter leads to the line of a row, or else to what the row names on the timeline."""
    to_line = to_source(sheet, selection).enter
    named = [name for name in ("gap_ns", "event", "step", *_NAMES) if name in sheet.table.column_names]

    def enter(row: int) -> Destination:
        is_named = any(sheet.table[name][row].is_valid for name in named) and not _is_cold(sheet, row)
        return to_line(row) or (ON_TIMELINE if is_named else None)

    return replace(sheet, enter=enter)


def _is_cold(sheet: Sheet, row: int) -> bool:
    """Whether a row is of the recording of the first steps, which the timeline does not show."""
    return "trace" in sheet.table.column_names and sheet.table["trace"][row].as_py() == "cold"


def _by_itself(now: Selection, profiles: list[Profile], values: Mapping[str, Any]) -> Selection | None:
    """The timeline at the gap, the event, the longest of the named events, or the step that a row names."""
    if not profiles:
        return None
    if values.get("gap_ns") is not None:
        middle = values["start_ns"] + values["gap_ns"] // 2
        return _at_moment(now, profiles[0].name, middle, f"gap of {duration(values['gap_ns'])}")
    if isinstance(values.get("event"), int):
        return _at_event(now, profiles[0], values["event"])
    if any(values.get(name) for name in _NAMES):
        return _longest(now, ((profile, _named(profile, now, values)) for profile in profiles))
    if isinstance(step := values.get("step"), int):
        return now.without("event", "moment").narrowed("steps", (step, step), f"step {step}", "timeline")
    return None


def _named(profile: Profile, now: Selection, values: Mapping[str, Any]) -> Ints:
    """The events that the row's names mean, in its step if it has one, else in the steps that count."""
    trace, steps = profile.trace, steps_of(profile, now)
    if isinstance(step := values.get("step"), int):
        steps = np.array(trace.steps.number) == step
    name = next(values[key] for key in _NAMES if values.get(key))
    rows = np.flatnonzero((trace.name_codes == name_code(profile, name)) & (Kinds.of(trace).lanes != FRAMES))
    if values.get("call") and values.get("operator"):
        rows = rows[trace.name_codes[trace.operators.of(rows)] == name_code(profile, values["operator"])]
    if values.get("file") and values.get("line"):
        line = now.narrowed("line", (values["file"], values["line"]), "")
        rows = _some(rows, of_owner(profile, rows, line))
    return _some(rows, in_steps(steps, trace.steps.of(trace.ts_ns[rows])))


def _some(rows: Ints, chosen: Bools) -> Ints:
    """The chosen rows, or all where that would leave none."""
    return rows[chosen] if chosen.any() else rows


def _longest_of(opened: Opened, now: Selection, narrowed: Selection, profiles: list[Profile]) -> Selection | None:
    """The timeline at the longest event of a narrower selection, or the longest stretch of a bucket of the host."""
    if (finding := narrowed.of("finding")) is not None:
        name, place = finding
        evidence = opened.report.diagnoses[name].findings[place].evidence
        return _longest(now, [(opened.profile(name), np.array([each.event for each in evidence], np.int64))])
    if all(narrowed.of(kind) is None for kind in _NARROWS):
        return None
    bucket = narrowed.of("bucket")
    if bucket is not None and bucket not in ON_THE_GPU and narrowed.of("operator") is None:
        return _longest_stretch(opened, now, narrowed, profiles)
    events = ((profile, _events_of(opened, profile, narrowed)) for profile in profiles)
    return _longest(now, events) or _longest_stretch(opened, now, narrowed, profiles)


def _events_of(opened: Opened, profile: Profile, narrowed: Selection) -> Ints:
    bucket, named = narrowed.of("bucket"), narrowed.of("kernel") or narrowed.of("operator")
    behind = bucket is not None and bucket not in ON_THE_GPU
    work = opened.behind(profile, narrowed) if behind else opened.work(profile)
    wanted = work.event >= 0
    if narrowed.of("kernel") is not None or (named is not None and (behind or profile.trace.device != "gpu")):
        wanted &= work.name == name_code(profile, named)
    every = np.ones(len(profile.trace.steps), bool)
    for steps in (steps_of(profile, narrowed), every):
        chosen = wanted & work_chosen(profile, work, narrowed, steps)
        if chosen.any():
            return work.event[chosen].astype(np.int64)
    return np.zeros(0, np.int64)


def _longest(now: Selection, events: Iterable[tuple[Profile, Ints]]) -> Selection | None:
    """The timeline at the longest of these events of each variant."""
    longest = None
    for profile, rows in events:
        if len(rows):
            row = int(rows[np.argmax(profile.trace.dur_ns[rows])])
            if longest is None or profile.trace.dur_ns[row] > longest[0].trace.dur_ns[longest[1]]:
                longest = profile, row
    return _at_event(now, *longest) if longest is not None else None


def _longest_stretch(opened: Opened, now: Selection, narrowed: Selection, profiles: list[Profile]) -> Selection | None:
    """The timeline at the longest stretch of the selected bucket, module or line in the steps that count."""
    longest, bucket = (0, "", 0), narrowed.of("bucket")
    for profile in profiles:
        pieces = opened.pieces(profile, narrowed.view)
        chosen = in_steps(steps_of(profile, narrowed), pieces.step) & of_owner(profile, pieces.event, narrowed)
        if bucket is not None:
            chosen &= pieces.of(bucket)
        rows = np.flatnonzero(chosen)
        if len(rows):
            row = int(rows[np.argmax(pieces.dur[rows])])
            moment = int(pieces.start[row] + pieces.dur[row] // 2)
            longest = max(longest, (int(pieces.dur[row]), profile.name, moment))
    length, name, moment = longest
    if not length:
        return None
    facet = narrowed.facets[-1]
    return _at_moment(now, name, moment, f"{sanitize(facet.label, 24)} {duration(length)}")


def _at_moment(now: Selection, variant: str, at_ns: int, label: str) -> Selection:
    return now.without("event").narrowed("moment", (variant, at_ns), label, "timeline")


def _at_event(now: Selection, profile: Profile, row: int) -> Selection:
    if now.of("event") == (profile.name, row):
        return now.at("timeline")
    return now.without("moment").narrowed("event", (profile.name, row), event_label(profile, row), "timeline")
