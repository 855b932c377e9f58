"""When would everything have happened, had some of the work taken less time, or had recording taken none?"""

from collections.abc import Mapping
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray

from tracekit import native
from tracekit.base.intervals import NO_INTS, NO_TIME, Bools, Ints, Union, distinct
from tracekit.engine.buckets import BUCKETS, KEYS, Bound, of_activities
from tracekit.engine.dependencies import (
    ACTIVITY,
    DRAINED,
    END,
    FULL,
    HANDOVER,
    LAUNCH,
    NEVER,
    NONE,
    UNEXPLAINED_NS,
    Dependencies,
    dependencies,
)
from tracekit.trace import Trace
from tracekit.trace.roles import PYTHON, RUNTIME
from tracekit.trace.rows import BEFORE

EventKind = Literal["operator", "frame", "call"]
EVENT_KINDS: tuple[EventKind, ...] = get_args(EventKind)
Overhead = Mapping[EventKind, float]  # what an event of each kind costs, ns


class Edit(Struct, frozen=True):
    """What is taken out of a replay, and what is put in."""

    host: Union = NO_TIME  # when the driving threads do what is removed
    delays: Union = NO_TIME  # when an activity could run and does not
    latencies: Union = NO_TIME  # the same, because it was submitted only just before: the gap of its stream stays
    device: Ints | None = None  # by how much each activity gets shorter, ns
    returns: Ints = field(default_factory=lambda: NO_INTS)  # rows of the calls that no longer block
    undone: Ints = field(default_factory=lambda: NO_INTS)  # rows of activities that are not there at all
    latency_ns: int = 0  # by how much sooner a launch call submits its work
    unexplained: bool = False  # whether delays for which the recording has no cause are gone, too
    host_factor: float = 1.0  # times as long as recorded takes what the host still does
    gap_ns: tuple[int, int] | None = None  # bounds of the gap between an activity and the next on its stream


class Times(Struct, frozen=True):
    """When each node happens and, of activities, ends, ns; and the node that it waited for last, −1 for none."""

    start: Ints
    end: Ints
    after: Ints


class Replay(Struct, frozen=True, dict=True):
    """A stretch of time that can be replayed."""

    trace: Trace
    nodes: Dependencies
    end_ns: int  # the end of the stretch, ns

    @cached_property
    def activities(self) -> Bools:
        """Which nodes are GPU activities."""
        mask: Bools = self.nodes.kind == ACTIVITY
        return mask

    @cached_property
    def released(self) -> Bools:
        """Which nodes are activities that wait for something; the others stay where they were recorded, and as long."""
        mask: Bools = self.activities & ((self.nodes.launch >= 0) | (self.nodes.before >= 0))
        return mask

    @cached_property
    def buckets(self) -> NDArray[np.int8]:
        """The bucket that each activity makes, as a code."""
        return of_activities(self.trace.events_at(self.nodes.row[self.activities]).roles)

    @cached_property
    def _last(self) -> Ints:
        return np.flatnonzero((self.activities & (self.nodes.end <= self.end_ns)) | (self.nodes.kind == END))

    @cached_property
    def recorded(self) -> Times:
        """The times of all nodes as they were recorded."""
        return self.without(Edit())

    def without(self, removal: Edit) -> Times:
        """The times of all nodes without what is removed; whatever ran at the start of the stretch stays."""
        nodes, before, host = self.nodes, self.nodes.before, removal.host
        # The driving threads' own clock stands still in the time that is removed from them.

        def clock(moments: Ints) -> Ints:
            left = remaining(host, moments)
            if removal.host_factor == 1:
                return left
            first = nodes.start[nodes.thread >= 0][0]
            scaled: Ints = first + ((left - first) * removal.host_factor).astype(np.int64)
            return scaled

        clock_start, clock_since = clock(nodes.start), clock(nodes.since)
        awaited = np.where(nodes.kind == FULL, nodes.start[before], nodes.end[before])
        resumed = np.where(before >= 0, np.maximum(nodes.since, awaited), nodes.since)
        own_ns = np.where(resumed <= nodes.start, clock_start - clock(resumed), nodes.start - resumed)
        dropped = (nodes.kind < HANDOVER) & np.isin(nodes.row, removal.returns)
        before, own_ns = np.where(dropped, NONE, before), np.where(dropped, 0, own_ns)
        dur = nodes.end - nodes.start
        if removal.device is not None:
            dur[self.activities] -= np.where(self.released[self.activities], removal.device, 0)
        sooner = self._hurried(removal.delays)
        delay = nodes.delay - sooner - self._hurried(removal.latencies)
        stream_gap = np.where(sooner > 0, np.minimum(nodes.after_before, 0), nodes.after_before)
        if removal.unexplained:
            delay = np.where(self.released & (nodes.delay > UNEXPLAINED_NS), np.minimum(delay, 0), delay)
        latency = np.maximum(nodes.after_launch - removal.latency_ns, np.minimum(nodes.after_launch, 0))
        launch, source, after_before = nodes.launch, nodes.source, nodes.after_before
        if removal.gap_ns is not None:
            after_before = np.where(after_before > 0, np.clip(after_before, *removal.gap_ns), after_before)
        if len(removal.undone):
            # Its stream goes on as if nothing had been between what was before and what comes next; but what kept the
            # GPU from it without a cause in the recording would have kept it from anything else.
            undone = self.activities & (nodes.before >= 0) & np.isin(nodes.row, removal.undone)
            dur = np.where(undone, 0, dur)
            delay = np.where(undone, np.where(nodes.delay > UNEXPLAINED_NS, nodes.delay, 0), delay)
            launch, source = (np.where(undone, NONE, column) for column in (launch, source))
            after_before = np.where(undone, np.minimum(after_before, 0), after_before)
        needs = nodes.kind, nodes.thread, launch, source, after_before
        return _sweep(
            int(nodes.thread.max(initial=0)) + 1,
            [*needs, clock_start, clock_since, own_ns, dur, before, delay, latency, stream_gap],
        )

    def _hurried(self, delays: Union) -> Ints:
        """By how much each activity starts sooner after all that it depends on, without these delays."""
        nodes, sooner = self.nodes, np.zeros(len(self.nodes), np.int64)
        if len(delays.starts):
            times = ((nodes.launch, nodes.start), (nodes.before, nodes.end), (nodes.source, nodes.end))
            gpu = np.flatnonzero(self.activities)  # the source of a handover is no node, but a thread
            released = np.max([np.where(node[gpu] >= 0, time[node[gpu]], NEVER) for node, time in times], axis=0)
            gpu, released = gpu[released > NEVER], released[released > NEVER]
            sooner[gpu] = delays.within(released, nodes.start[gpu])
        return sooner

    def end(self, times: Times) -> int:
        """When all of it is done, ns on the trace's clock."""
        return int(times.end[self._last].max())

    def host_end(self, times: Times) -> int:
        """When the host is done with all of it, ns on the trace's clock."""
        return int(times.end[np.argmax(self.nodes.kind == END)])

    def host_behind(self, times: Times, lead: int) -> int:
        """By how much the host takes longer for all of it than the GPU, which begins when the host is ahead by `lead`;
        ns, negative where the host is faster."""
        return self.host_end(times) - (self.end(times) - lead)

    def bound(self, times: Times) -> Bound:
        """What takes most of the time on the path that decides when all is done: each node and what it waited for."""
        node, following, path = int(self._last[np.argmax(times.end[self._last])]), times.after.tolist(), []
        while node >= 0:
            path.append(node)
            node = following[node]
        codes = np.zeros(len(self.nodes), np.int8)
        codes[self.activities] = self.buckets
        nodes = np.array(path)
        kinds, start, end = self.nodes.kind[nodes], times.start[nodes], times.end[nodes]
        is_activity, is_full = kinds == ACTIVITY, kinds == FULL
        # Of each node first what it does, unless what comes after it did not wait for its end, then what it waited for.
        kept_waiting = np.append(False, is_full[:-1])
        works_ns = np.where(is_activity & ~kept_waiting, end - start, 0)
        waits_ns = start[:-1] - np.where(is_full[:-1], start[1:], end[1:])
        waits_for_host = ~is_activity[:-1] | (kinds[1:] == LAUNCH)
        spent_ns: dict[Bound, int] = {}

        def spend(bound: Bound, ns: int) -> None:
            spent_ns[bound] = spent_ns.get(bound, 0) + ns

        for code in distinct(codes[nodes[is_activity]]).tolist():
            spend(BUCKETS[KEYS[code]].bound, int(works_ns[is_activity & (codes[nodes] == code)].sum()))
        spend("host", int(waits_ns[waits_for_host].sum()))
        spend("gaps", int(waits_ns[~waits_for_host].sum()))
        if kinds[-1] not in (ACTIVITY, FULL):  # before it, there was nothing but the host's work
            spend("host", int(start[-1] - min(times.start[0], start[-1])))
        return max(spent_ns, key=lambda bound: spent_ns[bound])


def replay(trace: Trace, low: int, high: int, returned: int) -> Replay:
    """What happens in `[low, high)`, of which the host's part ends at `returned`."""
    return Replay(trace, dependencies(trace, low, high, returned), high)


def remaining(removed: Union, points: Ints) -> Ints:
    """The points on a clock that stands still in the removed time."""
    return points - removed.within(np.full(len(points), NEVER), points)


def _sweep(threads: int, columns: list[Ints | NDArray[np.int8]]) -> Times:
    """One node after the other. A thread's clock is kept as an offset from its recorded one, which changes only where
    the thread waits."""
    if not native.BUILT:
        return _in_python(threads, columns)
    times = Times(*np.empty((3, len(columns[0])), np.int64))
    needs = [np.ascontiguousarray(column, np.int64) for column in columns]
    native._loops.sweep(threads, [*needs, times.start, times.end, times.after])
    return times


def _in_python(threads: int, columns: list[Ints | NDArray[np.int8]]) -> Times:
    count = len(columns[0])
    # −1 stands for the additional last entry, which never holds anything up.
    starts, ends, after = [NEVER] * (count + 1), [NEVER] * (count + 1), [NONE] * count
    offset, moved = [0] * threads, [NONE] * threads
    reach = NEVER
    rows = enumerate(zip(*(column.tolist() for column in columns), strict=True))
    for node, row in rows:
        kind, thread, launch, source, gap, clock_start, since, own_ns, dur, before, delay, latency, stream_gap = row
        if kind == ACTIVITY:
            start, last = starts[launch] + latency, launch
            if (queued := ends[before] + gap) > start:
                start, last = queued, before
            if ends[source] > start:
                start, last = ends[source], source
            if starts[before] > start:  # kernels of a stream may overlap, but begin in order
                start, last = starts[before], before
            if delay < 0 <= last:  # a removed delay lets nothing start before what it waits for
                start = max(start + delay, starts[launch] + min(latency, 0), ends[before] + stream_gap, ends[source])
            else:
                start = start + delay if last >= 0 else delay
            starts[node], ends[node], after[node] = start, start + dur, last
            reach = max(reach, start + dur)
            continue
        if kind == HANDOVER:
            after[node], offset[thread] = moved[source], offset[source]
        elif kind < HANDOVER:  # a call that may have to wait returns
            awaited = starts[before] if kind == FULL else ends[before]
            if kind == DRAINED and before >= 0 and reach > awaited:
                awaited = reach
            begun = offset[thread] + since
            after[node] = before if awaited > begun else moved[thread]
            offset[thread] = max(begun, awaited) + own_ns - clock_start
        else:
            after[node] = moved[thread]
        starts[node] = ends[node] = offset[thread] + clock_start
        if kind <= HANDOVER:
            moved[thread] = node
    return Times(*np.array((starts[:-1], ends[:-1], after), np.int64))


class Retiming(Struct, frozen=True, dict=True):
    """A trace that can be told anew without the time of recording."""

    trace: Trace

    @cached_property
    def _events(self) -> dict[EventKind, tuple[Ints, Ints]]:
        """Starts and ends of the events of the driving threads, by kind."""
        trace, driving = self.trace, self.trace.threads.is_driving
        events: dict[EventKind, tuple[Ints, Ints]] = {}
        kinds = np.full(len(trace.ts_ns), -1, np.int8)
        for part in trace.parts():
            kind = np.where(part.roles.kind == PYTHON, 1, np.where(part.roles.kind == RUNTIME, 2, 0))
            kinds[part.selection] = np.where(part.process & driving[part.track], kind, -1)
        for number, name in enumerate(EVENT_KINDS):
            rows = np.flatnonzero(kinds == number)
            events[name] = trace.ts_ns[rows], trace.events_at(rows).end_ns
        return events

    @property
    def kinds(self) -> list[EventKind]:
        """The kinds of which there are events."""
        return [kind for kind, (starts, _) in self._events.items() if len(starts)]

    def a_step(self) -> dict[EventKind, float]:
        """How many events of each kind start in a step, on average."""
        steps = self.trace.steps
        counts = {kind: float((steps.of(starts) >= 0).sum()) for kind, (starts, _) in self._events.items()}
        return {kind: count / max(len(steps), 1) for kind, count in counts.items() if count}

    def recording(self, overhead: Overhead) -> Union:
        """When the driving threads record, if an event costs so much."""
        starts, ends = [NO_INTS], [NO_INTS]
        for kind, ns in overhead.items():
            half, (begun, ended) = round(ns / 2), self._events[kind]
            entered, exited = (begun, ended - half) if kind == "call" else (begun - half, ended)
            starts += [entered, exited]
            ends += [entered + half, exited + half]
        return Union.of(np.concatenate(starts), np.concatenate(ends))

    @cached_property
    def _replay(self) -> Replay:
        trace = self.trace
        end = int(trace.end_ns.max(initial=0))
        returned = int(trace.steps.returned.max(initial=0))
        return replay(trace, int(trace.ts_ns.min(initial=0)), end + 1, returned)

    def removal(self, overhead: Overhead) -> Edit:
        """What a replay without the time of recording removes."""
        return Edit(host=self.recording(overhead), latency_ns=round(overhead.get("call", 0.0) / 2))

    def step_ns(self, overhead: Overhead) -> Ints:
        """How long each step would take."""
        steps, clock = self.trace.steps, _Clock(self._replay, self.removal(overhead))
        main = self.trace.threads.main
        assert main is not None
        issued, step_ends = clock.host(main, steps.issued), clock.host(main, steps.returned)
        nodes = self._replay.nodes
        mine = np.flatnonzero(self._replay.activities & (nodes.launch >= 0))
        owner = steps.of(self.trace.ts_ns[nodes.row[nodes.launch[mine]]])
        ends = clock.times.end[mine]
        np.maximum.at(step_ends, owner[owner >= 0], ends[owner >= 0])
        first = steps.begin[0] if steps.begin[0] > steps.issued[0] else BEFORE
        reach = np.maximum.accumulate(np.append(first, step_ends))
        lengths: Ints = reach[1:] - np.maximum(issued, reach[:-1])
        return lengths

    def without(self, overhead: Overhead) -> Trace:
        """The trace without the time of recording. Its rows are in another order."""
        trace, clock = self.trace, _Clock(self._replay, self.removal(overhead))
        main = trace.threads.main
        assert main is not None
        nodes, tracks = self._replay.nodes, np.asarray(trace.track)
        start, end = clock.host(main, trace.ts_ns), clock.host(main, trace.end_ns)
        for track in clock.threads:
            rows = np.flatnonzero(tracks == track)
            start[rows] = clock.host(track, trace.ts_ns[rows])
            end[rows] = clock.host(track, trace.ts_ns[rows] + trace.dur_ns[rows])
        active = np.flatnonzero(self._replay.activities)
        start[nodes.row[active]] = clock.times.start[active]
        end[nodes.row[active]] = clock.times.end[active]
        order = np.argsort(start, kind="stable")
        table = trace.recorded.events.take(order).combine_chunks()
        for name, column in (("ts_ns", start[order]), ("dur_ns", np.maximum(end - start, 0)[order])):
            index = table.schema.get_field_index(name)
            table = table.set_column(index, table.schema.field(index), [column])
        return replace(trace, read_events=lambda: table, entry=None, summary=None)


class _Clock:
    """Where moments of a recording lie in a replay without some of the host's time."""

    def __init__(self, recorded: Replay, removal: Edit) -> None:
        self._removed, self._nodes = removal.host, recorded.nodes
        self.times = recorded.without(removal)
        trace, nodes = recorded.trace, recorded.nodes
        # The threads whose time is replayed, by their tracks.
        self.threads = {track: thread for thread, track in enumerate(trace.threads.driving)}
        for thread in range(len(self.threads), int(nodes.thread.max(initial=NONE)) + 1):
            (row, *_) = nodes.row[(nodes.thread == thread) & (nodes.row >= 0)]
            self.threads[int(trace.track[row])] = thread

    def host(self, track: int, moments: Ints) -> Ints:
        """Moments of that thread: its clock stands still in the removed time, and is ahead after a shorter wait."""
        mine = np.flatnonzero(self._nodes.thread == self.threads[track])
        recorded = self._nodes.start[mine]
        shifts = np.append(self.times.start[mine] - remaining(self._removed, recorded), 0)
        moved: Ints = remaining(self._removed, moments) + shifts[np.searchsorted(recorded, moments, side="right") - 1]
        return moved
