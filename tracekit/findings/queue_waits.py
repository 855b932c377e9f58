"""When does work that was queued not start, although the GPU idles, and which replays of CUDA graphs only seem to begin
late, because their first nodes were not recorded? Between queued kernels there is always a gap of a few µs: the
GPU's own pace. A wait is longer than any submission.
"""

from dataclasses import dataclass

import numpy as np

from tracekit.engine.wall import SUBMISSION_NS
from tracekit.findings.kernels import kernels
from tracekit.intervals import Bools, Ints, Union
from tracekit.profile import Profile
from tracekit.trace.rows import BEFORE

_LEAST, _LEAST_NS = 3, 100_000  # replays, and the hole before the first node of each
_OF_GRAPH = 0.1  # of what its recorded nodes take: before a long graph runs, the driver has to submit it
_EVEN = 1.5  # between the shortest and the median, the median and the longest: the same nodes take the same time


@dataclass(frozen=True)
class GraphHoles:
    """Replays that lack nodes: the calls, and from when to when the GPU seems to idle before the first node, ns."""

    calls: Ints
    starts: Ints
    ends: Ints


def graph_holes(profile: Profile) -> GraphHoles:
    """The replays before whose first node the GPU seems to idle for the same long time in each."""
    trace, nothing = profile.trace, np.zeros(0, np.int64)
    if not trace.census.any(lambda roles: roles.graph_launch):
        return GraphHoles(nothing, nothing, nothing)
    rows = kernels(profile, lambda events: events.roles.gpu)
    launch = trace.links.launch(rows)
    replayed = np.zeros(len(rows), bool)
    replayed[launch >= 0] = trace.events_at(launch[launch >= 0]).roles.graph_launch
    calls, first, inverse = np.unique(launch[replayed], return_index=True, return_inverse=True)
    events = trace.events_at(rows)
    reach = np.concatenate(([BEFORE], np.maximum.accumulate(events.end_ns)[:-1]))[replayed]
    begin = events.ts_ns[replayed]
    last = np.zeros(len(calls), np.int64)
    np.maximum.at(last, inverse, events.end_ns[replayed])
    idle_from = np.maximum(reach[first], trace.events_at(calls).end_ns)
    starts, ends = np.minimum(idle_from, begin[first]), begin[first]
    missing = _the_same_each_time(ends - starts, last - begin[first])
    return GraphHoles(calls[missing], starts[missing], ends[missing])


def _the_same_each_time(holes: Ints, spans: Ints) -> Bools:
    """The holes that are long and of about the same length: the same missing nodes take the same time."""
    long = (holes >= _LEAST_NS) & (holes >= _OF_GRAPH * spans)
    if long.sum() < max(_LEAST, len(holes) / 2):
        return np.zeros(len(holes), bool)
    usual = np.median(holes[long])
    even = long & (holes <= usual * _EVEN) & (holes >= usual / _EVEN)
    return even if even.sum() >= _LEAST and even.sum() >= long.sum() * 0.9 else np.zeros(len(holes), bool)


@dataclass(frozen=True)
class QueueWaits:
    """The waits of the counted steps; one entry each, in order of time."""

    piece_mask: Bools  # the pieces that are such a wait
    start: Ints  # ns
    end: Ints
    before: Ints  # row of the GPU activity that ended last before it; −1 for none
    after: Ints  # row of the activity that starts at its end; −1 where the step ends first
    step_ns: float  # how long they last per counted step


def queue_waits(profile: Profile) -> QueueWaits:
    """The gaps that last too long for the GPU's own pace, without those in which a graph's nodes were not recorded."""
    pieces = profile.attribution.pieces
    is_wait = pieces.of("gpu_gap") & (pieces.dur >= SUBMISSION_NS) & profile.counted[pieces.step]
    is_wait &= ~profile.unseen.covers(pieces.start)
    if is_wait.any():
        holes = graph_holes(profile)
        is_wait[is_wait] = Union.of(holes.starts, holes.ends).within(pieces.start[is_wait], pieces.end[is_wait]) == 0
    start, end = pieces.start[is_wait], pieces.end[is_wait]
    before, after = _neighbours(profile, start, end) if len(start) else (np.zeros(0, np.int64),) * 2
    return QueueWaits(is_wait, start, end, before, after, float((end - start).sum()) / profile.counted_steps)


def _neighbours(profile: Profile, start: Ints, end: Ints) -> tuple[Ints, Ints]:
    trace = profile.trace
    rows = trace.where(lambda part: part.roles.gpu & part.lasting)
    events = trace.events_at(rows)
    order = np.argsort(events.end_ns, kind="stable")
    ended = np.searchsorted(events.end_ns[order], start, side="right") - 1
    before = np.where(ended >= 0, rows[order[np.maximum(ended, 0)]], -1)
    begun = np.minimum(np.searchsorted(events.ts_ns, end), len(rows) - 1)
    after = np.where(events.ts_ns[begun] == end, rows[begun], -1)
    return before.astype(np.int64), after.astype(np.int64)


def first_launch(profile: Profile, rows: Ints) -> Ints:
    """When the call that submitted each activity began, ns; `BEFORE` for an activity of −1, or without a known call."""
    calls = np.full(len(rows), -1, np.int64)
    calls[rows >= 0] = profile.trace.links.launch(rows[rows >= 0])
    return np.where(calls >= 0, profile.trace.ts_ns[np.maximum(calls, 0)], BEFORE)
