"""When would everything have happened without the time that recording took?

Every recorded event costs its thread a little, half of it when it is entered and half when it is left: an operator or a
Python frame outside of its own time, because the profiler takes the time last at its start and first at its end; a
runtime call inside, of which the first half delays what it submits. A replay without these times tells when all else
would have happened, so that a recording can be attributed anew.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from tracekit.engine.dependencies import NONE
from tracekit.engine.replay import Removal, Replay, Times, remaining, replay
from tracekit.intervals import Ints, Union
from tracekit.trace import Trace
from tracekit.trace.roles import PYTHON, RUNTIME
from tracekit.trace.rows import BEFORE

EventKind = Literal["operator", "frame", "call"]
EVENT_KINDS: tuple[EventKind, ...] = get_args(EventKind)
Overhead = Mapping[EventKind, float]  # what an event of each kind costs, ns


@dataclass(frozen=True)
class Retiming:
    """A trace that can be told anew without the time of recording."""

    trace: Trace

    @cached_property
    def _events(self) -> dict[EventKind, tuple[Ints, Ints]]:
        """Starts and ends of the events of the driving threads, by kind."""
        trace = self.trace
        driving = np.zeros(len(trace.tracks), bool)
        driving[list(trace.threads.driving)] = True
        found: dict[EventKind, tuple[Ints, Ints]] = {}
        kinds = np.full(len(trace.ts_ns), -1, np.int8)
        for part in trace.parts():
            kind = np.where(part.roles.kind == PYTHON, 1, np.where(part.roles.kind == RUNTIME, 2, 0))
            kinds[part.which] = np.where(part.process & driving[part.track], kind, -1)
        for number, name in enumerate(EVENT_KINDS):
            rows = np.flatnonzero(kinds == number)
            found[name] = trace.ts_ns[rows], trace.events_at(rows).end_ns
        return found

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
        starts, ends = [], []
        for kind, ns in overhead.items():
            half, (begun, ended) = round(ns / 2), self._events[kind]
            entered, left = (begun, ended - half) if kind == "call" else (begun - half, ended)
            starts += [entered, left]
            ends += [entered + half, left + half]
        nothing = np.zeros(0, np.int64)
        return Union.of(np.concatenate((nothing, *starts)), np.concatenate((nothing, *ends)))

    @cached_property
    def _replay(self) -> Replay:
        trace = self.trace
        end = int(trace.end_ns.max(initial=0))
        returned = int(trace.steps.returned.max(initial=0))
        return replay(trace, int(trace.ts_ns.min(initial=0)), end + 1, returned)

    def removal(self, overhead: Overhead) -> Removal:
        """What a replay without the time of recording removes."""
        return Removal(host=self.recording(overhead), latency_ns=round(overhead.get("call", 0.0) / 2))

    def step_ns(self, overhead: Overhead) -> Ints:
        """How long each step would take."""
        steps, clock = self.trace.steps, _Clock(self._replay, self.removal(overhead))
        main = self.trace.threads.main
        assert main is not None
        issued, done = clock.host(main, steps.issued), clock.host(main, steps.returned)
        nodes = self._replay.nodes
        mine = np.flatnonzero(self._replay.activities & (nodes.launch >= 0))
        owner = steps.of(self.trace.ts_ns[nodes.row[nodes.launch[mine]]])
        ends = np.array(clock.times.end, np.int64)[mine]
        np.maximum.at(done, owner[owner >= 0], ends[owner >= 0])
        first = steps.begin[0] if steps.begin[0] > steps.issued[0] else BEFORE
        reach = np.maximum.accumulate(np.append(first, done))
        lengths: Ints = reach[1:] - np.maximum(issued, reach[:-1])
        return lengths

    def without(self, overhead: Overhead) -> Trace:
        """The trace without the time of recording. Its rows are in another order."""
        trace, clock = self.trace, _Clock(self._replay, self.removal(overhead))
        main = trace.threads.main
        assert main is not None
        nodes, tracks = self._replay.nodes, np.asarray(trace.track)
        start, end = clock.host(main, trace.ts_ns), clock.host(main, trace.end_ns)
        for track in clock.tracks:
            rows = np.flatnonzero(tracks == track)
            start[rows] = clock.host(track, trace.ts_ns[rows])
            end[rows] = clock.host(track, trace.ts_ns[rows] + trace.dur_ns[rows])
        active = np.flatnonzero(self._replay.activities)
        start[nodes.row[active]] = np.array(clock.times.at, np.int64)[active]
        end[nodes.row[active]] = np.array(clock.times.end, np.int64)[active]
        order = np.argsort(start, kind="stable")
        table = trace.events.take(order).combine_chunks()
        for name, column in (("ts_ns", start[order]), ("dur_ns", np.maximum(end - start, 0)[order])):
            at = table.schema.get_field_index(name)
            table = table.set_column(at, table.schema.field(at), [column])
        return replace(trace, read_events=lambda: table, entry=None, summary=None)


class _Clock:
    """Where moments of a recording lie in a replay without some of the host's time."""

    def __init__(self, recorded: Replay, removal: Removal) -> None:
        self._removed, self._nodes = removal.host, recorded.nodes
        self.times: Times = recorded.without(removal)
        self._at = np.array(self.times.at, np.int64)[: len(recorded.nodes)]
        trace, nodes = recorded.trace, recorded.nodes
        self._threads = dict(zip(trace.threads.driving, range(len(trace.threads.driving)), strict=True))
        for thread in range(len(self._threads), int(nodes.thread.max(initial=NONE)) + 1):
            (row, *_) = nodes.row[(nodes.thread == thread) & (nodes.row >= 0)]
            self._threads[int(trace.track[row])] = thread

    @property
    def tracks(self) -> list[int]:
        """The threads whose time is replayed."""
        return [*self._threads]

    def host(self, track: int, moments: Ints) -> Ints:
        """Moments of that thread: its clock stands still in the removed time, and is ahead after a shorter wait."""
        mine = np.flatnonzero(self._nodes.thread == self._threads[track])
        recorded = self._nodes.at[mine]
        shifts = np.append(self._at[mine] - remaining(self._removed, recorded), 0)
        moved: Ints = remaining(self._removed, moments) + shifts[np.searchsorted(recorded, moments, side="right") - 1]
        return moved
