"""The events of one thread as spans: which encloses which, how deep they are, and the step function that they make."""

from functools import cached_property

import numpy as np
from msgspec import Struct

from tracekit.base.intervals import NO_INTS, Bools, Ints, StepFunction, distinct, topmost
from tracekit.trace import Trace
from tracekit.trace.rows import nested


class Spans(Struct, frozen=True, dict=True):
    """Events of one thread that have a duration, from the outermost to the innermost."""

    rows: Ints  # of the events table
    starts: Ints
    ends: Ints

    @staticmethod
    def of(trace: Trace, rows: Ints) -> "Spans":
        """The spans of those events among `rows` that last longer than nothing, in order of their starts."""
        rows = rows[trace.end_ns[rows] > trace.ts_ns[rows]]
        rows = nested(trace, rows[np.argsort(trace.ts_ns[rows], kind="stable")])
        return Spans(rows, trace.ts_ns[rows], trace.end_ns[rows])

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def bounds(self) -> tuple[Ints, Ints]:
        """Their starts and ends."""
        return self.starts, self.ends

    def chosen(self, mask: Bools) -> "Spans":
        """Some of them."""
        return Spans(self.rows[mask], self.starts[mask], self.ends[mask])

    @cached_property
    def innermost(self) -> StepFunction:
        """Which span is innermost at each moment; −1 where there is none."""
        top = topmost(self.starts, self.ends)
        return StepFunction(top.edges, top.values.astype(np.int64))

    @cached_property
    def depth(self) -> Ints:
        """How many spans enclose each."""
        over = np.searchsorted(np.sort(self.ends), self.starts, side="right")
        depth: Ints = np.maximum(np.arange(len(self.starts)) - over, 0)
        return depth

    @cached_property
    def parent(self) -> Ints:
        """The span around each; −1 for none."""
        count = len(self.starts)
        if not count:
            return NO_INTS
        key = self.depth * count + np.arange(count)
        order = np.sort(key)
        position = np.searchsorted(order, (self.depth - 1) * count + np.arange(count)) - 1
        parent = order[np.maximum(position, 0)] % count
        has_parent = (self.depth > 0) & (position >= 0)
        return np.where(has_parent & (self.ends[parent] > self.starts), parent, -1)


def on_thread(trace: Trace, track: int | None, mask: Bools) -> Ints:
    """The rows of the selected events on one thread."""
    return np.flatnonzero(mask & (trace.track == (-1 if track is None else track)))


def merged(functions: list[StepFunction]) -> tuple[Ints, list[Ints]]:
    """The edges of all of them together, and the value of each on every stretch."""
    edges = distinct(np.concatenate([function.edges for function in functions]))
    return edges, [function.at(edges[:-1]) for function in functions]


def compressed(edges: Ints, values: Ints) -> StepFunction:
    """A step function without edges at which nothing changes."""
    if not len(values):
        return StepFunction(NO_INTS, NO_INTS, 0)
    changes = np.concatenate(([True], values[1:] != values[:-1]))
    return StepFunction(np.concatenate((edges[:-1][changes], edges[-1:])), values[changes], 0)
