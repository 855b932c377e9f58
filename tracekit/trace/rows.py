"""Some events of a trace and their roles, computed on request and never held for all events at once."""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from tracekit.intervals import Bools, Ints, Rows
from tracekit.trace.roles import Roles

if TYPE_CHECKING:
    from tracekit.trace.model import Trace

BEFORE, AFTER = -(1 << 62), 1 << 62  # no time of a trace reaches them
PART = 1 << 16  # events looked at together: what is computed for them stays in the processor's cache


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


def parts(trace: "Trace", size: int = PART) -> Iterator[Events]:
    """All events, some at a time, in order."""
    count = len(trace.ts_ns)
    for start in range(0, count, size):
        yield Events(trace, slice(start, min(start + size, count)))


Wanted = Callable[[Events], Bools]


class Block(Struct, frozen=True):
    """A stretch of time `[low, high)`: the events that start in it, `[first, stop)`, and all that cover any of it."""

    low: int
    high: int
    first: int
    stop: int
    rows: Ints  # of the wanted events that have a duration: first those that are still open, then those that start here


class Blocks:
    """The time of a trace in blocks, in each of which about `size` events start."""

    def __init__(self, trace: "Trace", predicate: Wanted, size: int = PART) -> None:
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


def at_moments(trace: "Trace", size: int = PART) -> Iterator[Events]:
    """All events, some at a time, cut so that events that start together stay together."""
    start = 0
    while start < len(trace.ts_ns):
        end = moment_after(trace, start + size)
        yield Events(trace, slice(start, end))
        start = end


def moment_after(trace: "Trace", row: int) -> int:
    """The row at which to cut, there or soon after: the event before it starts earlier."""
    count = len(trace.ts_ns)
    if row >= count:
        return count
    return int(np.searchsorted(trace.ts_ns, trace.ts_ns[row - 1], side="right")) if row else 0
