"""Some events of a trace: their roles, and inside which operator or Python frame each happened. Computed on request,
and never held for all events at once.
"""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from tracekit.base.intervals import NO_INTS, Bools, Ints, Rows, distinct, topmost
from tracekit.trace.links import looked_up
from tracekit.trace.roles import OPERATOR, OTHER, PYTHON, RUNTIME, Roles
from tracekit.trace.storing.scratch import scratch_array
from tracekit.vocabulary.code_owner import may_be_the_users, profiled

if TYPE_CHECKING:
    from tracekit.trace.model import Trace

BEFORE, AFTER = -(1 << 62), 1 << 62  # no time of a trace reaches them
PART = 1 << 16  # events looked at together: what is computed for them stays in the processor's cache
INNER_FIRST = np.ones(OTHER + 1, np.int8)  # of equal intervals the higher is inside
INNER_FIRST[[PYTHON, OPERATOR, RUNTIME]] = 0, 1, 2


class Events(Struct, frozen=True, dict=True):
    """The events of some rows; every array has one entry for each."""

    trace: "Trace"
    selection: slice | Ints | Rows

    @cached_property
    def ts_ns(self) -> Ints:
        """The start of each event."""
        return self.trace.ts_ns[self.selection]

    @cached_property
    def end_ns(self) -> Ints:
        """The end of each event."""
        ends: Ints = self.ts_ns + self.trace.dur_ns[self.selection]
        return ends

    @cached_property
    def lasting(self) -> Bools:
        """Whether each event has a duration."""
        mask: Bools = self.trace.dur_ns[self.selection] > 0
        return mask

    @cached_property
    def track(self) -> Rows:
        """The row of each event's track in `tracks`."""
        return self.trace.track[self.selection]

    @cached_property
    def correlation(self) -> Ints:
        """The correlation id of each event, 0 for none."""
        return self.trace.correlation[self.selection]

    @cached_property
    def name_codes(self) -> Rows:
        """The number of each event's name."""
        return self.trace.name_codes[self.selection]

    @cached_property
    def roles(self) -> Roles:
        """The roles of the events."""
        return self.trace.labels.roles_of(self.trace.kinds[self.selection], self.name_codes)

    @cached_property
    def process(self) -> Bools:
        """Whether each event is a host event of the main thread's process."""
        return self.trace.in_process[self.selection]

    def among(self, rows: Ints) -> Bools:
        """For each event of a slice, whether it is one of these rows, which are in ascending order."""
        assert isinstance(self.selection, slice)
        mask = np.zeros(self.selection.stop - self.selection.start, bool)
        first, last = np.searchsorted(rows, (self.selection.start, self.selection.stop))
        mask[rows[first:last] - self.selection.start] = True
        return mask

    def rows(self, mask: Bools) -> Ints:
        """The rows of the events that a mask selects."""
        positions = np.flatnonzero(mask)
        return (
            positions + self.selection.start
            if isinstance(self.selection, slice)
            else np.asarray(self.selection[positions], np.int64)
        )


def parts(trace: "Trace") -> Iterator[Events]:
    """All events, some at a time, in order."""
    count = len(trace.ts_ns)
    for start in range(0, count, PART):
        yield Events(trace, slice(start, min(start + PART, count)))


RowFilter = Callable[[Events], Bools]


class Block(Struct, frozen=True):
    """A stretch of time `[low, high)`: the events that start in it, `[first, stop)`, and all that cover any of it."""

    low: int
    high: int
    first: int
    stop: int
    rows: Ints  # of the wanted events that have a duration: first those that are still open, then those that start here


class Blocks:
    """The time of a trace in blocks, in each of which about `size` events start."""

    def __init__(self, trace: "Trace", predicate: RowFilter, size: int = PART) -> None:
        self._trace, self._predicate, self._size = trace, predicate, size

    def __iter__(self) -> Iterator[Block]:
        block = self.after(None)
        while block is not None:
            yield block
            block = self.after(block)

    def after(self, block: Block | None, size: int | None = None) -> Block | None:
        """The next block, or the first if none is given, of the given size.

        None after the last block, which is open-ended.
        """
        trace, count = self._trace, len(self._trace.ts_ns)
        first, low = (0, BEFORE) if block is None else (block.stop, block.high)
        if low == AFTER:
            return None
        following = moment_after(trace, first + (size or self._size))
        high = int(trace.ts_ns[following]) if following < count else AFTER
        part = Events(trace, slice(first, following))
        rows = part.rows(self._predicate(part))
        if block is not None:
            rows = np.concatenate((block.rows[trace.events_at(block.rows).end_ns > low], rows))
        return Block(low, high, first, following, rows)


def at_moments(trace: "Trace") -> Iterator[Events]:
    """All events, some at a time, cut so that events that start together stay together."""
    start = 0
    while start < len(trace.ts_ns):
        end = moment_after(trace, start + PART)
        yield Events(trace, slice(start, end))
        start = end


def moment_after(trace: "Trace", row: int) -> int:
    """The row at which to cut, there or soon after: the event before it starts earlier."""
    count = len(trace.ts_ns)
    if row >= count:
        return count
    return int(np.searchsorted(trace.ts_ns, trace.ts_ns[row - 1], side="right")) if row else 0


def nested(trace: "Trace", rows: Ints) -> Ints:
    """The rows from the outermost to the innermost: by start, then by end (latest first), then by kind, then by name.

    Rows in ascending order are in order of their starts, so only those that start together have to be sorted.
    """
    ts = trace.ts_ns[rows]
    ties = np.flatnonzero(ts[1:] == ts[:-1])
    if not len(ties):
        return rows
    tied = np.zeros(len(rows), bool)
    tied[ties] = tied[ties + 1] = True
    tied_rows = rows[tied]
    events = trace.events_at(tied_rows)
    order = np.lexsort((-events.end_ns, ts[tied]))
    tied_rows, ts, end = tied_rows[order], ts[tied][order], events.end_ns[order]
    equal = np.flatnonzero((ts[1:] == ts[:-1]) & (end[1:] == end[:-1]))
    if len(equal):
        alike = np.zeros(len(tied_rows), bool)
        alike[equal] = alike[equal + 1] = True
        equals = tied_rows[alike]  # rows that cover the same interval as their neighbours
        events = trace.events_at(equals)
        codes, name_at = np.unique(events.name_codes, return_inverse=True)
        if trace.name_ranks is None:
            by_name = np.argsort(np.argsort(np.array([trace.names[code] for code in codes.tolist()], object)))
        else:
            by_name = trace.name_ranks[codes]
        inner = INNER_FIRST[events.roles.kind]
        order = np.lexsort((trace.links.is_blocking(equals), by_name[name_at], inner, -end[alike], ts[alike]))
        tied_rows[alike] = equals[order]
    rows = rows.copy()
    rows[tied] = tied_rows
    return rows


def outermost(trace: "Trace", rows: Ints) -> Ints:
    """Those of the rows that no other of them on their thread encloses, in ascending order."""
    outer = [NO_INTS]
    for track in distinct(trace.track[rows]):
        on_track = nested(trace, rows[trace.track[rows] == track])
        reach = np.maximum.accumulate(trace.events_at(on_track).end_ns)
        outer.append(on_track[np.concatenate(([True], trace.ts_ns[on_track[1:]] >= reach[:-1]))])
    return np.sort(np.concatenate(outer))


def enclosing(trace: "Trace", rows: Ints | Rows, predicate: RowFilter) -> Ints:
    """For each row, the innermost wanted event of its thread that covers its start; −1 if none does."""
    order = np.argsort(rows, kind="stable")
    rows_in_order = np.asarray(rows, np.int64)[order]
    spans = np.full(len(rows_in_order), -1, np.int64)
    start = int(np.searchsorted(rows_in_order, 0))  # −1 stands for none
    has_rows = np.bincount(trace.track[rows_in_order[start:]], minlength=len(trace.tracks)) > 0
    for block in Blocks(trace, lambda part: predicate(part) & part.lasting & has_rows[part.track]):
        end = int(np.searchsorted(rows_in_order, block.stop))
        if start < end:
            spans[start:end] = _enclosing_in_block(trace, rows_in_order[start:end], block.rows)
            start = end
        if end == len(rows_in_order):
            break
    result = np.empty(len(rows_in_order), np.int64)
    result[order] = spans
    return result


def _enclosing_in_block(trace: "Trace", rows: Ints, spans: Ints) -> Ints:
    """`enclosing` within one block, given all spans that overlap it."""
    enclosing_rows = np.full(len(rows), -1, np.int64)
    tracks, of_spans = trace.track[rows], trace.track[spans]
    for track in np.flatnonzero(np.bincount(tracks)).tolist():
        nested_spans = nested(trace, spans[of_spans == track])
        on_track = tracks == track
        index = topmost(trace.ts_ns[nested_spans], trace.events_at(nested_spans).end_ns).at(trace.ts_ns[rows[on_track]])
        enclosing_rows[on_track] = np.where(index >= 0, nested_spans[index], -1) if len(nested_spans) else -1
    return enclosing_rows


class AroundCalls(Struct, frozen=True):
    """What encloses every runtime call of the process: the operator that made it, or the user's frame."""

    calls: Rows  # in ascending order
    enclosing_rows: Rows  # −1 for none

    def of(self, rows: Ints | Rows) -> Ints:
        """What encloses each of some calls; −1 for none, and for rows that are not calls."""
        return looked_up(self.calls, self.enclosing_rows, rows)


def around_calls(trace: "Trace", predicate: RowFilter) -> AroundCalls:
    """The innermost wanted event around each runtime call, found in one pass over the trace."""
    call_count = trace.census.count(lambda roles: roles.runtime)
    calls, enclosing_rows = scratch_array(call_count, np.int32), scratch_array(call_count, np.int32)
    filled = 0
    for block in Blocks(trace, predicate):
        part = trace.events_at(slice(block.first, block.stop))
        called = part.rows(part.roles.runtime & part.process)
        end = filled + len(called)
        calls[filled:end], enclosing_rows[filled:end] = called, _enclosing_in_block(trace, called, block.rows)
        filled = end
    return AroundCalls(calls[:filled], enclosing_rows[:filled])


def user_frames(trace: "Trace", rows: Ints) -> Ints:
    """The innermost Python frame of the user's own code around each event; −1 without stacks."""
    if not trace.has_stacks:
        return np.full(len(rows), -1, np.int64)
    return enclosing(trace, rows, is_users_frame(trace))


def is_users_frame(trace: "Trace") -> RowFilter:
    """Which events are Python frames of the user's own code."""
    frames = map(profiled, trace.names)
    are_users = (frame is not None and may_be_the_users(frame.file) for frame in frames)
    users = np.fromiter(are_users, bool, len(trace.names))
    return lambda part: (part.roles.kind == PYTHON) & users[part.name_codes] & part.lasting


def names_of_rows(trace: "Trace", rows: Ints) -> list[str | None]:
    """The names of rows; None for −1."""
    names, codes = trace.names, trace.name_codes
    return [names[codes[row]] if row >= 0 else None for row in rows.tolist()]
