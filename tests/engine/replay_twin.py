"""A replay by definition, one event at a time and by recursion: what `tracekit.engine.replay` is compared with.

What was queued before the step in which it begins, or runs then already, stays as it was recorded.
It follows the docstrings of `tracekit/engine/dependencies.py` and `replay.py`, and shares no code with them. `removed`
holds stretches of time (start, end) to take from the host, from delays and from latencies, ns to take from activities
by row, rows of calls that no longer block, and rows of activities that are not there at all, if any comes before them
on their stream.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise

from tracekit.trace import Trace
from tracekit.trace.roles import bare

RETURN, DRAINED, FULL, HANDOVER = range(4)
FREES = {"cudaFree", "cudaFreeHost", "hipFree", "hipFreeHost"}
LONG_AGO, LATEST = -(1 << 62), 1 << 62


@dataclass
class Removed:
    host: list[tuple[int, int]] = field(default_factory=list)
    delays: list[tuple[int, int]] = field(default_factory=list)
    latencies: list[tuple[int, int]] = field(default_factory=list)
    device: dict[int, int] = field(default_factory=dict)
    returns: set[int] = field(default_factory=set)
    undone: set[int] = field(default_factory=set)


@dataclass
class Call:
    """Something on a host thread that may wait: it happens at `at`, and was called at `since`."""

    at: int
    kind: int
    thread: int
    since: int
    row: int = -1
    awaited: int | None = None  # an activity
    source: int = -1  # the thread that hands over


def covered(stretches: list[tuple[int, int]], low: int, high: int) -> int:
    return sum(max(min(end, high) - max(start, low), 0) for start, end in stretches)


def twin(trace: Trace, low: int, high: int, returned: int, removed: Removed, depth: int) -> dict[str, dict[int, int]]:
    """The start and end of each activity and the return of each call that may wait, by row; and when all is done."""
    ts, end = trace.ts_ns.tolist(), trace.end_ns.tolist()
    track = trace.track.tolist()
    names = [trace.names[code] for code in trace.name_codes.tolist()]
    roles = trace.roles
    inside = [row for row in range(len(ts)) if low <= ts[row] < high]
    linked = dict(zip(trace.links.activities.tolist(), trace.links.launches.tolist(), strict=True))
    running = {row for row in linked if ts[row] < low < end[row]}
    gpu = [row for row in range(len(ts)) if row in running or (row in inside and roles.gpu[row] and end[row] > ts[row])]
    process = trace.threads.process
    steps = trace.steps
    issued, begin = low, low
    for step in range(len(steps)):
        if steps.issued[step] <= low < steps.until[step]:
            issued, begin = int(steps.issued[step]), int(steps.begin[step])
    queued = running | {row for row in gpu if (ts[linked[row]] < issued if row in linked else ts[row] < begin)}
    launch = {}
    for row, call in zip(trace.links.activities.tolist(), trace.links.launches.tolist(), strict=True):
        if row in gpu and call in inside and ts[call] <= ts[row]:
            launch[row] = call
    previous: dict[int, int] = {}
    last_on: dict[int, int] = {}
    for row in gpu:
        if track[row] in last_on and row not in queued:
            previous[row] = last_on[track[row]]
        last_on[track[row]] = row
    both = [row for row in gpu if row in launch and row in previous]
    waited = [ts[row] - ts[launch[row]] for row in both if ts[launch[row]] >= end[previous[row]]]
    latency = min(int(statistics.median(waited)), 30_000) if waited else 5000
    queued = [ts[row] - end[previous[row]] for row in both if ts[launch[row]] + latency <= end[previous[row]]]
    gaps = [gap for gap in queued if gap >= 0]
    gap = min(int(statistics.median(gaps)), 30_000) if gaps else 1000

    by_end = sorted(gpu, key=lambda row: end[row])
    other: dict[int, int] = {}
    for row in gpu:
        explained = LONG_AGO
        if row in launch:
            explained = max(explained, min(ts[row], ts[launch[row]] + latency))
        if row in previous:
            explained = max(explained, end[previous[row]] + min(ts[row] - end[previous[row]], gap))
        ended = [one for one in by_end if end[one] <= ts[row]]
        if explained > LONG_AGO and ts[row] - explained > 8000 and ended and end[ended[-1]] > explained:
            other[row] = ended[-1]

    calls: list[Call] = []
    syncs = []
    for row in inside:
        blocks = (
            roles.sync_by_name[row]
            or bare(names[row]) in FREES
            or trace.links.is_blocking(trace.ts_ns[row : row + 1].astype(int) * 0 + row)[0]
        )
        if roles.host[row] and process[track[row]] and blocks and ts[row] < end[row] <= high:
            syncs.append(row)

    def awaited(row: int, skew: int) -> int | None:
        candidates = [one for one in by_end if end[one] <= end[row] + skew][-8:]
        for one in reversed(candidates):
            if ts[one] < end[row] and (one not in launch or ts[launch[one]] <= ts[row]):
                return one
        return None

    drained = []
    for row in syncs:
        found = awaited(row, 0)
        if found is None or end[found] <= ts[row]:
            skewed = awaited(row, 3000)
            found = skewed if skewed is not None else found
        before = [end[one] for one in gpu if ts[one] < end[row]]
        whole = (
            found is not None
            and ("Device" in names[row] or "Ctx" in names[row] or bare(names[row]) in FREES)
            and max(before) == end[found]
        )
        (drained if whole else calls).append(
            Call(end[row], DRAINED if whole else RETURN, track[row], ts[row], row, found)
        )
    calls += drained

    for stream in sorted({track[row] for row in gpu}):
        firsts: dict[int, int] = {}
        for row in gpu:
            if row in launch:
                firsts.setdefault(launch[row], row)
        order = sorted(call for call, row in firsts.items() if track[row] == stream)
        for k in range(depth, len(order)):
            call, earlier = order[k], firsts[order[k - depth]]
            if ts[earlier] < end[call] <= high:
                calls.append(Call(end[call], FULL, track[call], ts[call], call, earlier))

    main, *helpers = trace.threads.driving
    of_main = [row for row in inside if roles.host[row] and track[row] == main and end[row] > ts[row]]
    edges = sorted({moment for row in of_main for moment in (ts[row], end[row])})
    joins, forks = [], []
    for start, stop in pairwise([*edges, LATEST]):
        done = []
        for helper in helpers:
            work = [
                row
                for row in inside
                if roles.host[row]
                and track[row] == helper
                and start <= ts[row] < end[row] <= stop
                and roles.kind[row] in (3, 4)
                and not roles.annotation[row]
            ]
            work = [
                row for row in work if not any(roles.runtime[one] and ts[one] <= ts[row] < end[one] for one in of_main)
            ]
            if work:
                forks.append(Call(min(ts[row] for row in work), HANDOVER, helper, 0, source=main))
                done.append((max(end[row] for row in work), helper))
        if done:
            latest = max(moment for moment, _ in done)
            source = [helper for moment, helper in done if moment == latest][-1]
            joins.append(Call(latest, HANDOVER, main, 0, source=source))
    calls += joins + sorted(forks, key=lambda each: helpers.index(each.thread))
    calls.sort(key=lambda each: (each.at, each.kind))

    marks: dict[int, list[int]] = {}  # launches and calls of each thread, in order, for `since`
    for number, call in enumerate(calls):
        marks.setdefault(call.thread, []).append(number)
    moments = sorted(
        [(ts[row], 4, 0, track[row]) for row in sorted({*launch.values()})]
        + [(returned, 5, 0, main)]
        + [(call.at, call.kind, number + 1, call.thread) for number, call in enumerate(calls)]
    )
    for position, (_, _, number, thread) in enumerate(moments):
        if number:
            earlier = [at for at, _, _, on in moments[:position] if on == thread]
            call = calls[number - 1]
            call.since = max(call.since, *earlier[-1:]) if earlier else call.since

    def own(low: int, high: int) -> int:
        return high - low - covered(removed.host, low, high) if high >= low else high - low

    def clock(thread: int, at: int, before: int) -> int:
        """The time on a thread at a recorded moment, going on from its last call before the one of that number."""
        mine = [number for number in marks.get(thread, []) if number < before and calls[number].at <= at]
        if not mine:
            return own(LONG_AGO, at) + LONG_AGO
        return happens(mine[-1]) + own(calls[mine[-1]].at, at)

    @cache
    def happens(number: int) -> int:
        call = calls[number]
        if call.kind == HANDOVER:
            return clock(call.source, call.at, number)
        begun = clock(call.thread, call.since, number)
        if call.row in removed.returns:
            return begun
        if call.awaited is None:
            return begun + own(call.since, call.at)
        when = ts[call.awaited] if call.kind == FULL else end[call.awaited]
        then = starts(call.awaited) if call.kind == FULL else ends(call.awaited)
        if call.kind == DRAINED:
            then = max(ends(row) for row in gpu if ts[row] < call.at)
        return max(begun, then) + own(max(call.since, when), call.at)

    def launched(call: int) -> int:
        return clock(track[call], ts[call], sum(each.at <= ts[call] for each in calls))

    @cache
    def starts(row: int) -> int:
        recorded, now, released, soonest = [], [], [], []
        if row in launch:
            lag = min(ts[row] - ts[launch[row]], latency)
            recorded.append(ts[launch[row]] + lag)
            now.append(launched(launch[row]) + lag)
            soonest.append(launched(launch[row]) + min(lag, 0))
            released.append(ts[launch[row]])
        if row in previous:
            lag = min(ts[row] - end[previous[row]], gap)
            recorded.append(end[previous[row]] + lag)
            now += [ends(previous[row]) + lag, starts(previous[row])]
            released.append(end[previous[row]])
        if row in other:
            recorded.append(end[other[row]])
            now.append(ends(other[row]))
            soonest.append(ends(other[row]))
            released.append(end[other[row]])
        if not now:
            return ts[row]
        if is_undone(row):
            lag, late = min(ts[row] - end[previous[row]], gap, 0), ts[row] - max(recorded)
            return max(ends(previous[row]) + lag, starts(previous[row])) + (late if late > 8000 else 0)
        sooner = covered(removed.delays, max(released), ts[row])
        delay = ts[row] - max(recorded) - sooner - covered(removed.latencies, max(released), ts[row])
        if row in previous:  # without a launch's latency, the stream keeps its gap
            lag = min(ts[row] - end[previous[row]], gap)
            soonest.append(ends(previous[row]) + (min(lag, 0) if sooner else lag))
        return max(now) + delay if delay >= 0 else max(max(now) + delay, *soonest)

    def is_undone(row: int) -> bool:
        return row in removed.undone and row in previous

    def ends(row: int) -> int:
        if is_undone(row):
            return starts(row)
        is_released = row in launch or row in previous
        return starts(row) + end[row] - ts[row] - (removed.device.get(row, 0) if is_released else 0)

    finished = clock(main, returned, sum(each.at <= returned for each in calls))
    return {
        "start": {row: starts(row) for row in gpu},
        "end": {row: ends(row) for row in gpu},
        "return": {call.row: happens(number) for number, call in enumerate(calls) if call.row >= 0},
        "done": {-1: max([finished, *(ends(row) for row in gpu if end[row] <= high)])},
    }
