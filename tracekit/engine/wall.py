"""Where did the wall time go? What the GPU was doing and, while it was idle, what kept it idle."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tracekit.engine.buckets import CODES, among
from tracekit.engine.host import HostView
from tracekit.intervals import Bools, Ints, StepFunction, Union, below, cuts
from tracekit.trace.roles import KERNEL

if TYPE_CHECKING:
    from tracekit.trace.model import Trace

SUBMISSION_NS = 30_000  # from a launch call's return, for so long its work counts as on its way
_REFILLS = [CODES[key] for key in ("python", "dispatch", "alloc", "guards")]  # the host at refilling a drained queue
_SYNC, _STALL = CODES["sync"], CODES["sync_stall"]
_NEVER = np.iinfo(np.int64).max // 2


@dataclass(frozen=True)
class WallView:
    """Over the analysed window: the bucket, and the row of the event to blame for it (−1: none, or the GPU's own)."""

    states: StepFunction
    events: StepFunction
    refill: Bools  # sync stall after the sync itself: the bubble while the host refills the queue


@dataclass(frozen=True)
class _Gaps:
    """Maximal idle gaps `[start, end)` and what ends them; one row each."""

    start: Ints
    end: Ints
    launch: Ints  # row of L, the call that submitted the work that ends the gap; −1 where none is known
    launch_start: Ints  # _NEVER where none is known
    launch_end: Ints
    launch_syncs: Bools
    stalled_until: Ints  # how far the sync that drained the queue is to blame; the gap's start where none did
    drained_by: Ints  # row of that sync, −1 where none did


def wall_view(trace: "Trace", host: HostView) -> WallView:
    """The bucket of every moment of the analysed window. The caller knows that the trace can answer."""
    if not trace.roles.gpu.any():
        state = np.where(host.states.values == _SYNC, _STALL, host.states.values).astype(np.int8)
        nothing = np.zeros(len(state), bool)
        return WallView(StepFunction(host.states.edges, state), host.events, nothing)
    low, high = trace.steps.window
    layers = _gpu_layers(trace)
    gaps = _gaps(trace, host, low, high)
    edges = cuts(
        host.states.edges,
        *(union.edges for _, union in layers),
        gaps.launch_start,
        gaps.launch_end,
        gaps.launch_end + SUBMISSION_NS,
        gaps.stalled_until,
        low=low,
        high=high,
    )
    points = edges[:-1]
    state, event = np.full(len(points), -1, np.int8), np.full(len(points), -1, np.int32)
    refill = np.zeros(len(points), bool)
    for code, union in layers:
        state[union.covers(points)] = code
    free = np.flatnonzero(state < 0)
    state[free], event[free], refill[free] = _idle(points[free], gaps, host)
    return WallView(StepFunction(edges, state), StepFunction(edges, event), refill)


def _gpu_layers(trace: "Trace") -> list[tuple[int, Union]]:
    """What the GPU does, what counts least first: communication and copies only where they are exposed."""
    roles = trace.roles

    def union(mask: Bools) -> Union:
        return Union.of(trace.ts_ns[mask], trace.end_ns[mask])

    return [
        (CODES["gpu_copy"], union(roles.gpu & (roles.kind != KERNEL))),
        (CODES["gpu_comm"], union(roles.communication)),
        (CODES["gpu_compute"], union((roles.kind == KERNEL) & ~roles.communication)),
    ]


def _gaps(trace: "Trace", host: HostView, low: int, high: int) -> _Gaps:
    lasting = np.flatnonzero(trace.roles.gpu & (trace.end_ns > trace.ts_ns))
    idle = Union.of(trace.ts_ns[lasting], trace.end_ns[lasting]).gaps(low, high)
    ended = (idle.ends < high) | bool((trace.ts_ns[lasting] == high).any())  # what is open at the end nothing ends

    linked = lasting[trace.links.launch[lasting] >= 0]
    launch = trace.links.launch[linked]
    first = np.lexsort((~trace.links.sync[launch], trace.end_ns[launch], trace.ts_ns[launch], trace.ts_ns[linked]))
    linked, launch = linked[first], launch[first]
    place = np.searchsorted(trace.ts_ns[linked], idle.ends)
    known = place < len(linked)
    known[known] = trace.ts_ns[linked[place[known]]] == idle.ends[known]
    chosen = launch[place[known]]

    def of_launch(values: Ints) -> Ints:
        column = np.full(len(idle.ends), _NEVER, np.int64)
        column[known] = values[chosen]
        return column

    drained_by, stalled_until = _drained(trace, host, idle.starts, ended)
    syncs = np.zeros(len(idle.ends), bool)
    syncs[known] = trace.links.sync[chosen]
    calls = np.full(len(idle.ends), -1, np.int64)
    calls[known] = chosen
    return _Gaps(
        start=idle.starts,
        end=idle.ends,
        launch=calls,
        launch_start=of_launch(trace.ts_ns),
        launch_end=of_launch(trace.end_ns),
        launch_syncs=syncs,
        stalled_until=stalled_until,
        drained_by=drained_by,
    )


def _drained(trace: "Trace", host: HostView, starts: Ints, ended: Bools) -> tuple[Ints, Ints]:
    """A sync that had waited w before the queue ran dry is to blame until w after its return, and no longer."""
    drained = ended & (host.states.at(starts) == _SYNC)
    sync = np.where(drained, host.events.at(starts), -1)
    until = np.where(drained, trace.end_ns[sync] + starts - trace.ts_ns[sync], starts)
    return sync, until


def _idle(points: Ints, gaps: _Gaps, host: HostView) -> tuple[NDArray[np.int8], Ints, Bools]:
    """The bucket of each moment that lies in a gap."""
    places = below(host.states.edges, points)
    state, event = host.states.of(places), host.events.of(places)
    if not len(gaps.start):
        return state.astype(np.int8), event, np.zeros(len(points), bool)
    gap = np.maximum(below(gaps.start, points) - 1, 0)
    own = among(state, (CODES["module_load"], CODES["profiler"]))

    refill = among(state, _REFILLS) & (points < gaps.stalled_until[gap])
    bucket = np.where((state == _SYNC) | refill, _STALL, state)
    launch_end = gaps.launch_end[gap]
    within = (points >= gaps.launch_start[gap]) & (points < launch_end) & ~gaps.launch_syncs[gap]
    after = points >= launch_end
    queued = after & ((launch_end <= gaps.start[gap]) | (points >= launch_end + SUBMISSION_NS))
    submitting = (within & ~own) | (after & ~queued)
    bucket = np.where(submitting, CODES["kernel_launch"], np.where(within, state, bucket))
    bucket = np.where(queued, CODES["gpu_gap"], bucket)
    refill = refill & ~within & ~after
    event = np.where(refill, gaps.drained_by[gap], np.where(submitting, gaps.launch[gap], event))
    event = np.where(queued, -1, event)
    return bucket.astype(np.int8), event, refill
