"""Which event is selected, and which one is next: by name, on the same lane, or of the same kind."""

from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from tracekit.base.intervals import NO_INTS, Ints
from tracekit.timeline import CATEGORY, NONE, Family, Index, Lane
from tracekit.timeline.categories import HOST

JUMPS = ("gap", "sync", "compile")


class Slice(Struct, frozen=True):
    """One stretch on one lane of a variant: the numbers of group and lane, and the position on the lane."""

    group: int
    lane: int
    position: int


def lane_of(index: Index, selection: Slice) -> Lane:
    """The lane on which the stretch is."""
    return index.groups[selection.group].lanes[selection.lane]


def bounds(index: Index, selection: Slice) -> tuple[int, int]:
    """The start and end of the stretch, in ns on the trace's clock."""
    lane = lane_of(index, selection)
    return int(lane.start[selection.position]), int(lane.end[selection.position])


def event(index: Index, selection: Slice) -> int:
    """The row of the stretch in the events table; −1 if it is no event."""
    return int(lane_of(index, selection).row[selection.position])


def find(index: Index, row: int) -> Slice | None:
    """The stretch that shows an event; None if it is on no lane."""
    start = index.profile.trace.ts_ns[row]
    for number, group in enumerate(index.groups):
        if group.family in ("gpu", "host", "frames"):
            for depth, lane in enumerate(group.lanes):
                low, high = np.searchsorted(lane.start, (start, start + 1))
                matches = np.flatnonzero(lane.row[low:high] == row)
                if len(matches):
                    return Slice(number, depth, int(low + matches[0]))
    return None


def alike(index: Index, selection: Slice) -> Ints:
    """The rows of all events of the same name on lanes of the same kind; empty if the stretch is no event."""
    row = event(index, selection)
    if row < 0 or index.groups[selection.group].family == "wall":
        return NO_INTS
    names, lanes = index.profile.trace.name_codes, index.kinds.lanes
    return np.flatnonzero((names == names[row]) & (lanes == lanes[row]))


def next_alike(index: Index, selection: Slice, way: int) -> Slice | None:
    """The next or previous event of the same name; for a bucket or a gap, the next such stretch of the lane."""
    rows = alike(index, selection)
    if len(rows):
        position = int(np.searchsorted(rows, event(index, selection))) + way
        return find(index, int(rows[position])) if 0 <= position < len(rows) else None
    lane = lane_of(index, selection)
    positions = np.flatnonzero(lane.category == lane.category[selection.position])
    position = int(np.searchsorted(positions, selection.position)) + way
    return Slice(selection.group, selection.lane, int(positions[position])) if 0 <= position < len(positions) else None


def matching(index: Index, pattern: str) -> Ints:
    """The rows of the events on lanes whose names contain every word of a pattern, ignoring case, in order of time."""
    words = pattern.lower().split()
    fits = np.array([all(word in name.lower() for word in words) for name in index.profile.trace.names], bool)
    rows: Ints = np.flatnonzero(fits[index.profile.trace.name_codes] & (index.kinds.lanes != NONE))
    return rows


def beside(index: Index, selection: Slice, way: int) -> Slice | None:
    """The next or previous stretch of the same lane."""
    position = selection.position + way
    is_on_lane = 0 <= position < len(lane_of(index, selection))
    return Slice(selection.group, selection.lane, position) if is_on_lane else None


def nearest(index: Index, group: int, lane: int, moment: int) -> Slice | None:
    """The stretch of a lane that covers a moment, or else the nearest one; None on an empty lane."""
    row = index.groups[group].lanes[lane]
    position = int(np.searchsorted(row.start, moment, side="right")) - 1
    neighbours = [neighbour for neighbour in (position, position + 1) if 0 <= neighbour < len(row)]
    if not neighbours:
        return None
    distance = [
        max(int(row.start[neighbour]) - moment, moment - int(row.end[neighbour]), 0) for neighbour in neighbours
    ]
    return Slice(group, lane, neighbours[int(np.argmin(distance))])


def longest_gap(index: Index, low: int, high: int) -> Slice | None:
    """The longest gap of the GPU that begins between two moments."""
    for number, lane in _lanes_of(index, "idle"):
        positions = np.flatnonzero((lane.start >= low) & (lane.start < high))
        if len(positions):
            return Slice(number, 0, int(positions[np.argmax((lane.end - lane.start)[positions])]))
    return None


def jump(index: Index, kind: str, moment: int, way: int, least_ns: int) -> Slice | None:
    """The first gap of the GPU, sync call or compilation (`JUMPS`) after a moment, or the last before it: a gap that
    lasts at least `least_ns`, and of nested compilations the outermost.
    """
    if kind == "sync":
        rows = np.flatnonzero((index.kinds.category == CATEGORY["sync"]) & (index.kinds.lanes == HOST))
        position = _next_position(index.profile.trace.ts_ns[rows], moment, way)
        return find(index, int(rows[position])) if position != NONE else None
    for number, lane in _lanes_of(index, "idle" if kind == "gap" else "compile"):
        positions = np.flatnonzero(lane.end - lane.start >= (least_ns if kind == "gap" else 0))
        position = _next_position(lane.start[positions], moment, way)
        if position != NONE:
            return Slice(number, 0, int(positions[position]))
    return None


def _lanes_of(index: Index, family: Family) -> Iterator[tuple[int, Lane]]:
    """The numbers of the groups of a family, with the first lane of each."""
    return ((number, group.lanes[0]) for number, group in enumerate(index.groups) if group.family == family)


def _next_position(starts: Ints, moment: int, way: int) -> int:
    """The position of the first start after a moment, or of the last before it; NONE if there is none."""
    position = int(np.searchsorted(starts, moment, side="right" if way > 0 else "left"))
    position -= way < 0
    return position if 0 <= position < len(starts) else NONE
