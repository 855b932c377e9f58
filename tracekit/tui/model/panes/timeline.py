"""The timeline: variants one above the other, at the selected event, steps or stretch of time."""

from collections.abc import Callable

import numpy as np

from tracekit.tui.model.content import Content, Lanes, Pane, prose
from tracekit.tui.model.opened import OpenReport
from tracekit.tui.model.selection import Kind, Selection
from tracekit.tui.timeline import Event, Moment, Step, Stretch, Target

# What the value of a facet names on the timeline, beginning with a variant; the first of them that is selected counts.
_TARGETS: dict[Kind, Callable[..., Target]] = {"event": Event, "moment": Moment, "window": Stretch}


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


TIMELINE = Pane(
    "timeline",
    "Timeline",
    "Every event over time: what the GPU did and what kept it idle, streams, threads, compilations. The selected event "
    "is described below; t shows what encloses its launch. A range (r) narrows kernels and operators to it.",
    timeline,
    key="T",
)
