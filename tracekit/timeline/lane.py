"""One row of a timeline, indexed so that a picture costs the same for a hundred events and for millions.

The busy time before a moment `t` is a prefix sum up to the last event that starts before `t`, less the rest of that
event after `t`. The exact coverage of each column of a picture is therefore one difference between the column's edges.
A pyramid over the durations finds the longest event of any range, so that no event gets lost among many.
"""

from functools import cached_property

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracekit.base.intervals import Ints, Rows

Codes = NDArray[np.int8]  # of categories
NONE = -1
_BASE = 16  # entries of a level of the pyramid that one entry of the next level summarises


class Lane(Struct, frozen=True, eq=False, dict=True):  # compared by identity
    """Events that do not overlap, in order of their starts. Times are ns on the trace's clock.

    `row` is the event's row in the events table, −1 for a stretch that is not an event.
    """

    start: Ints
    end: Ints
    row: Rows
    category: Codes

    @staticmethod
    def of(start: Ints, end: Ints, row: Rows, category: Codes) -> "Lane":
        """A lane of events in order of their starts; an event that overlaps the next one is cut off there."""
        clipped = np.maximum(end, start)
        np.minimum(clipped[:-1], start[1:], out=clipped[:-1])
        return Lane(start, clipped, row, category)

    def __len__(self) -> int:
        return len(self.start)

    @cached_property
    def _busy(self) -> dict[int, tuple[Rows, Ints]]:
        """For each category that occurs: the positions of its events, and the busy ns before each and after all."""
        dur = self.end - self.start
        counts = np.bincount(self.category, minlength=1)
        busy = {}
        for category in np.flatnonzero(counts).tolist():
            positions = np.flatnonzero(self.category == category).astype(np.int32)
            sums = np.zeros(len(positions) + 1, np.int64)
            np.cumsum(dur[positions], out=sums[1:])
            busy[category] = (positions, sums)
        return busy

    @property
    def categories(self) -> list[int]:
        """The categories that occur."""
        return [*self._busy]

    @cached_property
    def _pyramid(self) -> list[Rows]:
        """For each level, the position of the longest event of each block of `_BASE` entries of the level below."""
        dur = self.end - self.start
        levels: list[Rows] = []
        positions = np.arange(len(self), dtype=np.int32)
        while len(positions) > 1:
            padded = np.concatenate((positions, np.full(-len(positions) % _BASE, positions[-1], np.int32)))
            blocks = padded.reshape(-1, _BASE)
            longest = dur[blocks].argmax(axis=1)
            positions = blocks[np.arange(len(blocks)), longest]
            levels.append(positions)
        return levels

    def index(self) -> "Lane":
        """The lane itself, with everything computed that pictures need; to be called in the background."""
        assert self._busy is not None
        assert self._pyramid is not None
        return self

    def before(self, moments: Ints, category: int) -> Ints:
        """How much of the time before each moment this category covers, ns."""
        return self._before(moments, self._last(moments), category)

    def _last(self, moments: Ints) -> Ints:
        """The position of the last event that starts before each moment; NONE if there is none."""
        return np.searchsorted(self.start, moments, side="left") - 1

    def _before(self, moments: Ints, last: Ints, category: int) -> Ints:
        if category not in self._busy:
            return np.zeros(len(moments), np.int64)
        positions, sums = self._busy[category]
        count = np.searchsorted(
            positions, last.astype(np.int32), side="right"
        )  # of one type, otherwise all positions would be copied
        overhang_ns = np.where(
            last >= 0, np.maximum(self.end[last] - moments, 0) * (self.category[last] == category), 0
        )
        busy: Ints = sums[count] - overhang_ns
        return busy

    def columns(self, edges: Ints) -> "Columns":
        """The lane between these strictly ascending moments, column by column."""
        width = len(edges) - 1
        last = self._last(edges)
        if not len(self):
            return Columns(self, edges, last, np.full(width, NONE, np.int8), np.zeros(width, np.int64))
        covered = np.stack([np.diff(self._before(edges, last, category)) for category in self.categories])
        dominant = np.array(self.categories, np.int8)[covered.argmax(axis=0)]
        total: Ints = covered.sum(axis=0)
        instant = np.where(last[1:] > last[:-1], self.category[last[1:]], NONE)  # has no duration
        return Columns(self, edges, last, np.where(total > 0, dominant, instant).astype(np.int8), total)

    def longest(self, first: Ints, stop: Ints) -> Ints:
        """For each range `[first, stop)` of events, the longest; NONE for an empty one."""
        best, longest_ns = np.full(len(first), NONE, np.int64), np.full(len(first), -1, np.int64)
        low, high = first.astype(np.int64), stop.astype(np.int64)
        for level in (None, *self._pyramid):
            inner_low, inner_high = -(-low // _BASE), high // _BASE
            below, above = np.minimum(inner_low * _BASE, high), np.maximum(inner_high * _BASE, low)
            for begins, ends in ((low, below), (above, high)):  # at each end of a range, fewer than _BASE entries
                ranges = np.flatnonzero(ends > begins)
                if not len(ranges):
                    continue
                entries = begins[ranges, None] + np.arange(_BASE)
                entries = np.where(entries < ends[ranges, None], entries, begins[ranges, None])
                positions = entries if level is None else level[entries]
                dur = self.end[positions] - self.start[positions]
                choice = (np.arange(len(ranges)), dur.argmax(axis=1))
                longer = dur[choice] > longest_ns[ranges]
                best[ranges[longer]] = positions[choice][longer]
                longest_ns[ranges[longer]] = dur[choice][longer]
            low, high = inner_low, np.maximum(inner_high, inner_low)
            if not (low < high).any():
                break
        return best

    def at(self, moment: int) -> int:
        """The position of the event that covers a moment; NONE if none does."""
        position = int(np.searchsorted(self.start, moment, side="right")) - 1
        return position if position >= 0 and self.end[position] > moment else NONE


class Columns(Struct, frozen=True, eq=False, dict=True):
    """A lane in the columns of a picture, between `edges`; one entry for each column.

    `category` is the one that covers most or, in a column without durations, that of the last event; NONE if nothing
    happens. `covered_ns` is exact. `last` is, for each edge, the position of the last event that starts before it.
    """

    lane: Lane
    edges: Ints
    last: Ints
    category: Codes
    covered_ns: Ints

    @property
    def share(self) -> NDArray[np.float64]:
        """The covered share of each column, 0 … 1."""
        return self.covered_ns / np.maximum(np.diff(self.edges), 1)

    @cached_property
    def filling(self) -> Ints:
        """The position of the event that covers more than half of a column; NONE if none does."""
        if not len(self.lane):
            return np.full(len(self.category), NONE)
        middle = (self.edges[:-1] + self.edges[1:]) // 2
        position = np.searchsorted(self.lane.start, middle, side="right") - 1
        overlap = np.minimum(self.lane.end[position], self.edges[1:]) - np.maximum(
            self.lane.start[position], self.edges[:-1]
        )
        return np.where((position >= 0) & (2 * overlap > np.diff(self.edges)), position, NONE)

    def event(self, first: Ints, stop: Ints) -> Ints:
        """For each range `[first, stop)` of columns, the event to name: the longest that starts in it, else one that
        ends in it; NONE if there is none."""
        longest = self.lane.longest(self.last[first] + 1, self.last[stop] + 1)
        before = np.maximum(self.last[first], 0)
        reaches = (
            (self.last[first] >= 0) & (self.lane.end[before] > self.edges[first]) if len(self.lane) else longest > 0
        )
        return np.where((longest == NONE) & reaches, self.last[first], longest)


def sublanes(start: Ints, end: Ints, max_rows: int) -> list[Ints]:
    """The positions of events, divided into at most that many rows without overlaps; nested events by their depth.

    Events are in order of their starts; of those that start together, the longest comes first. Each goes to the first
    free row; if none is free, to the last row.
    """
    rows: list[Ints] = []
    unplaced = np.arange(len(start))
    while len(unplaced):
        if len(rows) == max_rows - 1:
            return [*rows, unplaced]
        # A row takes each event that starts after the previous one there has ended. Only events that overlap the next
        # one are looked at one by one, by jumping from each to where it ends; the rest follows from them.
        begins = start[unplaced]
        following = np.arange(1, len(begins) + 1)
        reach = np.maximum(np.searchsorted(begins, end[unplaced], side="left"), following)
        overlapping = np.flatnonzero(reach > following)
        free, on_row = 0, []
        for position, stop in zip(overlapping.tolist(), reach[overlapping].tolist(), strict=True):
            if position >= free:
                on_row.append(position)
                free = stop
        jumps, changes = np.array(on_row, np.int64), np.zeros(len(begins) + 1, np.int64)
        np.add.at(changes, jumps + 1, 1)
        np.add.at(changes, reach[jumps], -1)
        fits = np.cumsum(changes[:-1]) == 0
        rows.append(unplaced[fits])
        unplaced = unplaced[~fits]
    return rows
