"""Which replays of CUDA graphs seem to begin late, because their first nodes were not recorded?"""

from dataclasses import dataclass

import numpy as np

from tracekit.findings.kernels import kernels
from tracekit.intervals import Bools, Ints
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
    calls, first, which = np.unique(launch[replayed], return_index=True, return_inverse=True)
    events = trace.events_at(rows)
    reach = np.concatenate(([BEFORE], np.maximum.accumulate(events.end_ns)[:-1]))[replayed]
    begin = events.ts_ns[replayed]
    last = np.zeros(len(calls), np.int64)
    np.maximum.at(last, which, events.end_ns[replayed])
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
