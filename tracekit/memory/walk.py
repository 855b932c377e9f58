"""From allocations and releases, works out what is held at each moment, and how long each allocation lives.

Levels are bytes above what was held before the first event: memory that was allocated earlier may be released, so
a level may be negative.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tracekit.intervals import Bools, Ints, StepFunction, distinct
from tracekit.trace.rereading.memory_events import MemoryEvents


@dataclass(frozen=True)
class Walk:
    """The events of one device, and what follows from their order."""

    events: MemoryEvents

    @cached_property
    def level(self) -> Ints:
        """Bytes above the start, after each event."""
        level: Ints = np.cumsum(self.events.bytes)
        return level

    @cached_property
    def peak(self) -> int:
        """The event after which the most is held; the first of several."""
        return int(np.argmax(self.level))

    @property
    def peak_bytes(self) -> int:
        """What is held at the peak, above the start; 0 if it never exceeds the start."""
        return max(int(self.level[self.peak]), 0)

    @cached_property
    def released(self) -> Ints:
        """For each allocation, the event that ends it: the next one at its address, or the number of events for
        none."""
        events = self.events
        order = np.lexsort((np.arange(len(events)), events.address))
        ends = np.full(len(events), len(events), np.int64)
        if len(order) > 1:
            same = events.address[order[1:]] == events.address[order[:-1]]
            ends[order[:-1][same]] = order[1:][same]
        return ends

    @property
    def live(self) -> Bools:
        """Which events are allocations that are held at the peak."""
        mask: Bools = (self.events.bytes > 0) & (np.arange(len(self.events)) <= self.peak) & (self.released > self.peak)
        return mask

    def entering(self, moments: Ints) -> Ints:
        """The level at each moment, before what happens at it."""
        after = np.searchsorted(self.events.ts_ns, moments, side="left")
        level: Ints = np.concatenate(([0], self.level))[after]
        return level

    def peaks_by(self, kind: StepFunction, low: int, high: int) -> dict[int, int]:
        """The highest level in `[low, high)` by the value that a step function has at the time.

        A stretch begins at the level before it, and each event counts in the stretch in which it happens.
        """
        ts = self.events.ts_ns
        inside = (ts >= low) & (ts < high)
        edges = kind.edges[(kind.edges > low) & (kind.edges < high)]
        moments = distinct(np.concatenate((np.array([low], np.int64), edges)))
        kinds = np.concatenate((kind.at(moments), kind.at(ts[inside])))
        levels = np.concatenate((self.entering(moments), self.level[inside]))
        return {int(each): int(levels[kinds == each].max()) for each in np.unique(kinds).tolist()}
