"""Every nanosecond of every step in exactly one bucket, in two views that are alike in shape, and what cannot be
answered: what the blocks of a view add up to, in sums, in segments, and in pieces of the answered steps.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from tracekit.base.intervals import (
    NO_INTS,
    Bools,
    Ints,
    Rows,
    StepFunction,
    Union,
    count_up_to,
    distinct,
    place_among,
    runs,
    split,
)
from tracekit.engine.block_views import SIZE, BlockViews, block_views
from tracekit.engine.buckets import CODES, HOST, KEYS, WALL, among
from tracekit.engine.host import HostView
from tracekit.engine.wall import WallView
from tracekit.trace import Trace
from tracekit.trace.roles import OTHER_DEVICE
from tracekit.trace.schema import LABEL, codes, column, values
from tracekit.trace.storing.scratch import gathered

STALLS = pa.schema(
    [
        pa.field("event", pa.int64()),  # the sync
        pa.field("refill", pa.bool_()),  # after its return, while the host refilled the queue
        pa.field("step", pa.int64()),  # index of the step in whose wall time the GPU idled, −1 for none
        pa.field("dur_ns", pa.int64()),
    ]
)
SEGMENTS = pa.schema(
    [
        column("view", LABEL, "wall or host"),
        column("start_ns", pa.int64(), "start", "ns"),
        column("dur_ns", pa.int64(), "duration", "ns"),
        column("bucket", LABEL, "bucket that the time belongs to"),
        column("event", pa.int64(), "row of the event to blame; null for none"),
    ]
)


class StepView(Struct, frozen=True):
    """Steps by buckets: `totals` has one row per step and one column per key, int64 ns, and adds up to `step_ns`."""

    name: str
    keys: tuple[str, ...]
    totals: Ints
    known: Bools  # a step that is not known holds no answer
    starts_ns: Ints
    step_ns: Ints
    reason: str | None  # why the trace cannot answer it at all; None if it can


class Pieces(Struct, frozen=True):
    """One entry for the part of each segment inside an answered step, in order of time.

    They are disjoint, and add up to the totals of the view. `event` is the row to blame, on the host; −1 where none
    is, and while the GPU works. `step` is the index of the step.
    """

    view: str
    start: Ints
    end: Ints
    bucket: NDArray[np.int8]
    event: Rows
    step: Rows

    @property
    def dur(self) -> Ints:
        """How long each lasts, ns."""
        lengths: Ints = self.end - self.start
        return lengths

    def of(self, *buckets: str) -> Bools:
        """The pieces in one of these buckets."""
        return among(self.bucket, [CODES[key] for key in buckets])

    def union(self, mask: Bools) -> Union:
        """The time of some of them."""
        return Union.of(self.start[mask], self.end[mask])


class Attribution(Struct, frozen=True, dict=True):
    """Where the time of a trace went.

    `wall` and `host` have one row per step and one column per bucket of `WALL` or `HOST`, int64 ns; a row of
    `wall_known` or `host_known` that is False holds no answer.
    """

    trace: Trace
    cannot_answer: dict[str, str]  # view → why the trace cannot answer it
    host: Ints
    wall: Ints
    host_known: Bools
    wall_known: Bools
    compiles: Bools  # the steps in which a driving thread compiles; the steps of means and exports are the others
    summed_stalls: pa.Table | None = None  # from the pass that computed this; absent if it comes from the cache
    made_pieces: Pieces | None = None  # from that pass, too, where they were asked for together with the totals

    @cached_property
    def stalls(self) -> pa.Table:
        """What each sync cost the GPU; see `STALLS`."""
        if self.summed_stalls is not None:
            return self.summed_stalls
        stalls = Stalls(self.trace.steps.begin, self.trace.steps.done)
        for block in self.block_views():
            if block.wall is not None:
                stalls.add(block.wall)
        return stalls.table()

    @property
    def wall_ns(self) -> Ints:
        """How long each step took until its work was done."""
        return self.trace.steps.done - self.trace.steps.begin

    @property
    def host_ns(self) -> Ints:
        """How long the host took to issue each step."""
        return self.trace.steps.returned - self.trace.steps.issued

    def block_views(self, size: int = SIZE) -> Iterator[BlockViews]:
        """Both views, moment by moment, block by block of the analysed window. Each call reads the trace anew."""
        if "host" not in self.cannot_answer:
            yield from block_views(self.trace, with_wall="wall" not in self.cannot_answer, blame=True, size=size)

    @cached_property
    def segments(self) -> pa.Table:
        """Both views as segments, in order of time."""
        parts = [*self.segments_of("wall"), *self.segments_of("host")]
        return pa.concat_tables(parts or [SEGMENTS.empty_table()]).unify_dictionaries().combine_chunks()

    def segments_of(self, view: str, size: int = SIZE) -> Iterator[pa.Table]:
        """The segments of one view, a table for each block."""
        if view in self.cannot_answer:
            return
        yield from segments(view, _views(view, self.block_views(size)))

    @cached_property
    def pieces(self) -> Pieces:
        """The segments cut at the answered steps, of the first view that the trace can answer, if any."""
        view = self.answered_view
        return self.made_pieces or pieces(view, self.segments_of(view.name))

    @property
    def answered_view(self) -> StepView:
        """The first view that the trace can answer, wall before host; if it can answer neither, the wall view."""
        return next((view for view in self.views.values() if view.known.any()), self.views["wall"])

    @property
    def views(self) -> dict[str, StepView]:
        """Both views, in the same form."""
        steps, why = self.trace.steps, self.cannot_answer.get
        wall = StepView("wall", WALL, self.wall, self.wall_known, steps.begin, self.wall_ns, why("wall"))
        host = StepView("host", HOST, self.host, self.host_known, steps.issued, self.host_ns, why("host"))
        return {"wall": wall, "host": host}


def attribute(trace: Trace, size: int = SIZE, *, with_pieces: bool = False) -> Attribution:
    """Put every nanosecond of every step into one bucket of each view; on request, make the pieces in the same pass."""
    steps = trace.steps
    cannot = {}
    if no_host := _why_no_host(trace):
        cannot["host"] = no_host
    # The steps in which the launch of some GPU activity starts.
    linked = _steps_with(trace, (trace.ts_ns[launches] for _, launches in trace.links.some()))
    if no_wall := no_host or _why_no_wall(trace, linked):
        cannot["wall"] = no_wall
    host, wall = Totals(HOST, steps.issued, steps.returned), Totals(WALL, steps.begin, steps.done)
    stalls = Stalls(steps.begin, steps.done)
    is_complete = _before_loss(trace)
    # Steps whose launched work does not appear in the trace, although the trace has GPU activity.
    lack_kernels = np.zeros(len(steps), bool)
    if trace.device == "gpu" and not linked.all():
        launched = _steps_with(trace, (part.ts_ns[part.roles.launch & part.process] for part in trace.parts()))
        lack_kernels = launched & ~linked
    # Steps in which a driving thread compiles, while they are issued or while their work is under way.
    compiles = np.zeros(len(steps), bool)
    if trace.census.any(lambda roles: roles.compile_span):
        driving = trace.threads.is_driving
        spans = trace.events_at(trace.where(lambda part: part.roles.compile_span & driving[part.track]))
        union = Union.of(spans.ts_ns, spans.end_ns)
        compiles = (union.within(steps.issued, steps.returned) > 0) | (union.within(steps.begin, steps.done) > 0)
    attribution = Attribution(
        trace=trace,
        cannot_answer=cannot,
        host=host.totals(),
        wall=wall.totals(),
        host_known=np.full(len(steps), not no_host) & is_complete,
        wall_known=np.full(len(steps), not no_wall) & ~lack_kernels & is_complete,
        compiles=compiles,
    )

    def summed() -> Iterator[BlockViews]:
        for block in block_views(trace, with_wall=not no_wall, blame=with_pieces, size=size):
            host.add(block.host.states)
            if block.wall is not None:
                wall.add(block.wall.states)
                stalls.add(block.wall)
            yield block

    blocks = summed() if not no_host else iter(())
    view = attribution.answered_view  # of the steps that are known; nothing is summed up yet
    made_pieces = pieces(view, segments(view.name, _views(view.name, blocks))) if with_pieces else None
    deque(blocks, maxlen=0)
    return replace(
        attribution, host=host.totals(), wall=wall.totals(), summed_stalls=stalls.table(), made_pieces=made_pieces
    )


def _views(name: str, blocks: Iterable[BlockViews]) -> Iterator[HostView | WallView]:
    for block in blocks:
        view = block.host if name == "host" else block.wall
        if view is not None:
            yield view


def _before_loss(trace: Trace) -> Bools:
    """Which steps of a truncated file are certainly complete."""
    steps, lost_from = trace.steps, trace.lost_from_ns
    if lost_from is None:
        return np.ones(len(steps), bool)
    is_complete = (np.maximum(steps.done, steps.returned) <= lost_from) & (steps.until <= lost_from)
    if trace.device == "gpu" and not trace.impossible.two_clocks:
        calls = (part.rows(part.roles.launch & part.process) for part in trace.parts())
        unlinked = (trace.ts_ns[rows[trace.links.submitted(rows)[1] == 0]] for rows in calls)
        is_complete &= ~_steps_with(trace, unlinked)  # what they submitted may be what is missing
    return np.logical_and.accumulate(is_complete)


def _steps_with(trace: Trace, moments: Iterable[Ints]) -> Bools:
    """The steps in which one of these moments lies."""
    has_moment = np.zeros(len(trace.steps), bool)
    for points in moments:
        owner = trace.steps.of(points)
        has_moment[owner[owner >= 0]] = True
    return has_moment


def _why_no_host(trace: Trace) -> str | None:
    if trace.threads.main is None:
        return "the trace holds no host events: was CPU activity recorded?"
    if len(trace.steps) and not _before_loss(trace).any():
        return f"the file was cut ({trace.cut_short}), and what is missing may belong to any of its steps"
    if not len(trace.steps) or not any(
        (part.lasting & (part.process | part.roles.gpu)).any() for part in trace.parts()
    ):
        return "every event in the trace has zero duration"
    return None


def _why_no_wall(trace: Trace, linked: Bools) -> str | None:
    launching = trace.processes_with(lambda roles: roles.launch)
    if len(launching) > 1:
        return (
            f"{len(launching)} processes launch work in this file: ranks that share a device were merged, or "
            "--no-ranks was given. Give the trace of each rank separately"
        )
    if trace.device != "gpu":
        if launching:
            return "the host launched GPU work, but the trace holds no GPU activity: was the GPU side recorded?"
        if trace.census.any(lambda roles: roles.kind == OTHER_DEVICE):
            return "the work ran on a device that is neither CUDA's nor ROCm's, and its activity cannot be read"
        return None
    if trace.impossible.two_clocks:
        return "the host's calls and the GPU's work are stamped by two clocks that have nothing in common"
    if not linked.any():
        return "no GPU activity was launched inside a step by the process that these steps belong to"
    return None


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
        spent_ns = np.zeros((len(bounds) + 1) * width, np.int64)
        np.add.at(spent_ns, count_up_to(bounds, starts).astype(np.int64) * width + values, lengths)
        so_far = self._spent + np.cumsum(spent_ns.reshape(-1, width), axis=0)
        if len(bounds):
            before = so_far[:-1]
            last = np.searchsorted(starts, bounds, side="left") - 1  # begins before the bound, and may end after it
            overhang_ns = np.where(last >= 0, np.maximum(edges[last + 1] - bounds, 0), 0)
            before[np.arange(len(bounds)), values[last]] -= overhang_ns
            self._before[self._passed : reached] = before
        self._spent, self._passed = so_far[-1], reached

    def totals(self) -> Ints:
        """One row for each `[low, high)`, one column for each bucket."""
        self._before[self._passed :] = self._spent
        cumulative_ns = self._before[:, [CODES[key] for key in self._keys]]
        low, high = (np.searchsorted(self._bounds, bounds) for bounds in (self._lows, self._highs))
        spent_ns: Ints = cumulative_ns[high] - cumulative_ns[low]
        return spent_ns


class Stalls:
    """What each sync cost the GPU in each step."""

    def __init__(self, begin: Ints, end: Ints) -> None:
        self._begin, self._end = begin, end
        self._sums: list[tuple[Ints, Ints]] = []  # keys and lengths
        self._steps = len(begin) + 1

    def add(self, view: WallView) -> None:
        """Add the next block."""
        stalled = np.flatnonzero(view.states.values == CODES["sync_stall"])
        if not len(stalled):
            return
        starts, ends = view.states.edges[stalled], view.states.edges[stalled + 1]
        events, refill = view.events.values[stalled].astype(np.int64), view.refill[stalled]
        starts, ends, piece = split(starts, ends, np.concatenate((self._begin, self._end)))
        # One more than the index of the step whose wall time holds each start; 0 if none does.
        index = np.searchsorted(self._begin, starts, side="right") - 1
        step = np.where((index >= 0) & (starts < self._end[np.maximum(index, 0)]), index + 1, 0)
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


def _summed(keys: Ints, lengths: Ints) -> tuple[Ints, Ints]:
    order = np.argsort(keys, kind="stable")
    keys, lengths = keys[order], lengths[order]
    first = runs(keys)[:-1]
    return keys[first], np.add.reduceat(lengths, first)


def segments(view: str, blocks: Iterable[HostView | WallView]) -> Iterator[pa.Table]:
    """The segments of successive blocks; a segment that continues in the next block stays whole."""
    starts, ends, buckets, events = (NO_INTS for _ in range(4))
    for block in blocks:
        edges = block.states.edges
        buckets = np.concatenate((buckets, block.states.values))
        events = np.concatenate((events, block.events.at(edges[:-1])))
        starts, ends = np.concatenate((starts, edges[:-1])), np.concatenate((ends, edges[1:]))
        first = runs(buckets << 40 | (events + 1))
        starts, ends = starts[first[:-1]], ends[first[1:] - 1]
        buckets, events = buckets[first[:-1]], events[first[:-1]]
        yield _table(view, starts[:-1], ends[:-1], buckets[:-1], events[:-1])
        starts, ends, buckets, events = starts[-1:], ends[-1:], buckets[-1:], events[-1:]  # it may go on
    yield _table(view, starts, ends, buckets, events)


def _table(view: str, starts: Ints, ends: Ints, buckets: Ints, events: Ints) -> pa.Table:
    return pa.Table.from_arrays(
        [
            pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(starts), np.int32)), [view]),
            pa.array(starts),
            pa.array(ends - starts),
            pa.DictionaryArray.from_arrays(pa.array(buckets.astype(np.int32)), list(KEYS)),
            pa.array(events, mask=events < 0),
        ],
        schema=SEGMENTS,
    )


def pieces(view: StepView, segments: Iterable[pa.Table]) -> Pieces:
    """The segments of a view, cut at its answered steps; none if no step is answered."""
    parts = _pieces_of(view, segments) if view.known.any() else ()
    start, end, bucket, event, step = gathered(parts, (np.int64, np.int64, np.int8, np.int32, np.int32))
    return Pieces(view.name, start, end, bucket, event, step)


def _pieces_of(view: StepView, segments: Iterable[pa.Table]) -> Iterator[tuple[Ints | Rows, ...]]:
    answered_steps = np.flatnonzero(view.known & (view.step_ns > 0))
    lows, highs = view.starts_ns[answered_steps], view.starts_ns[answered_steps] + view.step_ns[answered_steps]
    for part in segments:
        starts = part["start_ns"].to_numpy()
        ends = starts + part["dur_ns"].to_numpy()
        low, high, segment = split(starts, ends, np.concatenate((lows, highs)))
        index = place_among(lows, low, after=True) - 1
        in_step = (
            (index >= 0) & (low < highs[np.maximum(index, 0)]) if len(answered_steps) else np.zeros(len(low), bool)
        )
        bucket, event = codes(part["bucket"]), values(part["event"], null=-1)
        kept_segments = segment[in_step]
        yield low[in_step], high[in_step], bucket[kept_segments], event[kept_segments], answered_steps[index[in_step]]
