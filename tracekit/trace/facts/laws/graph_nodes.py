"""Are the first nodes of replayed CUDA graphs missing from every replay?

A profiler that starts after a graph was captured may lack the same nodes each time. The GPU then seems to idle before
the first recorded node of each replay, although nothing but submission lies between a call and its graph.
"""

from collections.abc import Iterator

import numpy as np

from tracekit.base.intervals import Ints, Union, distinct
from tracekit.base.units import count, duration
from tracekit.trace.facts.coverage import nodes_of_replays
from tracekit.trace.facts.law import Broken, law
from tracekit.trace.model import Trace
from tracekit.trace.rows import BEFORE

_MIN_REPLAYS = 3  # of one graph
_MIN_HOLE_NS = 40_000  # beyond what submitting a graph takes
_MIN_SHARE_OF_GRAPH = 0.1  # of what its recorded nodes take: before a long graph runs, the driver has to submit it
_MIN_SHARE_OF_REPLAYS = 0.9  # of one graph: where it sometimes begins at once, something else delays it
_MIN_SHARE_OF_HOLES = 0.5  # of one graph's replays: where the GPU mostly works before it, the graph waits for that


@law("lost_nodes", "doubt", touches=("gpu work", "gpu idle"))
def lost_nodes(trace: Trace) -> Iterator[Broken]:
    """The GPU seems to idle before the first recorded node of each replay."""
    calls, starts, ends, delays = _holes(trace)
    missing, lengths = np.zeros(len(calls), bool), _lengths(trace, calls)
    step = trace.steps.of(trace.ts_ns[calls])
    of_graph: dict[frozenset[tuple[int, int]], list[int]] = {}
    for replay, nodes in enumerate(nodes_of_replays(trace, calls)):
        of_graph.setdefault(frozenset(nodes.items()), []).append(replay)
    for group in of_graph.values():
        min_hole_ns = np.maximum(_MIN_HOLE_NS, _MIN_SHARE_OF_GRAPH * lengths[group])
        # Other streams may work meanwhile: then the GPU does not idle, but the graph begins late nevertheless.
        long, late = ((ends - starts)[group] >= min_hole_ns), delays[group] >= min_hole_ns
        is_usual = long.mean() >= _MIN_SHARE_OF_HOLES and late.mean() >= _MIN_SHARE_OF_REPLAYS
        missing[group] = long & is_usual & (long.sum() >= _MIN_REPLAYS)
    if missing.any():
        usual = duration(float(np.median((ends - starts)[missing])))
        yield Broken(
            f"{count(int(missing.sum()))} replays of CUDA graphs seem to lack their first nodes: the GPU never begins "
            f"one at once, but after {usual}. Start the profiler before the graphs are captured.",
            int(missing.sum()),
            int(calls[missing][0]),
            gpu=Union.of(starts[missing], ends[missing]),
            steps=tuple(distinct(step[missing & (step >= 0)]).tolist()),
        )


def _holes(trace: Trace) -> tuple[Ints, Ints, Ints, Ints]:
    """The replays, from when to when the GPU does nothing before the first recorded node of each, ns, and how long
    after its call and all else of its stream that node begins."""
    nothing = np.zeros(0, np.int64)
    if not trace.census.any(lambda roles: roles.graph_launch):
        return nothing, nothing, nothing, nothing
    rows = trace.where(lambda part: part.roles.gpu & part.lasting)
    launch = trace.links.launch(rows)
    of_replay = np.zeros(len(rows), bool)
    of_replay[launch >= 0] = trace.events_at(launch[launch >= 0]).roles.graph_launch
    calls, first = np.unique(launch[of_replay], return_index=True)
    events = trace.events_at(rows)
    reach = np.concatenate(([BEFORE], np.maximum.accumulate(events.end_ns)[:-1]))[of_replay]
    begin = events.ts_ns[of_replay][first]
    called = trace.events_at(calls).end_ns
    idle_from = np.maximum(reach[first], called)
    position, ready = np.flatnonzero(of_replay)[first], called.copy()
    for track in distinct(trace.track[rows[position]]).tolist():
        on_track = np.flatnonzero(trace.track[rows] == track)
        ended_ns = np.append(BEFORE, np.maximum.accumulate(events.end_ns[on_track]))
        mine = trace.track[rows[position]] == track
        ready[mine] = np.maximum(called[mine], ended_ns[np.searchsorted(on_track, position[mine])])
    return calls, np.minimum(idle_from, begin), begin, begin - ready


def _lengths(trace: Trace, calls: Ints) -> Ints:
    """From the start of the first recorded node of each replay to the end of the last, ns."""
    position = np.searchsorted(calls, trace.links.launches)
    of_replay = np.append(calls, -1)[position] == trace.links.launches
    nodes = trace.events_at(trace.links.activities[of_replay])
    first, last = np.full(len(calls), -BEFORE, np.int64), np.full(len(calls), BEFORE, np.int64)
    np.minimum.at(first, position[of_replay], nodes.ts_ns)
    np.maximum.at(last, position[of_replay], nodes.end_ns)
    return last - first
