"""What does a typical step of each variant look like? Lanes as stretches of columns, on one scale, for a picture.

The steps begin at the same position and have the same scale, so that a shorter one looks shorter.

Which events does a step have on a lane? For a picture that names them at any depth of zoom.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct

from tracekit.base.intervals import Ints, runs
from tracekit.timeline.categories import CATEGORIES
from tracekit.timeline.index import Family, Group, Index
from tracekit.timeline.labels import labels
from tracekit.timeline.lane import NONE, Columns

COLUMNS = 600
_LEVELS = 8  # of coverage of a column
_MIN_COLUMNS_OF_A_NAMED_EVENT = 4  # columns: a wider event is named
_DEPTH = 6  # lanes of a thread
_THREADS = 2
_FAMILIES: tuple[Family, ...] = ("wall", "gpu", "idle", "compile", "host")


class LabelledEvents(Struct, frozen=True):
    """An event that is wide enough for a name: its columns, its kind, and its names, the longest first, not
    sanitized."""

    first: int
    stop: int
    category: int
    names: tuple[str, ...]
    dur_ns: int


class EventKind(Struct, frozen=True):
    """Events of one name and category: a short name to draw, and the whole one; text of the trace, not sanitized."""

    label: str
    name: str
    category: int


class StepEvents(Struct, frozen=True):
    """Events in order of their starts, ns from the beginning of the step and cut at its ends; `kind` is an index into
    `kinds`."""

    start_ns: Ints
    dur_ns: Ints
    kind: Ints
    kinds: tuple[EventKind, ...]


class LaneDrawing(Struct, frozen=True):
    """A lane: stretches of columns `[first, stop)` of one category, `level` eighths of which are covered.

    `title` is on the first lane of a stream or a thread; it is text of the trace, not sanitized.
    """

    title: str
    family: Family
    first: Ints
    stop: Ints
    category: Ints
    level: Ints
    named_events: tuple[LabelledEvents, ...]
    events: StepEvents


class StepDrawing(Struct, frozen=True):
    """One step of a variant: the N of its annotation, how long it takes, and its lanes from top to bottom."""

    variant: str
    step: int
    dur_ns: int
    lanes: tuple[LaneDrawing, ...]


class TypicalSteps(Struct, frozen=True):
    """A step of each variant; `columns` columns represent `span_ns`."""

    span_ns: int
    columns: int
    stills: tuple[StepDrawing, ...]


def typical_steps(indexes: Sequence[Index], columns: int = COLUMNS) -> TypicalSteps:
    """The typical step of each variant, from its beginning; the longest fills the picture."""
    begins = [int(index.step_bounds[0][index.typical_step]) for index in indexes]
    ends = [int(index.step_bounds[1][index.typical_step]) for index in indexes]
    span = max([columns, *(end - begin for begin, end in zip(begins, ends, strict=True))])
    stills = []
    for index, begin, end in zip(indexes, begins, ends, strict=True):
        edges = begin + np.arange(columns + 1, dtype=np.int64) * span // columns
        lanes = tuple(_lanes(index, np.minimum(edges, max(end, begin + 1))))
        stills.append(StepDrawing(index.profile.name, index.numbers[index.typical_step], end - begin, lanes))
    return TypicalSteps(span, columns, tuple(stills))


def _lanes(index: Index, edges: Ints) -> Iterator[LaneDrawing]:
    """The lanes on which something happens in the step; what follows its end is not shown."""
    step_edges = edges[: int(np.searchsorted(edges, edges[-1])) + 1]
    threads = 0
    for group in index.groups:
        threads += group.family == "host"
        if group.family not in _FAMILIES or (group.family == "host" and threads > _THREADS):
            continue
        title = group.title
        for depth in range(min(len(group.lanes), _DEPTH)):
            columns = group.lanes[depth].columns(step_edges)
            if (columns.category != NONE).any():
                yield _lane(index, group, depth, columns, title)
                title = ""


def _lane(index: Index, group: Group, depth: int, columns: Columns, title: str) -> LaneDrawing:
    level = np.where(columns.category == NONE, 0, np.clip(np.rint(columns.share * _LEVELS), 1, _LEVELS)).astype(
        np.int64
    )
    category = columns.category.astype(np.int64)
    bounds = runs(category * (_LEVELS + 1) + level)
    busy = np.flatnonzero(category[bounds[:-1]] != NONE)
    first = bounds[:-1][busy].astype(np.int64)
    named_events = tuple(_wide_events(index, group, depth, columns, level))
    stop = bounds[1:][busy].astype(np.int64)
    events = step_events(index, group, depth, int(columns.edges[0]), int(columns.edges[-1]))
    return LaneDrawing(title, group.family, first, stop, category[first], level[first], named_events, events)


def _wide_events(index: Index, group: Group, depth: int, columns: Columns, level: Ints) -> Iterator[LabelledEvents]:
    events = np.where(level == _LEVELS, columns.filling, NONE)
    bounds = runs(events)
    lane = group.lanes[depth]
    for run in np.flatnonzero(np.diff(bounds) >= _MIN_COLUMNS_OF_A_NAMED_EVENT).tolist():
        first, stop, event = int(bounds[run]), int(bounds[run + 1]), int(events[bounds[run]])
        if event != NONE:
            dur = int(lane.end[event] - lane.start[event])
            yield LabelledEvents(first, stop, int(columns.category[first]), labels(index, group, depth, event), dur)


def step_events(index: Index, group: Group, depth: int, begin: int, end: int) -> StepEvents:
    """The events of a lane that lie in `[begin, end)`, at least in part; those without a duration are left out."""
    lane = group.lanes[depth]
    positions = np.flatnonzero((lane.start < end) & (lane.end > begin) & (lane.end > lane.start))
    start, stop = np.maximum(lane.start[positions], begin), np.minimum(lane.end[positions], end)
    trace, row = index.profile.trace, lane.row[positions].astype(np.int64)
    name = np.where(row >= 0, trace.name_codes[np.maximum(row, 0)], NONE) if len(trace.name_codes) else row
    pair = (name.astype(np.int64) + 1) * len(CATEGORIES) + lane.category[positions]
    _, first, kind = np.unique(pair, return_index=True, return_inverse=True)
    kinds = []
    for event in positions[first].tolist():
        category = int(lane.category[event])
        category_label = CATEGORIES[category].label
        label = category_label if group.family == "idle" else labels(index, group, depth, event)[0]
        kinds.append(
            EventKind(label, index.name(int(lane.row[event])) if lane.row[event] >= 0 else category_label, category)
        )
    return StepEvents(start - begin, stop - start, kind.astype(np.int64), tuple(kinds))
