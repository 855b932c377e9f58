"""What the blocks of a view add up to: the time in each bucket of each step, and what each sync cost the GPU."""

from typing import Any

import numpy as np
import pyarrow as pa

from tracekit.engine.buckets import CODES
from tracekit.engine.wall import WallView
from tracekit.intervals import Ints, StepFunction, below, distinct, runs, split

STALLS = pa.schema(
    [
        pa.field("event", pa.int64()),  # the sync
        pa.field("refill", pa.bool_()),  # after its return, while the host refilled the queue
        pa.field("step", pa.int64()),  # index of the step in whose wall time the GPU idled, −1 for none
        pa.field("dur_ns", pa.int64()),
    ]
)


class Totals:
    """The time in each bucket inside each `[low, high)`: the sum up to `high`, less the sum up to `low`."""

    def __init__(self, keys: tuple[str, ...], lows: Ints, highs: Ints) -> None:
        self._keys, self._lows, self._highs = keys, lows, highs
        self._bounds = distinct(np.concatenate((lows, highs)))
        self._before = np.zeros((len(self._bounds), len(CODES) + 1), np.int64)
        self._spent = np.zeros(len(CODES) + 1, np.int64)
        self._passed = 0  # bounds

    def add(self, states: StepFunction) -> None:
        """Add the next block."""
        edges, values, width = states.edges, states.values, len(self._spent)
        reached = int(np.searchsorted(self._bounds, edges[-1], side="right"))
        bounds = self._bounds[self._passed : reached]
        starts, lengths = edges[:-1], np.diff(edges)
        spent = np.zeros((len(bounds) + 1) * width, np.int64)
        np.add.at(spent, below(bounds, starts).astype(np.int64) * width + values, lengths)
        so_far = self._spent + np.cumsum(spent.reshape(-1, width), axis=0)
        if len(bounds):
            before = so_far[:-1]
            last = np.searchsorted(starts, bounds, side="left") - 1  # begins before the bound, and may end after it
            over = np.where(last >= 0, np.maximum(edges[last + 1] - bounds, 0), 0)
            before[np.arange(len(bounds)), values[last]] -= over
            self._before[self._passed : reached] = before
        self._spent, self._passed = so_far[-1], reached

    def totals(self) -> Ints:
        """One row for each `[low, high)`, one column for each bucket."""
        self._before[self._passed :] = self._spent
        whole = self._before[:, [CODES[key] for key in self._keys]]
        low, high = (np.searchsorted(self._bounds, each) for each in (self._lows, self._highs))
        spent: Ints = whole[high] - whole[low]
        return spent


class Stalls:
    """What each sync cost the GPU in each step."""

    def __init__(self, begin: Ints, done: Ints) -> None:
        self._begin, self._done = begin, done
        self._sums: list[tuple[Ints, Ints]] = []  # keys and lengths
        self._steps = len(begin) + 1

    def add(self, view: WallView) -> None:
        """Add the next block."""
        stalled = np.flatnonzero(view.states.values == CODES["sync_stall"])
        if not len(stalled):
            return
        starts, ends = view.states.edges[stalled], view.states.edges[stalled + 1]
        events, refill = view.events.values[stalled].astype(np.int64), view.refill[stalled]
        starts, ends, piece = split(starts, ends, np.concatenate((self._begin, self._done)))
        step = self._step(starts)
        self._sums.append(_summed((events[piece] * 2 + refill[piece]) * self._steps + step, ends - starts))
        if len(self._sums) == 64:
            self._sums = [_summed(*(np.concatenate(column) for column in zip(*self._sums, strict=True)))]

    def table(self) -> pa.Table:
        """One row for each sync, part and step."""
        if not self._sums:
            return STALLS.empty_table()
        keys, lengths = _summed(*(np.concatenate(column) for column in zip(*self._sums, strict=True)))
        rest, step = np.divmod(keys, self._steps)
        columns: list[Any] = [rest >> 1, (rest & 1).astype(bool), step - 1, lengths]
        return pa.Table.from_arrays([pa.array(column) for column in columns], schema=STALLS)

    def _step(self, moments: Ints) -> Ints:
        """One more than the index of the step whose wall time holds each moment; 0 if none does."""
        index = np.searchsorted(self._begin, moments, side="right") - 1
        return np.where((index >= 0) & (moments < self._done[np.maximum(index, 0)]), index + 1, 0)


def _summed(keys: Ints, lengths: Ints) -> tuple[Ints, Ints]:
    order = np.argsort(keys, kind="stable")
    keys, lengths = keys[order], lengths[order]
    first = runs(keys)[:-1]
    return keys[first], np.add.reduceat(lengths, first)
