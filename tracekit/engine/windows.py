"""Whole steps that are replayed together, with and without a change: how long do they take at best, and at worst?"""

from functools import cached_property
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from tracekit.base.intervals import Bools, Ints, Union, distinct
from tracekit.engine.buckets import Bound
from tracekit.engine.host import HostView, host_between
from tracekit.engine.replay import Edit, Replay, Times, replay
from tracekit.trace import Trace

Floats = NDArray[np.float64]
_MOST_NODES = 6_000  # of a window, unless a single step has more
_LARGEST = 60_000  # a step with more nodes is not replayed
# Of a step: a longer time between two steps is not replayed, because their work could move into it.
_MAX_GAP_BETWEEN_STEPS = 0.05
_PER_ACTIVITY = 3  # nodes: its launch, itself, and the return of the call, which a full queue may block


class Range(NamedTuple):
    """Which share of a window is left at best and at worst; what bounds it at best."""

    best: float
    worst: float
    bound: Bound


class Window(Struct, frozen=True, dict=True):
    """Steps `[first, last)` of a trace, issued from `low` on and done at `high`, ns. `lead` is by how much the host is
    ahead of the GPU when it issues the first of them, ns: the work of that time belongs to earlier steps."""

    trace: Trace
    first: int
    last: int
    low: int
    high: int
    lead: int

    @cached_property
    def run(self) -> Replay:
        """The window as it can be replayed. Its host part ends with the last event of the last step's main thread: a
        step's annotation may go on although the host is done."""
        trace, returned = self.trace, int(self.trace.steps.returned[self.last - 1])
        near = trace.events_at(slice(*np.searchsorted(trace.ts_ns, (self.low, returned)).tolist()))
        ends = near.end_ns[(near.track == trace.threads.main) & near.roles.host & ~near.roles.annotation]
        return replay(trace, self.low, self.high, int(ends[ends <= returned].max(initial=self.low)))

    @cached_property
    def host(self) -> HostView:
        """What the host does meanwhile."""
        return host_between(self.trace, self.low, self.high)

    def host_moments(self, is_state: Bools) -> tuple[Ints, Ints]:
        """Starts and ends of the times in steps in which the host is in one of these states because of one event, ns;
        the mask is by code."""
        states = self.host.states
        chosen = is_state[states.values] & (self.trace.steps.of(states.edges[:-1]) >= 0)
        return states.edges[:-1][chosen], states.edges[1:][chosen]

    def host_time(self, is_state: Bools) -> Union:
        """The union of these times."""
        return Union.of(*self.host_moments(is_state))

    def length_ns(self, removal: Edit) -> int:
        """How long the window takes with this change, from the end of the work of earlier steps on."""
        return self._length_ns(self.run.without(removal))

    def _length_ns(self, times: Times) -> int:
        # Whatever the GPU has queued at first, steps are done no faster than the host issues them.
        issuing_ns = self.run.host_end(times) - self.low
        return max(self.run.end(times) - self.low - self.lead, min(issuing_ns, self.recorded_ns))

    @cached_property
    def recorded_ns(self) -> int:
        """How long it takes as it was recorded."""
        return self.run.end(self.run.recorded) - self.low - self.lead

    @cached_property
    def unexplained(self) -> float:
        """Which share of it are delays for which the recording shows no cause."""
        return 1 - self.length_ns(Edit(unexplained=True)) / max(self.recorded_ns, 1)

    @cached_property
    def activities(self) -> Ints:
        """The rows of the GPU activities that it replays."""
        return self.run.nodes.row[self.run.activities]

    def range(self, best: Edit, worst: Edit, left: Floats) -> Range:
        """At best nothing is late without a cause and the change costs nothing; at worst all is as late as it was.
        `left` is the share that is left of each activity at best: the GPU stays busy for that."""
        times = self.run.without(replace(best, unexplained=True))
        begin, high = np.array([self.low + self.lead]), np.array([self.high])
        busy = float(busy_ns(self.trace, self.activities, left, begin, high)[0])
        shortest = max(self._length_ns(times), busy) / max(self.recorded_ns, 1)
        # The host may have been further ahead at its start.
        shortest = min(shortest, max(self._pace_ns(times), busy) / max(self._pace_ns(self.run.recorded), 1), 1.0)
        return Range(shortest, max(self.length_ns(worst) / max(self.recorded_ns, 1), shortest), self.run.bound(times))

    def _pace_ns(self, times: Times) -> int:
        """How long it takes from its first activity on, but no less than the host needs."""
        released = times.start[self.run.released]
        first = int(released.min()) if len(released) else self.high
        return max(self.run.end(times) - first, self.run.host_end(times) - self.low)


def busy_ns(trace: Trace, activities: Ints, left: Floats, lows: Ints, highs: Ints) -> Floats:
    """How long the GPU works in each of these times where only a share of each activity is left: at each moment, the
    largest of the shares that run, because what ran side by side still does."""
    starts, ends = trace.ts_ns[activities], trace.events_at(activities).end_ns
    total, counted = np.zeros(len(lows)), np.zeros(len(lows), np.int64)
    for share in distinct(left)[::-1].tolist():
        running = Union.of(starts[left >= share], ends[left >= share]).within(lows, highs)
        total += share * (running - counted)
        counted = running
    return total


def windows(trace: Trace, chosen: Bools) -> list[Window]:
    """At most two windows of chosen steps, of both halves of them; none where a step is too long, or has no work."""
    numbers = np.flatnonzero(chosen)
    if not len(numbers) or not len(trace.links.activities):
        return []
    owner = trace.steps.of(trace.ts_ns[trace.links.launches])
    nodes = _PER_ACTIVITY * np.bincount(owner[owner >= 0], minlength=len(chosen))
    steps, replayed = trace.steps, []
    for half in np.array_split(numbers, 2) if len(numbers) > 1 else [numbers]:
        first, *following = half.tolist()
        last, total = first, int(nodes[first])
        for number in following:  # consecutive steps, as many as fit
            total += int(nodes[number])
            gap_ns, last_ns = steps.issued[number] - steps.done[last], steps.done[last] - steps.begin[last]
            if number != last + 1 or total > _MOST_NODES or gap_ns > _MAX_GAP_BETWEEN_STEPS * last_ns:
                break
            last = number
        if 0 < nodes[first] <= _LARGEST:
            lead = max(int(steps.begin[first] - steps.issued[first]), 0)
            replayed.append(Window(trace, first, last + 1, int(steps.issued[first]), int(steps.done[last]), lead))
    return replayed
