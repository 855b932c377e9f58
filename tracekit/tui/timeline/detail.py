"""What is known about the selected stretch: its full name, its duration, what launched it and what encloses it."""

from collections.abc import Iterator

import numpy as np

from tracekit.timeline import CATEGORIES, NONE, Index
from tracekit.timeline.labels import short_name
from tracekit.tui.timeline.slices import Slice, alike, bounds, event, find, lane_of
from tracekit.units import count, duration

_AROUND = 4  # enclosing events that are named, from the innermost on


def title(index: Index, chosen: Slice) -> str:
    """The full name, or the kind of a stretch that is no event. Text from the trace, not sanitized."""
    row = event(index, chosen)
    category = CATEGORIES[lane_of(index, chosen).category[chosen.position]]
    if index.groups[chosen.group].family == "wall":
        return f"{category.label}: {index.name(row)}" if row >= 0 else category.label
    return index.name(row) if row >= 0 else category.label


def facts(index: Index, chosen: Slice) -> list[str]:
    """How long it took and when, its number among events of its name, what launched and encloses it. Not sanitized."""
    start, end = bounds(index, chosen)
    group = index.groups[chosen.group]
    said = [f"{duration(end - start)} on {group.title}" if group.family != "wall" else duration(end - start)]
    said.append(_when(index, start))
    rows = alike(index, chosen)
    if len(rows) > 1:
        said.append(f"instance {count(int(np.searchsorted(rows, event(index, chosen))) + 1)} of {count(len(rows))}")
    said.extend(_launched(index, chosen, start) if group.family == "gpu" else ())
    around = surrounding(index, chosen)
    if around and group.family != "gpu":
        said.append("in " + " ← ".join(around[:_AROUND]))
    return said


def _when(index: Index, start: int) -> str:
    """The time since its step began, or until the first step if it precedes all steps."""
    lows = index.step_bounds[0]
    step = int(np.searchsorted(lows, start, side="right")) - 1
    if step < 0:
        return f"{duration(int(lows[0]) - start)} before step {index.numbers[0]}"
    return f"{duration(start - int(lows[step]))} into step {index.numbers[step]}"


def surrounding(index: Index, chosen: Slice) -> list[str]:
    """Short names of the operators and Python frames that enclose an event on its thread, the innermost first."""
    group = index.groups[chosen.group]
    start, end = bounds(index, chosen)
    lanes = list(group.lanes[: chosen.lane])
    if group.family == "host":
        lanes += [
            lane for each in index.groups if (each.family, each.track) == ("frames", group.track) for lane in each.lanes
        ]
    around = [
        (int(lane.start[position]), -int(lane.end[position]), int(lane.row[position]))
        for lane in lanes
        if (position := lane.at(start)) != NONE and lane.end[position] >= end
    ]
    return [short_name(index.name(row), on_gpu=False) for _, _, row in sorted(around, reverse=True)]


def _launched(index: Index, chosen: Slice, start: int) -> Iterator[str]:
    trace = index.profile.trace
    call = int(trace.links.launch(np.array([event(index, chosen)]))[0])
    if call < 0:
        return
    waited = start - int(trace.ts_ns[call])
    launch = find(index, call)
    around = surrounding(index, launch) if launch is not None else []
    yield f"launched {duration(waited)} before by " + " ← ".join([index.name(call), *around[: _AROUND - 1]])
