"""Whole steps that are replayed together, with and without a change: how long do they take at best, and at worst?"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tracekit.engine.buckets import Bound
from tracekit.engine.host import HostView, host_between
from tracekit.engine.replay import Removal, Replay, Times, replay
from tracekit.intervals import Bools, Ints, Union
from tracekit.trace import Trace

_MOST_NODES = 6_000  # of a window, unless a single step has more
_LARGEST = 60_000  # a step with more nodes is not replayed
_APART = 0.05  # of a step: a longer time between two steps is not replayed, because their work could move into it
_PER_ACTIVITY = 3  # nodes: its launch, itself, and the return of the call, which a full queue may block


class Range(NamedTuple):
    """By how much a step is shorter at best and at worst, ns; what bounds it at best."""

    best_ns: float
    worst_ns: float
    bound: Bound


@dataclass(frozen=True)
class Window:
    """Steps `[first, last)` of a trace, from `low` to `high`, ns. `lead` is by how much the host is ahead of the GPU
    when it issues the first of them, ns."""

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

    def length_ns(self, removal: Removal) -> int:
        """How long the window takes with this change."""
        return self._length_ns(self.run.without(removal))

    def _length_ns(self, times: Times) -> int:
        # Where the recording starts with a lead of the host, its steps end before the host could issue more of them.
        too_soon = self.run.host_behind(times, self.lead) - self._behind
        return self.run.end(times) + max(too_soon, 0) - self.low

    @cached_property
    def _behind(self) -> int:
        return max(self.run.host_behind(self.run.recorded, self.lead), 0)

    @cached_property
    def recorded_ns(self) -> int:
        """How long it takes as it was recorded."""
        return self.length_ns(Removal())

    @cached_property
    def unexplained(self) -> float:
        """Which share of it are delays for which the recording shows no cause."""
        return 1 - self.length_ns(Removal(unexplained=True)) / max(self.recorded_ns, 1)

    def range(self, best: Removal, worst: Removal) -> Range:
        """At best nothing is late without a cause and the change costs nothing; at worst all is as late as it was."""
        times, steps = self.run.without(replace(best, unexplained=True)), self.last - self.first
        shortest, longest = self._length_ns(times), self.length_ns(worst)
        return Range((self.recorded_ns - shortest) / steps, (self.recorded_ns - longest) / steps, self.run.bound(times))


def windows(trace: Trace, counted: Bools) -> list[Window]:
    """At most two windows of counted steps, of both halves of them; none where a step is too long, or has no work."""
    numbers = np.flatnonzero(counted)
    if not len(numbers) or not len(trace.links.activities):
        return []
    owner = trace.steps.of(trace.ts_ns[trace.links.launches])
    nodes = _PER_ACTIVITY * np.bincount(owner[owner >= 0], minlength=len(counted))
    halves = np.array_split(numbers, 2) if len(numbers) > 1 else [numbers]
    return [window for half in halves for window in _window(trace, half, nodes)]


def _window(trace: Trace, numbers: Ints, nodes: Ints) -> Iterator[Window]:
    """As many steps that follow each other as fit."""
    steps, first = trace.steps, int(numbers[0])
    last, total = first, int(nodes[first])
    for number in numbers[1:].tolist():
        total += int(nodes[number])
        apart = steps.issued[number] - steps.done[last] > _APART * (steps.done[last] - steps.begin[last])
        if number != last + 1 or total > _MOST_NODES or apart:
            break
        last = number
    if 0 < nodes[first] <= _LARGEST:
        lead = max(int(steps.begin[first] - steps.issued[first]), 0)
        yield Window(trace, first, last + 1, int(steps.issued[first]), int(steps.done[last]), lead)
