"""What in a trace cannot have happened: activities that outlast a whole later one of their stream, activities that
start before their call does, and two sides that share no clock.

All of it is worked out from the trace as it was recorded, and without a loop over events: a stream is looked at more
closely only where the ends of its activities are not in the order of their starts.
"""

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from tracekit.base.intervals import NO_INTS, Bools, Ints, Rows
from tracekit.trace.rows import BEFORE

if TYPE_CHECKING:
    from tracekit.trace.model import Trace

_MAX_LEAD_NS = 1_000_000  # before its call: what begins earlier counts in nothing
_MAX_DELAY_NS = 60_000_000_000  # after its call: what begins later shares no clock with it
_NEVER = np.iinfo(np.int64).max


class Impossible(Struct, frozen=True):
    """Rows are indices into the events table, in ascending order; durations are in ns."""

    shortened: Ints  # activities that outlast a whole later one of their stream: they end where the first such starts
    recorded_ns: Ints  # how long each of them lasts in the file
    shortened_ns: Ints  # and how long it can have lasted at most
    before_call: Ints  # activities that start before their call does: they are linked to nothing
    untimely: Ints  # those of them that start so long before it that they count in nothing
    two_clocks: bool  # whether calls and activities are stamped by clocks that have nothing in common

    @property
    def changes_links(self) -> bool:
        """Whether anything is linked that should not be, or ends when it should not."""
        return self.two_clocks or len(self.shortened) + len(self.before_call) > 0


def find_impossible(recorded: "Trace") -> Impossible:
    """What cannot be in a trace, given as it was recorded."""
    # Activities that start before their calls, those that do by far, and how many are far from their calls.
    before, untimely, astray = [NO_INTS], [NO_INTS], 0
    for activities, launches in recorded.links.some():
        calls = recorded.events_at(launches)
        starts = recorded.ts_ns[activities]
        lead = calls.ts_ns - starts
        before.append(activities[lead > 0].astype(np.int64))
        untimely.append(activities[lead > _MAX_LEAD_NS].astype(np.int64))
        astray += int(((lead > 0) | (starts - calls.end_ns > _MAX_DELAY_NS)).sum())
    before_call, two_clocks = np.concatenate(before), 2 * astray > len(recorded.links.activities)
    rows, ends = _outlasting(recorded, before_call)
    shortened_ns = ends - recorded.ts_ns[rows]
    return Impossible(rows, recorded.dur_ns[rows], shortened_ns, before_call, np.concatenate(untimely), two_clocks)


def _outlasting(recorded: "Trace", before_call: Ints) -> tuple[Ints, Ints]:
    """The activities that outlast a whole later one of their stream, and where the first such one starts."""
    suspects = _suspects(recorded)
    if not suspects.any():
        return NO_INTS, NO_INTS
    activities = recorded.where(lambda part: part.roles.gpu)
    of_row = _row_of(recorded.file_row[activities])
    activities, of_row = activities[suspects[of_row]], of_row[suspects[of_row]]
    order = np.argsort(of_row, kind="stable")
    activities, bounds = activities[order], np.flatnonzero(np.diff(of_row[order], prepend=-1, append=-1))
    rows_by_track = [_on_one_row(recorded, activities[first:stop], before_call) for first, stop in pairwise(bounds)]
    rows, ends = (np.concatenate(column) for column in zip(*rows_by_track, strict=True))
    order = np.argsort(rows)
    return rows[order], ends[order]


def _row_of(row: Rows) -> Rows:
    """The row of the file without what its sign says: that the event has no category."""
    return np.where(row < 0, ~row, row)


def _suspects(recorded: "Trace") -> Bools:
    """The rows of the file whose lasting activities do not end in the order in which they start."""
    number = int(_row_of(recorded.file_row).max(initial=-1)) + 1 if len(recorded.ts_ns) else 0
    suspects, reached = np.zeros(number, bool), np.full(number, BEFORE, np.int64)
    for part in recorded.parts():
        mask = part.roles.gpu & part.lasting
        of_row, ends = _row_of(recorded.file_row[part.selection][mask]), part.end_ns[mask]
        if not len(of_row):
            continue
        order = np.argsort(of_row.astype(np.int16) if number < 1 << 15 else of_row, kind="stable")
        of_row, ends = of_row[order], ends[order]
        opens = np.diff(of_row, prepend=-1) != 0
        previous = np.where(opens, reached[of_row], np.concatenate((ends[:1], ends[:-1])))
        suspects[of_row[ends <= previous]] = True
        closes = np.append(opens[1:], True)
        reached[of_row[closes]] = ends[closes]
    return suspects


def _on_one_row(recorded: "Trace", activities: Ints, before_call: Ints) -> tuple[Ints, Ints]:
    """Of the activities of one row, those that outlast a whole later one, and the start of the first of these."""
    events = recorded.events_at(activities)
    starts, ends, lasting = events.ts_ns, events.end_ns, events.lasting
    # Of those that have no id, each is its own; one that starts before its call is cut short by those of its id, too.
    _, kin = np.unique(events.correlation, return_inverse=True)
    kin = np.where(events.correlation == 0, -2 - np.arange(len(kin)), kin)
    spared = np.where(np.isin(activities, before_call), -1, kin)
    first = _first_within(np.where(lasting, ends, _NEVER), kin, np.searchsorted(starts, starts, "right"), ends, spared)
    cut = (first >= 0) & (recorded.file_row[activities] >= 0)
    return activities[cut], starts[first[cut]]


def _first_within(ends: Ints, kin: Ints, after: Ints, limit: Ints, spared: Ints) -> Ints:
    """For each entry, the first position from `after` on whose end is within its limit and whose kin is not the one to
    spare; −1 for none.

    Node k of a tree stands for its children 2k and 2k + 1, and leaves for positions. It holds the smallest end below
    it, the kin of that, and the smallest end of any other kin. All entries go through it together.
    """
    size = 1 << max(len(ends) - 1, 0).bit_length()
    least, other = np.full(2 * size, _NEVER), np.full(2 * size, _NEVER)
    of = np.full(2 * size, -1, np.int64)
    least[size : size + len(ends)], of[size : size + len(ends)] = ends, kin
    first = size
    while first > 1:
        left, right, first = slice(first, 2 * first, 2), slice(first + 1, 2 * first, 2), first // 2
        nodes, is_left = slice(first, 2 * first), least[left] <= least[right]
        least[nodes], of[nodes] = np.minimum(least[left], least[right]), np.where(is_left, of[left], of[right])
        second = np.where(of[left] == of[right], _NEVER, np.maximum(least[left], least[right]))
        other[nodes] = np.minimum(second, np.minimum(other[left], other[right]))

    def holds(node: Ints, entry: Ints) -> Bools:
        within: Bools = np.where(of[node] != spared[entry], least[node], other[node]) <= limit[entry]
        return within

    first_rows = np.full(len(limit), -1, np.int64)
    entry = np.flatnonzero(after < size)
    node = size + after[entry].astype(np.int64)
    while len(entry):  # from one node to the next as large as possible, until one holds such a position
        node //= node & -node
        hit = holds(node, entry)
        leaf, of_entry = node[hit], entry[hit]
        for _ in range(size.bit_length() - 1):
            child = 2 * leaf
            child += ~holds(np.minimum(child, 2 * size - 1), of_entry)
            leaf = np.where(leaf < size, child, leaf)
        first_rows[of_entry] = leaf - size
        node, entry = node[~hit] + 1, entry[~hit]
        is_inside = (node & (node - 1)) != 0  # past the last node of a level comes a power of two
        node, entry = node[is_inside], entry[is_inside]
    return first_rows
