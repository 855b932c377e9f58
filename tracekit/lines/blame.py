"""Who is to blame for each stretch of a bucket? Every nanosecond of every step gets an owner."""

import numpy as np
from msgspec import Struct

from tracekit.base.intervals import NO_INTS, Bools, Ints, Union, distinct, occurring, paint
from tracekit.engine import Attribution
from tracekit.engine.buckets import CODES, KEYS, ON_THE_GPU, of_activities
from tracekit.lines.threads import Thread, owners_at
from tracekit.trace import Trace
from tracekit.trace.schema import codes, labels, values

_AT_START = np.zeros(256, bool)
_AT_START[[CODES["kernel_launch"], CODES["sync"], CODES["sync_stall"]]] = True
_GAP = CODES["gpu_gap"]


class Costs(Struct, frozen=True):
    """What each owner costs: one row per step, bucket and owner. They add up to the buckets of the step, exactly."""

    step: Ints  # index among the steps
    bucket: Ints  # index into the keys of all buckets
    owner: Ints
    ns: Ints
    divided_ns: Ints  # the part of it in stretches that several owners share


class Linked(Struct, frozen=True):
    """The trace's GPU activities and the calls that submitted them."""

    launch: Ints  # for each event the row of its launch; −1 for none
    compiled: Ints  # for each event its owner, if a compiled graph names it, else −1


class Blame(Struct, frozen=True):
    """A view, moment by moment: the bucket, the owner, and whether that is an estimate."""

    edges: Ints
    bucket: Ints
    owner: Ints
    divided: Bools
    known: Bools  # whether any segment of the view covers it

    def at(self, moments: Ints) -> Ints:
        """The owners of some moments of the view."""
        owner: Ints = self.owner[np.searchsorted(self.edges, moments, side="right") - 1]
        return owner


def blame(attribution: Attribution, view: str, threads: dict[int, Thread], linked: Linked) -> Blame | None:
    """Split the segments of a view by owner: at the bounds of steps, and wherever the owner of any thread or the GPU
    activity changes. None if there are none."""
    trace, table = attribution.trace, attribution.segments
    names = labels(table["view"])
    is_of_view = codes(table["view"]) == (names.index(view) if view in names else -1)
    if trace.threads.main is None or not is_of_view.any():
        return None
    buckets = np.array([CODES[key] for key in labels(table["bucket"])], np.int64)
    starts = values(table["start_ns"])[is_of_view]
    ends = starts + values(table["dur_ns"])[is_of_view]
    gpu = np.flatnonzero(trace.roles.gpu)
    cuts = [starts, ends, *_windows(attribution, view), trace.ts_ns[gpu], trace.end_ns[gpu]]
    cuts += [edges for thread in threads.values() for edges in (thread.owners.edges, thread.divided.edges)]
    together = np.concatenate(cuts)
    edges = distinct(together[(together >= starts[0]) & (together <= ends[-1])])
    segment = np.searchsorted(starts, edges[:-1], side="right") - 1
    bucket = buckets[codes(table["bucket"])[is_of_view][segment]]
    event = values(table["event"], -1)[is_of_view][segment]
    # A moment belongs to what runs on the thread of the event that is to blame for it: then, or where that starts.
    points = edges[:-1]
    track = np.where(event >= 0, trace.track[event], trace.threads.main)
    moment = np.where((event >= 0) & _AT_START[bucket], trace.ts_ns[event], points)
    # Work of the GPU belongs to the call that submitted it, a gap to the call that ends it.
    busy = _activities(trace, edges, bucket)
    call = np.where(busy >= 0, linked.launch[busy], -1)
    ended = bucket == _GAP
    call[ended] = _ends(trace, linked.launch, points[ended])
    has_call, by_gpu = call >= 0, ended | (busy >= 0)
    track = np.where(has_call, trace.track[call], track)
    moment = np.where(has_call, trace.ts_ns[call], moment)
    is_asked = ~by_gpu | has_call
    owner, divided = np.zeros(len(points), np.int64), np.zeros(len(points), bool)
    owner[is_asked], divided[is_asked] = owners_at(threads, track[is_asked], moment[is_asked])
    fused = (busy >= 0) & (linked.compiled[busy] >= 0)
    owner[fused], divided[fused] = linked.compiled[busy[fused]], False
    return Blame(edges, bucket, owner, divided, points < ends[segment])


def costs(attribution: Attribution, view: str, blamed: Blame | None) -> Costs:
    """What each owner costs in each step."""
    lows, highs = _windows(attribution, view)
    if blamed is None or not len(lows):
        nothing = NO_INTS
        return Costs(nothing, nothing, nothing, nothing, nothing)
    length = np.where(blamed.known, np.diff(blamed.edges), 0)
    keys, inverse = occurring(blamed.owner * len(KEYS) + blamed.bucket)
    columns: list[tuple[Ints, ...]] = []
    for step, (low, high) in enumerate(zip(lows.tolist(), highs.tolist(), strict=True)):
        window = slice(*np.searchsorted(blamed.edges, (low, high)).tolist())
        total, shared = (np.zeros(len(keys), np.int64) for _ in range(2))
        np.add.at(total, inverse[window], length[window])
        np.add.at(shared, inverse[window], length[window] * blamed.divided[window])
        present = np.flatnonzero(total)
        columns.append((np.full(len(present), step), keys[present], total[present], shared[present]))
    step_of, key, ns, shared = (np.concatenate(column) for column in zip(*columns, strict=True))
    return Costs(step_of, key % len(KEYS), key // len(KEYS), ns, shared)


def _windows(attribution: Attribution, view: str) -> tuple[Ints, Ints]:
    steps = attribution.trace.steps
    return (steps.begin, steps.done) if view == "wall" else (steps.issued, steps.returned)


def _activities(trace: Trace, edges: Ints, bucket: Ints) -> Ints:
    """The GPU activity that gives each moment its bucket: the one that started first; −1 where none does."""
    activity = np.full(len(bucket), -1, np.int64)
    activities = np.flatnonzero(trace.roles.gpu)
    buckets = of_activities(trace.events_at(activities).roles)
    for code in (CODES[key] for key in ON_THE_GPU):
        in_bucket = bucket == code
        rows = activities[buckets == code]
        if not in_bucket.any() or not len(rows):
            continue
        rows = rows[np.lexsort((-trace.correlation[rows], trace.end_ns[rows], -trace.ts_ns[rows]))]
        low, high = (np.searchsorted(edges, times[rows]) for times in (trace.ts_ns, trace.end_ns))
        top = paint(np.minimum(low, len(activity)), np.minimum(high, len(activity)), len(activity))
        activity[in_bucket] = np.where(top[in_bucket] >= 0, rows[top[in_bucket]], -1)
    return activity


def _ends(trace: Trace, launch: Ints, points: Ints) -> Ints:
    """For moments at which the GPU idles: the call, of those that submitted what runs next, that starts first."""
    lasting = np.flatnonzero(trace.roles.gpu & (trace.end_ns > trace.ts_ns))
    linked = lasting[launch[lasting] >= 0]
    if not len(linked):
        return np.full(len(points), -1, np.int64)
    busy = Union.of(trace.ts_ns[lasting], trace.end_ns[lasting])
    calls = launch[linked]
    order = np.lexsort((calls, trace.end_ns[calls], trace.ts_ns[calls], trace.ts_ns[linked]))
    linked, calls = linked[order], calls[order]
    gap = np.searchsorted(busy.starts, points, side="right")
    ends = np.append(busy.starts, np.iinfo(np.int64).max)[gap]
    position = np.minimum(np.searchsorted(trace.ts_ns[linked], ends), len(linked) - 1)
    return np.where(trace.ts_ns[linked[position]] == ends, calls[position], -1)
