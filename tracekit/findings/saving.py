"""What would a step save at most without a cause, and what would then bound it? By a replay of the steps without it."""

from functools import cached_property
from itertools import pairwise

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracekit.base.intervals import Bools, Ints, Union, distinct, runs, split
from tracekit.engine.buckets import BUCKETS, CODES, MAY_WAIT, ON_THE_GPU, WALL, Bound, among
from tracekit.engine.dependencies import DRAINED, RETURN
from tracekit.engine.host import host_between
from tracekit.engine.replay import Edit, Replay, Retiming, replay
from tracekit.findings.counted import Steps
from tracekit.findings.kernels import time_of
from tracekit.profile import LEAST_SHARE, Profile
from tracekit.trace.storing.scratch import put_aside, union_put_aside

_MAX_NODES = 20_000  # nodes that are replayed; of longer traces, those steps that the cause costs most
_PER_ACTIVITY = 3  # nodes: its launch, itself, and the return of the call, which a full queue may block
_ALMOST = 0.9  # of the most that any stretch claims: the first one that claims so much will do
# Of what remains of a step: if the GPU works for so much of it, or has work queued, the host does not bound it.
_NOTHING_ELSE = 0.9
_MAIN_SHARE = 0.5  # of the time in which the GPU waits for what the host does
_HOST = tuple(key for key in WALL if key not in (*ON_THE_GPU, "gpu_gap", "kernel_launch", "sync_stall"))


class Saving(Struct, frozen=True):
    """What a step saves at most, ns, and what then bounds it; None where nothing can be replayed."""

    step_ns: float
    bound: Bound | None = None


class Savings:
    """Savings of one variant, per step of `steps`."""

    def __init__(self, profile: Profile, steps: Steps) -> None:
        self._profile, self._steps = profile, steps
        self._recording = Edit()
        if steps.unrecorded is not None and profile.calibration is not None:
            self._recording = Retiming(profile.trace).removal(profile.calibration.overhead)
        self._every = Union.of(steps.low, steps.high)
        self._replays: dict[tuple[int, int], tuple[Replay, Union]] = {}
        self._stretches: list[tuple[int, int]] = []
        pieces = profile.attribution.pieces
        self._work = {key: union_put_aside(pieces.union(pieces.of(key))) for key in ON_THE_GPU}
        self._gaps = union_put_aside(pieces.union(pieces.of("gpu_gap")))
        if profile.attribution.answered_view.name == "wall" and len(profile.trace.links.activities) and len(steps.low):
            self._stretches = _stretches(profile, steps)

    def of(
        self, claim: Union, work: Ints | None = None, host: Union | None = None, undone: Ints | None = None
    ) -> Saving:
        """The saving without the claimed time: of the time of the GPU, that of the activities `work`; of all, if it is
        None. `host` is what the host does because of the cause, beside a busy GPU, too; `undone` are activities that
        only the cause makes."""
        claimed = self._steps.mean(claim)
        if not claimed or not self._stretches:
            return Saving(claimed)
        lows, highs = np.array(self._stretches).T
        full_claim, per_stretch = claim, claim.common(self._every).within(lows, highs)
        low, high = self._stretches[int(np.argmax(per_stretch >= _ALMOST * per_stretch.max()))]
        # By how much the host was ahead of the GPU when it issued the step that begins the stretch, ns.
        table = self._profile.trace.steps
        lead = int((table.begin - table.issued)[table.issued == low].max(initial=0))
        claim = claim.common(self._every).clip(low + lead, high)  # before that, the GPU works for earlier steps
        if not claim.total():
            return Saving(0.0)
        run, segments = self._replay(low, high)
        removal = _removal(self._profile, run, segments, claim, work)
        if host is not None:
            # Calls that block within it are gone, too, and with them their waits.
            nodes = run.nodes
            in_host = np.isin(nodes.kind, (RETURN, DRAINED)) & host.covers(nodes.since) & host.covers(nodes.start - 1)
            removal = replace(
                removal,
                host=removal.host.plus(host.clip(low, high)),
                returns=np.union1d(removal.returns, nodes.row[in_host]),
            )
        if undone is not None:
            removal = replace(removal, undone=undone)
        usual, unrecorded = run.recorded, self._recording
        if self._steps.unrecorded is not None:
            usual = run.without(unrecorded)
            removal = replace(removal, host=removal.host.plus(unrecorded.host), latency_ns=unrecorded.latency_ns)
        times = run.without(removal)
        # Where the recording starts with a lead of the host, its steps end before the host could issue more of them.
        too_soon = max(run.host_behind(times, lead) - max(run.host_behind(usual, lead), 0), 0)
        saved = claimed * (run.end(usual) - run.end(times) - too_soon) / max(self._steps.total(claim), 1.0)
        saved = max(min(saved, self._steps.length - self._least_ns(full_claim, work, host, undone)), 0.0)
        if saved < LEAST_SHARE * self._steps.length:
            return Saving(saved)
        bound = "host" if too_soon else run.bound(times)
        if bound == "host":
            working = {key: self._steps.mean(busy.minus(full_claim)) for key, busy in self._work.items()}
            gaps = self._steps.mean(self._gaps.minus(full_claim))
            if sum(working.values()) + gaps > _NOTHING_ELSE * (self._steps.length - saved):
                bound = BUCKETS[max(working, key=lambda key: working[key])].bound
        return Saving(saved, bound)

    def _least_ns(self, claim: Union, work: Ints | None, host: Union | None, undone: Ints | None) -> float:
        """What a step takes at least without the claimed time, whatever the replay says: the work that is left of the
        GPU and, where nothing of the host goes, the host without what may wait for the GPU."""
        finished, busy = self._activities, self._busy
        if undone is not None:
            finished = finished[~self._are_among(finished, undone)]
            busy = time_of(self._profile, finished)
        if work is None:
            remaining = busy.minus(claim)
        else:
            is_shorter = self._are_among(finished, work)
            untouched, shortened = (time_of(self._profile, finished[mask]) for mask in (~is_shorter, is_shorter))
            remaining = untouched.plus(shortened.minus(claim))
        remaining_ns = self._steps.mean(remaining)
        takes_host_time = host is not None or claim.minus(self._busy).total() > 0
        if takes_host_time or self._steps.unrecorded is not None:
            return remaining_ns
        view = self._profile.views["host"]
        waiting = view.totals[:, [view.keys.index(key) for key in MAY_WAIT]].sum(axis=1)
        own_ns = np.where(view.known, view.step_ns - waiting, 0)[self._steps.number]
        return max(remaining_ns, float(own_ns.mean()) / self._steps.stretch)

    @cached_property
    def _activities(self) -> Ints:
        return put_aside(self._profile.trace.where(lambda part: part.roles.gpu & part.lasting))

    @cached_property
    def _busy(self) -> Union:
        return union_put_aside(time_of(self._profile, self._activities))

    def _are_among(self, rows: Ints, others: Ints) -> Bools:
        is_other = np.zeros(len(self._profile.trace.ts_ns), bool)
        is_other[others] = True
        return is_other[rows]

    def _replay(self, low: int, high: int) -> tuple[Replay, Union]:
        """What runs in the stretch, and what the host does in it, as adjoining segments; its host part ends with the
        last event of the last step's main thread."""
        if (low, high) not in self._replays:
            trace = self._profile.trace
            returned = int(trace.steps.returned[trace.steps.done <= high].max(initial=low))
            # A step's annotation, or a recording that is one step, may go on although the host is done.
            near = trace.events_at(slice(*np.searchsorted(trace.ts_ns, (low, returned)).tolist()))
            ends = near.end_ns[(near.track == trace.threads.main) & near.roles.host & ~near.roles.annotation]
            returned = int(ends[ends <= returned].max(initial=low))
            # One entry for each time in which the host does the same because of the same event; cut where there is time
            # between steps.
            host = host_between(trace, low, high)
            edges, points = host.states.edges, host.states.edges[:-1]
            first = runs(host.states.values.astype(np.int64) << 40 | (host.events.at(points) + 1))
            starts, ends, _ = split(edges[first[:-1]], edges[first[1:]], self._every.edges)
            in_step = self._every.covers(starts)
            segments = Union(starts[in_step], ends[in_step])
            self._replays[low, high] = replay(trace, low, high, returned), segments
        return self._replays[low, high]


def savings(profile: Profile, steps: Steps) -> Savings:
    """The savings of these steps: replays of one stretch are made once for all who ask."""
    savings_by_claim: dict[tuple[bytes, bool, float], Savings] = profile.__dict__.setdefault("savings", {})
    key = steps.number.tobytes(), steps.unrecorded is None, steps.stretch
    if key not in savings_by_claim:
        savings_by_claim[key] = Savings(profile, steps)
    return savings_by_claim[key]


def _stretches(profile: Profile, steps: Steps) -> list[tuple[int, int]]:
    """Stretches of successive steps that are short enough, a new one for each step; a step that is too long is cut.

    No other step lies in between: a host that catches up in it would be told to save that in the steps that count.
    """
    table, links = profile.trace.steps, profile.trace.links
    owner = table.of(profile.trace.ts_ns[links.launches])
    nodes = _PER_ACTIVITY * np.bincount(owner[owner >= 0], minlength=len(table))
    before = np.concatenate(([0], np.cumsum(nodes)))
    stretches = []
    reached = -1
    bounds = np.flatnonzero(np.diff(steps.number, append=-1) != 1)  # positions of the steps that no other one follows
    for position, first in enumerate(steps.number.tolist()):
        successive = int(steps.number[bounds[np.searchsorted(bounds, position)]])
        last = int(np.searchsorted(before, before[first] + _MAX_NODES, side="right")) - 2
        last = min(max(last, first), successive)
        if last == reached:
            continue  # part of the one before
        reached = last
        low, high = int(table.issued[first]), int(table.done[last])
        parts = -(-int(before[last + 1] - before[first]) // _MAX_NODES)
        edges = (low + np.linspace(0, high - low, parts + 1).astype(np.int64)).tolist()
        stretches += [*pairwise(edges)]
    return stretches


def _removal(profile: Profile, run: Replay, segments: Union, claim: Union, work: Ints | None) -> Edit:
    """What is taken out: all of what the host does at the time claimed, beside a busy GPU, too, where the claim is most
    of what the GPU waits for it; the waits in its syncs, but not the work after them, which only comes later because
    of them; delays; and the GPU's work."""
    pieces, trace, nodes = profile.attribution.pieces, profile.trace, run.nodes
    first, last = (
        np.searchsorted(pieces.end, claim.starts[:1], side="right"),
        np.searchsorted(pieces.start, claim.ends[-1:]),
    )
    near = slice(int(first[0]), int(last[0]))
    start, end, bucket, event = pieces.start[near], pieces.end[near], pieces.bucket[near], pieces.event[near]

    def in_buckets(*keys: str) -> Bools:
        return among(bucket, [CODES[key] for key in keys])

    launching = in_buckets("kernel_launch") & (event >= 0)  # of it, the host works only until its call returns
    called = np.where(launching, trace.events_at(np.maximum(event, 0)).end_ns, end)
    host = in_buckets(*_HOST) | launching
    delays = in_buckets("gpu_gap", "sync_stall")  # a copy that blocks starts late in its own call
    latencies = in_buckets("kernel_launch")
    stalled = in_buckets("sync_stall", "alloc")  # a call that frees memory waits for the GPU, too
    stalled[stalled] = claim.within(start[stalled], end[stalled]) > 0
    activities, begins, ends = run.activities, nodes.start[run.activities], nodes.end[run.activities]
    if work is not None:
        shorter = np.where(np.isin(nodes.row[activities], work), claim.within(begins, ends), 0)
    else:
        shorter = np.zeros(len(begins), np.int64)
        for key in ON_THE_GPU:
            busy = in_buckets(key)
            exposed = claim.common(Union.of(start[busy], end[busy]))
            if len(exposed.starts):
                shorter += np.where(run.buckets == CODES[key], exposed.within(begins, ends), 0)
    idling = Union.of(start[host], np.minimum(called, end)[host])
    claimed = claim.common(idling)
    claimed_ns, idle_ns = (time.within(segments.starts, segments.ends) for time in (claimed, idling))
    is_claimed = claimed_ns > _MAIN_SHARE * idle_ns
    # The operators that make the claimed calls are gone as a whole.
    calls = distinct(event[launching & (claim.within(start, end) > 0)])
    makers = trace.operators.of(calls.astype(np.int64))
    returned = trace.events_at(calls[makers >= 0]).end_ns
    claimed = claimed.plus(Union.of(returned, np.maximum(trace.events_at(makers[makers >= 0]).end_ns, returned)))
    return Edit(
        host=claimed.plus(Union.of(segments.starts[is_claimed], segments.ends[is_claimed])),
        delays=claim.common(Union.of(start[delays], end[delays])),
        latencies=claim.common(Union.of(start[latencies], end[latencies])),
        device=shorter,
        returns=distinct(event[stalled]).astype(np.int64),
    )
