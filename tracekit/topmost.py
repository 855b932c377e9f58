"""Which of several overlapping intervals is on top? Whole columns at once, in O(n log n)."""

import numpy as np
from numpy.typing import NDArray

from tracekit import native
from tracekit.intervals import Ints, StepFunction

_BLOCK_BITS = 10  # NumPy first works on blocks of 2 to this power, which keeps its cost linear


def topmost(starts: Ints, ends: Ints) -> StepFunction:
    """Which interval is on top at each point, given the intervals from the lowest to the highest.

    `starts` ascends. Of the intervals that cover a point, the one listed last wins, whether they nest or cross. The
    value is its index, -1 if there is none.
    """
    edges, ranks = _ranked(np.concatenate((starts, ends)))
    return StepFunction(edges, paint(ranks[: len(starts)], ranks[len(starts) :], max(len(edges) - 1, 0)))


def paint(lows: Ints, highs: Ints, length: int) -> NDArray[np.int32]:
    """An array of `length` in which interval i writes i into `[lows[i], highs[i])`, in order; -1 where none does."""
    if not native.BUILT:
        return _in_python(lows, highs, length)
    canvas = np.empty(length, np.int32)
    native._loops.paint(np.ascontiguousarray(lows, np.int64), np.ascontiguousarray(highs, np.int64), canvas)
    return canvas


def _in_python(lows: Ints, highs: Ints, length: int) -> NDArray[np.int32]:
    """The same with NumPy.

    Long intervals are painted as whole blocks on a coarser array plus their two ragged ends, so that the cost does
    not grow with the depth of nesting; short ones by doubling: an interval is two overlapping runs of a power of two.
    """
    canvas = np.full(length, -1, np.int32)
    index = np.flatnonzero(highs > lows).astype(np.int32)
    lows, highs = lows[index], highs[index]
    block = 1 << _BLOCK_BITS
    long = highs - lows >= block
    if long.any():
        first, last = -(-lows[long] // block), highs[long] // block
        inner = index[long]
        coarse = _in_python(first, last, length // block + 1)
        painted = np.where(coarse >= 0, inner[np.maximum(coarse, 0)], -1)
        canvas = np.repeat(painted, block)[:length].astype(np.int32)
        lows = np.concatenate((lows[~long], lows[long], last * block))
        highs = np.concatenate((highs[~long], first * block, highs[long]))
        index = np.concatenate((index[~long], inner, inner))
        ragged = highs > lows
        lows, highs, index = lows[ragged], highs[ragged], index[ragged]
    if not len(index):
        return canvas
    power = np.frexp((highs - lows).astype(np.float64))[1] - 1
    runs = np.full(length, -1, np.int32)
    for level in range(int(power.max()), -1, -1):
        chosen = power == level
        np.maximum.at(runs, lows[chosen], index[chosen])
        np.maximum.at(runs, highs[chosen] - (1 << level), index[chosen])
        if level:
            half = 1 << (level - 1)
            shifted = runs[:-half].copy()
            np.maximum(runs[half:], shifted, out=runs[half:])
    return np.maximum(canvas, runs)


def _ranked(points: Ints) -> tuple[Ints, Ints]:
    """The points sorted, without duplicates, and for every point its index among them."""
    if not len(points):
        return points, np.zeros(0, np.int64)
    order = np.argsort(points, kind="stable")
    ascending = points[order]
    new = np.concatenate(([True], ascending[1:] != ascending[:-1]))
    ranks = np.empty(len(points), np.int64)
    ranks[order] = np.cumsum(new) - 1
    return ascending[new], ranks
