"""Inside which operator or Python frame did an event happen?"""

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from tracekit.code_owner import may_be_the_users
from tracekit.intervals import Ints, Rows, distinct
from tracekit.python_frames import profiled
from tracekit.topmost import topmost
from tracekit.trace.links import looked_up
from tracekit.trace.roles import OPERATOR, OTHER, PYTHON, RUNTIME
from tracekit.trace.rows import Blocks, Wanted
from tracekit.trace.storing.scratch import scratch_array

if TYPE_CHECKING:
    from tracekit.trace.model import Trace

INNER_FIRST = np.ones(OTHER + 1, np.int8)  # of equal intervals the higher is inside
INNER_FIRST[[PYTHON, OPERATOR, RUNTIME]] = 0, 1, 2


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
        tied_rows[alike] = tied_rows[alike][_of_equals(trace, tied_rows[alike], ts[alike], end[alike])]
    rows = rows.copy()
    rows[tied] = tied_rows
    return rows


def _of_equals(trace: "Trace", rows: Ints, ts: Ints, end: Ints) -> Ints:
    """The order of rows that cover the same interval as their neighbours."""
    events = trace.events_at(rows)
    codes, name_at = np.unique(events.name_codes, return_inverse=True)
    by_name = np.argsort(np.argsort(np.array([trace.names[code] for code in codes.tolist()], object)))
    return np.lexsort((trace.links.is_blocking(rows), by_name[name_at], INNER_FIRST[events.roles.kind], -end, ts))


def outermost(trace: "Trace", rows: Ints) -> Ints:
    """Those of the rows that no other of them on their thread encloses, in ascending order."""
    outer = [np.zeros(0, np.int64)]
    for track in distinct(trace.track[rows]):
        on_track = nested(trace, rows[trace.track[rows] == track])
        reach = np.maximum.accumulate(trace.events_at(on_track).end_ns)
        outer.append(on_track[np.concatenate(([True], trace.ts_ns[on_track[1:]] >= reach[:-1]))])
    return np.sort(np.concatenate(outer))


def enclosing(trace: "Trace", rows: Ints | Rows, predicate: Wanted) -> Ints:
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


def find_operators(trace: "Trace") -> AroundCalls:
    """The innermost operator around each call."""
    return _enclosing_calls(trace, lambda part: (part.roles.kind == OPERATOR) & ~part.roles.annotation & part.lasting)


def find_frames(trace: "Trace") -> AroundCalls:
    """The innermost Python frame of the user's own code around each call."""
    return _enclosing_calls(trace, _users(trace))


def _enclosing_calls(trace: "Trace", predicate: Wanted) -> AroundCalls:
    """What encloses each call, found in one pass over the trace."""
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
    return enclosing(trace, rows, _users(trace))


def _users(trace: "Trace") -> Wanted:
    users = np.fromiter((_is_users(name) for name in trace.names), bool, len(trace.names))
    return lambda part: (part.roles.kind == PYTHON) & users[part.name_codes] & part.lasting


def _is_users(name: str) -> bool:
    frame = profiled(name)
    return frame is not None and may_be_the_users(frame.file)


def names_of_rows(trace: "Trace", rows: Ints) -> list[str | None]:
    """The names of rows; None for −1."""
    names, codes = trace.names, trace.name_codes
    return [names[codes[row]] if row >= 0 else None for row in rows.tolist()]
