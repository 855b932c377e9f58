"""Where did the wall time go? What the GPU was doing and, while it was idle, what kept it idle."""

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracekit.base.intervals import Bools, Ints, StepFunction, Union, count_up_to, cuts
from tracekit.engine.buckets import CODES, ON_THE_GPU, REFILLS, among, of_activities
from tracekit.engine.host import HostView

if TYPE_CHECKING:
    from tracekit.trace.model import Trace

SUBMISSION_NS = 30_000  # how long after a launch call's return its work counts as on its way
_SYNC, _STALL = CODES["sync"], CODES["sync_stall"]
_NEVER = np.iinfo(np.int64).max // 2


class WallView(Struct, frozen=True):
    """At each moment: the bucket, and the row of the event to blame for it (−1: none, or the GPU's own)."""

    states: StepFunction
    events: StepFunction
    refill: Bools  # sync stall after the sync itself: the bubble while the host refills the queue


class Gaps(Struct, frozen=True):
    """Idle gaps `[start, end)` of the GPU, one row each, in full even where a block shows only part of them."""

    start: Ints
    end: Ints
    launch: Ints  # row of L, the call that submitted the work that ends the gap; −1 where none is known
    launch_start: Ints  # _NEVER where none is known
    launch_end: Ints
    launch_syncs: Bools
    stalled_until: Ints  # until when the sync that drained the queue is to blame; the gap's start if none did
    drained_by: Ints  # row of that sync, −1 if none did

    def last(self) -> "Gaps":
        """Only the last of these gaps."""
        return Gaps(*(getattr(self, name)[-1:] for name in self.__struct_fields__))

    def before(self, later: "Gaps") -> "Gaps":
        """These gaps, followed by the others."""
        pairs = ((getattr(side, name) for side in (self, later)) for name in self.__struct_fields__)
        return Gaps(*(np.concatenate(tuple(pair)) for pair in pairs))


class Activity(Struct, frozen=True):
    """What the GPU does over a stretch of time. Later layers cover earlier ones: copies count only if exposed."""

    layers: list[tuple[int, Union]]
    busy: Union


def activity(trace: "Trace", rows: Ints, low: int, high: int) -> Activity:
    """What the GPU does in `[low, high)`, given the rows of all activities that cover any of it."""
    events = trace.events_at(rows)
    starts, ends = np.maximum(events.ts_ns, low), np.minimum(events.end_ns, high)
    bucket = of_activities(events.roles)
    layers = [
        (code, Union.of(starts[bucket == code], ends[bucket == code]))
        for code in (CODES[key] for key in reversed(ON_THE_GPU))
    ]
    return Activity(layers, Union.of(starts, ends))


def without_gpu(host: HostView) -> WallView:
    """The wall view of a trace without a GPU, which equals the host view."""
    state = np.where(host.states.values == _SYNC, _STALL, host.states.values).astype(np.int8)
    return WallView(StepFunction(host.states.edges, state), host.events, np.zeros(len(state), bool))


def wall_view(gpu: Activity, gaps: Gaps, host: HostView, low: int, high: int) -> WallView:
    """Put every moment of `[low, high)` into a bucket."""
    of_gaps = (gaps.launch_start, gaps.launch_end, gaps.launch_end + SUBMISSION_NS, gaps.stalled_until)
    # While the GPU is busy, only the GPU decides.
    idle = (points[~gpu.busy.covers(points)] for points in (host.states.edges, np.concatenate(of_gaps)))
    edges = cuts(*idle, *(union.edges for _, union in gpu.layers), low=low, high=high)
    points = edges[:-1]
    state, event = np.full(len(points), -1, np.int8), np.full(len(points), -1, np.int32)
    refill = np.zeros(len(points), bool)
    for code, union in gpu.layers:
        if len(union.starts):
            state[union.covers(points)] = code
    free = np.flatnonzero(state < 0)
    state[free], event[free], refill[free] = _buckets_while_idle(points[free], gaps, host)
    return WallView(StepFunction(edges, state), StepFunction(edges, event), refill)


def find_gaps(trace: "Trace", host: HostView, idle: Union, enders: Ints, window_end: int) -> Gaps:
    """Describe the gaps that begin where the host's state is known.

    `enders` are the rows of the lasting activities that may end them.
    """
    starts = trace.ts_ns[enders]
    # Nothing ends a gap that is still open at the end of the window.
    ended = (idle.ends < window_end) | bool((starts == window_end).any())
    # For each gap, the first of the calls that submitted what starts at its end; −1 for none.
    calls = np.full(len(idle.ends), -1, np.int64)
    gap_at = np.minimum(np.searchsorted(idle.ends, starts), max(len(idle.ends) - 1, 0))
    ending = idle.ends[gap_at] == starts if len(idle.ends) else np.zeros(len(starts), bool)
    launch = trace.links.launch(enders[ending])
    gap, launch = gap_at[ending][launch >= 0], launch[launch >= 0]
    launched = trace.events_at(launch)
    order = np.lexsort((~is_sync(trace, launch), launched.end_ns, launched.ts_ns, gap))[::-1]
    calls[gap[order]] = launch[order]  # written last: the first
    has_launch = calls >= 0
    of_call = trace.events_at(calls[has_launch])
    launch_start, launch_end = (np.full(len(calls), _NEVER, np.int64) for _ in range(2))
    launch_start[has_launch], launch_end[has_launch] = of_call.ts_ns, of_call.end_ns
    syncs = np.zeros(len(calls), bool)
    syncs[has_launch] = is_sync(trace, calls[has_launch])
    drained = ended & (host.states.at(idle.starts) == _SYNC)
    sync = np.where(drained, host.events.at(idle.starts), -1)
    # A sync that had waited w before the queue ran dry is to blame until w after its return, and no longer.
    stalled_until = np.where(drained, trace.events_at(sync).end_ns + idle.starts - trace.ts_ns[sync], idle.starts)
    return Gaps(idle.starts, idle.ends, calls, launch_start, launch_end, syncs, stalled_until, sync)


def is_sync(trace: "Trace", calls: Ints) -> Bools:
    """Which calls block: sync calls by name, and copies that did block."""
    blocks: Bools = trace.events_at(calls).roles.sync_by_name | trace.links.is_blocking(calls)
    return blocks


def _buckets_while_idle(points: Ints, gaps: Gaps, host: HostView) -> tuple[NDArray[np.int8], Ints, Bools]:
    """The bucket of each moment in a gap."""
    positions = count_up_to(host.states.edges, points)
    state, event = host.states.of(positions), host.events.of(positions)
    if not len(gaps.start):
        return state.astype(np.int8), event, np.zeros(len(points), bool)
    gap = np.maximum(count_up_to(gaps.start, points) - 1, 0)
    loading_or_profiling = among(state, (CODES["module_load"], CODES["profiler"]))

    refill = among(state, REFILLS) & (points < gaps.stalled_until[gap])
    bucket = np.where((state == _SYNC) | refill, _STALL, state)
    launch_end = gaps.launch_end[gap]
    in_launch = (points >= gaps.launch_start[gap]) & (points < launch_end) & ~gaps.launch_syncs[gap]
    after = points >= launch_end
    queued = after & ((launch_end <= gaps.start[gap]) | (points >= launch_end + SUBMISSION_NS))
    submitting = (in_launch & ~loading_or_profiling) | (after & ~queued)
    bucket = np.where(submitting, CODES["kernel_launch"], np.where(in_launch, state, bucket))
    bucket = np.where(queued, CODES["gpu_gap"], bucket)
    refill = refill & ~in_launch & ~after
    event = np.where(refill, gaps.drained_by[gap], np.where(submitting, gaps.launch[gap], event))
    event = np.where(queued, -1, event)
    return bucket.astype(np.int8), event, refill
