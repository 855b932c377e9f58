"""The timeline: variants one above the other, at the selected event, steps or stretch of time."""

import numpy as np

from tracekit.tui.model.content import Content, Lanes, Pane, prose
from tracekit.tui.model.opened import OpenReport
from tracekit.tui.model.selection import Selection
from tracekit.tui.timeline import Event, Moment, Step, Stretch, Target


def timeline(opened: OpenReport, selection: Selection) -> Content:
    """The lanes of the variants, and which part of them to show."""
    selected_profiles = opened.profiles_of(selection)
    facets = (facet for facet in selection.facets if facet.kind in ("event", "moment", "window"))
    facet_profiles = [opened.profile(facet.value[0]) for facet in facets]
    selected_profiles = [
        *selected_profiles,
        *(
            profile
            for profile in facet_profiles
            if profile.name not in {selected.name for selected in selected_profiles}
        ),
    ]
    profiles = tuple(profile for profile in selected_profiles if len(profile.trace.steps))
    if not profiles:
        return Content((prose("No event has a duration: there is nothing to draw."),))
    return Content((Lanes(profiles, _target(opened, selection)),))


def _target(opened: OpenReport, selection: Selection) -> Target | None:
    if (event := selection.of("event")) is not None:
        return Event(*event)
    if (moment := selection.of("moment")) is not None:
        return Moment(*moment)
    if (window := selection.of("window")) is not None:
        return Stretch(*window)
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
