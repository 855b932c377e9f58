"""Half-open intervals `[start, end)` of int64: union, coverage, cuts, and which of several that overlap is on top.

Nothing here knows what an interval means. Everything works on whole columns in O(n log n); `common` takes long ones
some at a time, because what it needs meanwhile is several times as long.
"""

from typing import TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracekit import native

Ints = NDArray[np.int64]
Rows = NDArray[np.int32]  # indices into a table; half the memory of the int64 that searchsorted returns
Bools = NDArray[np.bool_]
NO_INTS: Ints = np.zeros(0, np.int64)
NO_INTS.flags.writeable = False  # it is shared
_Number = TypeVar("_Number", bound=np.number)
_AT_A_TIME = 1 << 18  # intervals
_BLOCK_BITS = 10  # NumPy first works on blocks of 2 to this power, which keeps its cost linear


class Union(Struct, frozen=True):
    """Disjoint intervals in ascending order; none is empty, and none touches the next."""

    starts: Ints
    ends: Ints

    @staticmethod
    def of(starts: Ints, ends: Ints) -> "Union":
        """The union of any intervals; empty ones are ignored.

        Starts and ends are sorted apart: the union has a hole before a start if as many intervals have ended before it
        as have started.
        """
        lasting = ends > starts
        if not lasting.all():
            starts, ends = starts[lasting], ends[lasting]
        if not len(starts):
            return Union(starts, ends)
        return _joined(_ascending(starts), _ascending(ends))

    @property
    def edges(self) -> Ints:
        """Every start and end."""
        return np.concatenate((self.starts, self.ends))

    def covers(self, at: Ints) -> Bools:
        """Whether each point is in the union."""
        alternating = np.empty(2 * len(self.starts), np.int64)
        alternating[0::2], alternating[1::2] = self.starts, self.ends
        return (count_up_to(alternating, at) & 1).astype(bool)

    def clip(self, low: int, high: int) -> "Union":
        """The part of the union inside `[low, high)`."""
        starts, ends = np.clip(self.starts, low, high), np.clip(self.ends, low, high)
        keep = ends > starts
        return Union(starts[keep], ends[keep])

    def gaps(self, low: int, high: int) -> "Union":
        """The part of `[low, high)` that the union does not cover."""
        clipped = self.clip(low, high)
        starts = np.concatenate((np.array([low], np.int64), clipped.ends))
        ends = np.concatenate((clipped.starts, np.array([high], np.int64)))
        keep = ends > starts
        return Union(starts[keep], ends[keep])

    def minus(self, other: "Union") -> "Union":
        """The part of the union that the other does not cover."""
        other = other.overlapping(self)
        if not len(other.starts):
            return self
        return self.common(Union(np.append(_EVER.starts, other.ends), np.append(other.starts, _EVER.ends)))

    def common(self, other: "Union") -> "Union":
        """The part of the union that the other covers, too."""
        fewer, many = (self, other) if len(self.starts) <= len(other.starts) else (other, self)
        blocks = [slice(first, first + _AT_A_TIME) for first in range(0, max(len(fewer.starts), 1), _AT_A_TIME)]
        parts = [_common(Union(fewer.starts[block], fewer.ends[block]), many) for block in blocks]
        if len(parts) == 1:
            return parts[0]
        return Union(np.concatenate([part.starts for part in parts]), np.concatenate([part.ends for part in parts]))

    def plus(self, other: "Union") -> "Union":
        """What either of the two covers."""
        if not len(self.starts) or not len(other.starts):
            return self if len(self.starts) else other
        starts, ends = np.concatenate((self.starts, other.starts)), np.concatenate((self.ends, other.ends))
        for column in (starts, ends):
            column.sort(kind="stable")  # two ascending runs: they are merged
        return _joined(starts, ends)

    def overlapping(self, other: "Union") -> "Union":
        """The intervals between the other's first start and its last end."""
        if not len(other.starts):
            return other
        first, last = np.searchsorted(self.ends, other.starts[0]), np.searchsorted(self.starts, other.ends[-1])
        return Union(self.starts[first:last], self.ends[first:last])

    def total(self) -> int:
        """The length of the union."""
        return int((self.ends - self.starts).sum())

    def within(self, lows: Ints, highs: Ints) -> Ints:
        """The covered length inside each `[low, high)`."""
        if not native.BUILT:
            return self._within_in_numpy(lows, highs)
        covered = np.empty(len(lows), np.int64)
        starts, ends, lows, highs = (
            np.ascontiguousarray(column, np.int64) for column in (self.starts, self.ends, lows, highs)
        )
        native._loops.cover(starts, ends, lows, highs, covered)
        return covered

    def _within_in_numpy(self, lows: Ints, highs: Ints) -> Ints:
        lengths = np.concatenate((np.zeros(1, np.int64), np.cumsum(self.ends - self.starts)))

        def covered_before(at: Ints) -> Ints:
            index = count_up_to(self.starts, at)
            last = np.maximum(index - 1, 0)
            overshoot = np.maximum(self.ends[last] - at, 0) if len(self.ends) else np.zeros(len(at), np.int64)
            return lengths[index] - np.where(index > 0, overshoot, 0)

        return covered_before(np.maximum(highs, lows)) - covered_before(lows)


NO_TIME = Union(NO_INTS, NO_INTS)


_EVER = Union(np.array([np.iinfo(np.int64).min]), np.array([np.iinfo(np.int64).max]))


def _joined(starts: Ints, ends: Ints) -> Union:
    """The union of intervals of which none is empty, from their starts and their ends, each in ascending order."""
    if not len(starts):
        return Union(starts, ends)
    opens = np.flatnonzero(np.concatenate(([True], starts[1:] > ends[:-1])))
    return Union(starts[opens], ends[np.concatenate((opens[1:] - 1, [len(ends) - 1]))])


def _common(fewer: Union, many: Union) -> Union:
    """What both cover; each of the few is looked up among the many."""
    first = place_among(many.ends, fewer.starts, after=True)
    counts = place_among(many.starts, fewer.ends) - first
    before = np.cumsum(counts)
    if not len(counts) or not before[-1]:
        return NO_TIME
    of_many = np.arange(before[-1]) + np.repeat(first - before + counts, counts)
    starts, ends = np.repeat(fewer.starts, counts), np.repeat(fewer.ends, counts)
    return Union(np.maximum(starts, many.starts[of_many]), np.minimum(ends, many.ends[of_many]))


class StepFunction(Struct, frozen=True):
    """A piecewise constant function: `values[k]` on `[edges[k], edges[k + 1])`, `outside` elsewhere."""

    edges: Ints
    values: NDArray[np.int64] | NDArray[np.int32] | NDArray[np.int8]
    outside: int = -1

    def at(self, points: Ints) -> Ints:
        """The value at each point."""
        return self.of(count_up_to(self.edges, points))

    def of(self, counts: Rows) -> Ints:
        """The values after the given numbers of edges, as `below` counts them.

        Functions with the same edges can share one count.
        """
        if len(self.values) == 0:
            return np.full(len(counts), self.outside, np.int64)
        kind = self.values.dtype
        end = np.array([self.outside], kind)
        padded: Ints = np.concatenate((end, self.values, end))
        return padded[counts]


def place_among(ascending: NDArray[_Number], points: NDArray[_Number], after: bool = False) -> Ints:
    """The index of the first value that is at or after each point; with `after`, of the first one after it.

    It is what `np.searchsorted` says. But points mostly ascend, and where the last one belongs is near: a search from
    there takes a third of the time.
    """
    if not native.BUILT or ascending.dtype != points.dtype or ascending.dtype.kind != "i" or ascending.itemsize < 4:
        return np.searchsorted(ascending, points, side="right" if after else "left").astype(np.int64, copy=False)
    places = np.empty(len(points), np.int64)
    columns = np.ascontiguousarray(ascending), np.ascontiguousarray(points)
    native._loops.search(*columns, ascending.itemsize, after, places)
    return places


def count_up_to(edges: Ints, points: Ints) -> Rows:
    """How many of the ascending edges are at or before each point.

    Where the points ascend as well, the edges are looked up among the points: there are often far fewer edges, and the
    cost per point falls from 26 ns to 1 ns.
    """
    if len(points) <= len(edges) and np.array_equal(points, edges[: len(points)]):
        return np.arange(1, len(points) + 1, dtype=np.int32)
    if len(edges) > len(points) or not (points[1:] >= points[:-1]).all():
        return place_among(edges, points, after=True).astype(np.int32)
    if not len(edges):
        return np.zeros(len(points), np.int32)
    positions = place_among(points, edges)
    counts = np.empty(len(edges) + 1, np.int64)
    counts[0], counts[-1] = positions[0], len(points) - positions[-1]
    np.subtract(positions[1:], positions[:-1], out=counts[1:-1])
    del positions  # these columns are long
    return np.repeat(np.arange(len(edges) + 1, dtype=np.int32), counts)


def _ascending(points: Ints) -> Ints:
    return np.sort(points, kind="stable") if (points[1:] < points[:-1]).any() else points


def distinct(points: NDArray[_Number]) -> NDArray[_Number]:
    """The points sorted, without duplicates. (`np.unique` hashes first: fifteen times slower on long columns.)

    Points usually arrive as a few ascending runs, which a stable sort merges four times as fast.
    """
    return _each_once(np.sort(points, kind="stable"))


def _each_once(ascending: NDArray[_Number]) -> NDArray[_Number]:
    if not len(ascending):
        return ascending
    new = np.ones(len(ascending), bool)
    np.not_equal(ascending[1:], ascending[:-1], out=new[1:])
    return ascending[new]


def split(starts: Ints, ends: Ints, at: Ints) -> tuple[Ints, Ints, Ints]:
    """Each interval cut at those points: start and end of every piece, and the index of its interval."""
    bounds = distinct(at)
    first, last = place_among(bounds, starts, after=True), place_among(bounds, ends)
    counts = np.maximum(last - first, 0) + 1
    of = np.repeat(np.arange(len(starts)), counts)
    nth = np.arange(len(of)) - np.repeat(np.cumsum(counts) - counts, counts)
    if not len(bounds):
        return starts, ends, of
    bound = first[of] + nth  # where each piece ends, unless it is the last of its interval
    high = np.where(nth == counts[of] - 1, ends[of], bounds[np.minimum(bound, len(bounds) - 1)])
    low = np.where(nth == 0, starts[of], bounds[np.maximum(bound - 1, 0)])
    return low, high, of


def occurring(codes: Ints | Rows) -> tuple[Ints, Ints]:
    """The codes that occur, ascending, and for each entry the index of its code.

    Codes are mostly few and small: a lookup table is ten times as fast as sorting all entries, as `np.unique` does.
    """
    largest = int(codes.max()) if len(codes) else 0
    if largest > 4 * len(codes) + (1 << 16) or (len(codes) and codes.min() < 0):
        distinct_codes, inverse = np.unique(codes, return_inverse=True)
        return distinct_codes.astype(np.int64), inverse.reshape(-1)
    occurs = np.zeros(largest + 1, bool)
    occurs[codes] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[codes]


def cuts(*points: Ints, low: int, high: int) -> Ints:
    """`low`, `high` and all points between them, sorted, without duplicates."""
    merged = np.concatenate([np.array([low, high], np.int64), *points])
    merged.sort(kind="stable")
    first, last = np.searchsorted(merged, low, side="left"), np.searchsorted(merged, high, side="right")
    return _each_once(merged[first:last])


def runs(values: NDArray[np.int64] | NDArray[np.int8] | NDArray[np.int32]) -> NDArray[np.intp]:
    """Where each run of equal neighbours begins, with the length of `values` at the end."""
    if not len(values):
        return np.zeros(1, np.intp)
    changes = np.flatnonzero(values[1:] != values[:-1]) + 1
    return np.concatenate(([0], changes, [len(values)]))


def topmost(starts: Ints, ends: Ints) -> StepFunction:
    """Which interval is on top at each point, given the intervals from the lowest to the highest.

    `starts` ascends. Of the intervals that cover a point, the one listed last wins, whether they nest or cross. The
    value is its index, -1 if there is none.
    """
    points = np.concatenate((starts, ends))
    order = np.argsort(points, kind="stable")
    ascending = points[order]
    new = np.ones(len(points), bool)
    np.not_equal(ascending[1:], ascending[:-1], out=new[1:])
    edges, ranks = ascending[new], np.empty(len(points), np.int64)
    ranks[order] = np.cumsum(new) - 1  # of each point among the edges
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
        at_level = power == level
        np.maximum.at(runs, lows[at_level], index[at_level])
        np.maximum.at(runs, highs[at_level] - (1 << level), index[at_level])
        if level:
            half = 1 << (level - 1)
            shifted = runs[:-half].copy()
            np.maximum(runs[half:], shifted, out=runs[half:])
    return np.maximum(canvas, runs)
