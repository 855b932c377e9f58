"""Which runtime call submitted which GPU activity?

Two events are linked by equal correlation. One call may submit many activities (a CUDA graph), and several calls may
carry one id: the one that starts first, then ends first, is the launch.

The ids are divided into groups, so that the calls and activities of a few million ids are matched at a time.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracekit.base.intervals import NO_INTS, Bools, Ints, Rows, place_among, runs
from tracekit.trace.roles import ASYNC_COPY, COPY, NEVER_BLOCKS, RUNTIME
from tracekit.trace.storing.scratch import put_aside, scratch_array

if TYPE_CHECKING:
    from tracekit.trace.facts.impossible import Impossible
    from tracekit.trace.model import Trace

GROUP = 1 << 20  # correlated events matched at a time


class Links(Struct, frozen=True, dict=True):
    """Rows are indices into the events table, in ascending order; an event in none of them has no link."""

    activities: Rows  # GPU activities that a call is known to have submitted
    launches: Rows  # for each activity, that call
    blocking: Ints  # copies, asynchronous by name only, that had ended when their call returned: rows of the calls
    gpu: int  # how many GPU activities there are, linked or not

    def some(self, size: int = 1 << 16) -> Iterator[tuple[Rows, Rows]]:
        """Activities and their launches, some at a time."""
        for start in range(0, len(self.activities), size):
            yield self.activities[start : start + size], self.launches[start : start + size]

    def launch(self, rows: Ints | Rows) -> Ints:
        """For each GPU activity, the call that submitted it; −1 if none is known."""
        return looked_up(self.activities, self.launches, rows)

    def is_blocking(self, rows: Ints | Rows) -> Bools:
        """Which calls are copies that blocked."""
        return _position(self.blocking, rows) >= 0

    def submitted(self, rows: Ints | Rows) -> tuple[Ints, Ints]:
        """For each call, the first activity that it submitted (−1 for none), and how many it submitted."""
        calls, first, counts = self._by_call
        position = _position(calls, rows)
        return first[position].astype(np.int64), counts[position].astype(np.int64)

    @cached_property
    def _by_call(self) -> tuple[Rows, Rows, Rows]:
        order = np.argsort(self.launches, kind="stable")  # activities are in order of their starts
        calls = self.launches[order]
        bounds = runs(calls)
        # The last of each is for what is no call.
        first = np.append(self.activities[order[bounds[:-1]]], np.int32(-1))
        counts = np.append(np.diff(bounds), 0).astype(np.int32)
        return put_aside(calls[bounds[:-1]]), put_aside(first), put_aside(counts)


def link(trace: "Trace", impossible: "Impossible | None" = None) -> Links:
    """Link the runtime calls of the main thread's process with the GPU activities of the trace: with all of them, where
    it is not told what is impossible."""
    unlinked = impossible.before_call if impossible is not None else NO_INTS
    matched = [_matched(trace, rows, ids) for rows, ids in _groups(trace, unlinked)]
    gpu = trace.census.count(lambda roles: roles.gpu)
    if not matched:
        nothing = np.zeros(0, np.int32)
        return Links(nothing, nothing, NO_INTS, gpu)
    activities = np.concatenate([group[0] for group in matched])
    launches = np.concatenate([group[1] for group in matched])
    blocking = np.sort(np.concatenate([group[2] for group in matched]))
    if impossible is not None and impossible.two_clocks:  # then it is unknown when what was submitted ran
        return Links(activities[:0], launches[:0], blocking, gpu)
    if len(matched) > 1:
        order = np.argsort(activities)
        activities, launches = activities[order], launches[order]
    return Links(put_aside(activities), put_aside(launches), blocking, gpu)


def _groups(trace: "Trace", unlinked: Ints) -> Iterator[tuple[Rows, Ints]]:
    """Calls and activities that carry an id, by groups of ids, in order of their starts: rows and ids."""
    event_count = trace.census.count(lambda roles: roles.runtime | roles.gpu)
    if not event_count:
        return
    groups = min(-(-event_count // GROUP), 255)
    rows, ids = scratch_array(event_count, np.int32), scratch_array(event_count, np.int64)
    bounds = []  # for each part, where each group's events are
    filled = 0
    for part in trace.parts():
        tied = (part.correlation != 0) & (part.roles.gpu | (part.roles.runtime & part.process)) & ~part.among(unlinked)
        part_rows, part_ids = part.rows(tied), part.correlation[tied]
        group = (part_ids % groups).astype(np.uint8)
        order = np.argsort(group, kind="stable") if groups > 1 else slice(None)
        rows[filled : filled + len(part_rows)] = part_rows[order]
        ids[filled : filled + len(part_rows)] = part_ids[order]
        bounds.append(filled + np.concatenate(([0], np.cumsum(np.bincount(group, minlength=groups)))))
        filled += len(part_rows)
    for number in range(groups):
        pieces = [slice(ends[number], ends[number + 1]) for ends in bounds]
        yield np.concatenate([rows[piece] for piece in pieces]), np.concatenate([ids[piece] for piece in pieces])


def _matched(trace: "Trace", rows: Rows, ids: Ints) -> tuple[Rows, Rows, Ints]:
    """In one group: the activities that have a launch, their launches, and the copies that blocked."""
    kind = trace.kinds[rows]
    is_call = kind == RUNTIME
    calls, call_ids = rows[is_call], ids[is_call]
    # Copies that are asynchronous in name only: the copy had ended when the call returned.
    is_copy = (kind == COPY) & ~trace.labels.fits(NEVER_BLOCKS)[trace.name_codes[rows]]
    copies, copy_ids = trace.events_at(rows[is_copy]), ids[is_copy]
    order = np.lexsort((copies.end_ns, copy_ids))
    ends, copy_ids = copies.end_ns[order], copy_ids[order]
    is_async_copy = trace.events_at(calls).roles.named(ASYNC_COPY, runtime=True)
    copying, copying_ids = calls[is_async_copy], call_ids[is_async_copy]
    last = np.searchsorted(copy_ids, copying_ids, side="right") - 1
    has_copy = last >= 0
    has_copy[has_copy] = copy_ids[last[has_copy]] == copying_ids[has_copy]
    copying, last = copying[has_copy], last[has_copy]
    blocking: Ints = np.sort(copying[ends[last] <= trace.events_at(copying).end_ns]).astype(np.int64)
    # The launch for each id: its first call.
    order = np.argsort(call_ids, kind="stable")
    calls, call_ids = calls[order], call_ids[order]
    ties = np.flatnonzero(call_ids[1:] == call_ids[:-1])
    if len(ties) and (trace.ts_ns[calls[ties]] == trace.ts_ns[calls[ties + 1]]).any():
        events = trace.events_at(calls)
        sync = events.roles.sync_by_name | (_position(blocking, calls) >= 0)
        # Among calls that the rule does not tell apart, a sync call: the order of events must not decide.
        calls = calls[np.lexsort((~sync, events.end_ns, events.ts_ns, call_ids))]
    first = runs(call_ids)[:-1] if len(call_ids) else np.zeros(0, np.intp)
    launches, launch_ids = calls[first], call_ids[first]
    gpu, gpu_ids = rows[~is_call], ids[~is_call]
    position = np.minimum(place_among(launch_ids, gpu_ids), max(len(launch_ids) - 1, 0))
    linked = launch_ids[position] == gpu_ids if len(launch_ids) else np.zeros(len(gpu), bool)
    return gpu[linked], launches[position[linked]], blocking


def looked_up(keys: Rows, values: Rows, rows: Ints | Rows) -> Ints:
    """The value of each key, −1 if there is none; keys are in ascending order."""
    position = _position(keys, rows)
    return np.where(position >= 0, values[position], -1) if len(keys) else np.full(len(rows), -1, np.int64)


def _position(keys: NDArray[Any], rows: Ints | Rows) -> Ints:
    """The position of each row among the keys; −1 if it is not among them."""
    if not len(keys):
        return np.full(len(rows), -1, np.int64)
    typed_rows = rows.astype(keys.dtype, copy=False)
    position = np.minimum(place_among(keys, typed_rows), len(keys) - 1)
    return np.where(keys[position] == typed_rows, position, -1)
