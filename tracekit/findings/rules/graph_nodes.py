"""Does the trace show everything that CUDA graphs replay?"""

from collections.abc import Iterator

import numpy as np

from tracekit.findings import Finding, Where, evidence, rule
from tracekit.findings.kernels import kernels
from tracekit.intervals import Bools, Ints, Union
from tracekit.profile import Profile
from tracekit.trace.roles import bare
from tracekit.trace.rows import BEFORE
from tracekit.units import count, duration

_LEAST, _LEAST_NS = 3, 100_000  # replays, and the hole before the first node of each
_OF_GRAPH = 0.1  # of what its recorded nodes take: before a long graph runs, the driver has to submit it
_EVEN = 1.5  # between the shortest and the median, the median and the longest: the same nodes take the same time
_LINK = "https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs"


@rule("graph_nodes")
def graph_nodes(profile: Profile) -> Iterator[Finding]:
    """`graph_nodes_missing`, beyond the verdicts' list: the GPU seems to idle equally long in each replay."""
    trace = profile.trace
    if not trace.census.any(lambda roles: roles.graph_launch):
        return
    calls, starts, ends, spans = _holes(profile)
    missing = _the_same_each_time(ends - starts, spans)
    if not missing.any():
        return
    yield Finding(
        "graph_nodes_missing",
        f"In {count(int(missing.sum()))} replays of CUDA graphs the GPU seems to idle "
        f"{duration(float(np.median((ends - starts)[missing])))} before the first recorded node: the trace lacks the "
        "nodes that ran there",
        claim=Union.of(starts[missing], ends[missing]),
        where=Where(function=bare(trace.names[trace.name_codes[calls[missing][0]]])),
        evidence=evidence(profile, calls[missing]),
        advice="Do not trust idle time in these replays. Start the profiler before the graphs are captured, or warm it "
        "up for a few more steps.",
        link=_LINK,
        confidence="inferred",
    )


def _holes(profile: Profile) -> tuple[Ints, Ints, Ints, Ints]:
    """For each replay: its call, from when to when the GPU idles before the first node, and how long its nodes run."""
    trace = profile.trace
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
    return calls, np.minimum(idle_from, begin[first]), begin[first], last - begin[first]


def _the_same_each_time(holes: Ints, spans: Ints) -> Bools:
    """The holes that are long and of about the same length: the same missing nodes take the same time."""
    long = (holes >= _LEAST_NS) & (holes >= _OF_GRAPH * spans)
    if long.sum() < max(_LEAST, len(holes) / 2):
        return np.zeros(len(holes), bool)
    usual = np.median(holes[long])
    even = long & (holes <= usual * _EVEN) & (holes >= usual / _EVEN)
    return even if even.sum() >= _LEAST and even.sum() >= long.sum() * 0.9 else np.zeros(len(holes), bool)
