"""Which events does a step have on a lane? For a picture that names them at any depth of zoom."""

from dataclasses import dataclass

import numpy as np

from tracekit.intervals import Ints
from tracekit.timeline.categories import CATEGORIES
from tracekit.timeline.index import Group, Index
from tracekit.timeline.labels import labels
from tracekit.timeline.lane import NONE


@dataclass(frozen=True)
class EventKind:
    """Events of one name and category: a short name to draw, and the whole one; text of the trace, not sanitized."""

    label: str
    name: str
    category: int


@dataclass(frozen=True)
class StepEvents:
    """Events in order of their starts, ns from the beginning of the step and cut at its ends; `kind` is an index into
    `kinds`."""

    start_ns: Ints
    dur_ns: Ints
    kind: Ints
    kinds: tuple[EventKind, ...]


def step_events(index: Index, group: Group, depth: int, begin: int, end: int) -> StepEvents:
    """The events of a lane that lie in `[begin, end)`, at least in part; those without a duration are left out."""
    lane = group.lanes[depth]
    inside = np.flatnonzero((lane.start < end) & (lane.end > begin) & (lane.end > lane.start))
    start, beyond = np.maximum(lane.start[inside], begin), np.minimum(lane.end[inside], end)
    trace, row = index.profile.trace, lane.row[inside].astype(np.int64)
    name = np.where(row >= 0, trace.name_codes[np.maximum(row, 0)], NONE) if len(trace.name_codes) else row
    pair = (name.astype(np.int64) + 1) * len(CATEGORIES) + lane.category[inside]
    _, first, kind = np.unique(pair, return_index=True, return_inverse=True)
    kinds = []
    for event in inside[first].tolist():
        category = int(lane.category[event])
        known = CATEGORIES[category].label
        label = known if group.family == "idle" else labels(index, group, depth, event)[0]
        kinds.append(EventKind(label, index.name(int(lane.row[event])) if lane.row[event] >= 0 else known, category))
    return StepEvents(start - begin, beyond - start, kind.astype(np.int64), tuple(kinds))
