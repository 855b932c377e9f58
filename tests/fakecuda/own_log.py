"""The buckets of steps, computed from the fake device's own log and nothing of tracekit's.

The device knows when everything on it began and ended, and which calls the host made; of the trace, only the bounds of
its steps, the thread that takes them and the offset between the clocks are used. What the log cannot tell apart
(Python, operators, guards) is `host`.
"""

import bisect
import csv
import itertools
import json
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import median

SUBMITTED_LONG_AGO_NS = 30_000
LAUNCH = re.compile(r"cu(da)?(Launch\w*Kernel|GraphLaunch|Memcpy\w*Async|Memset)")
WAIT = re.compile(r"cu(da)?((Stream|Event|Device|Ctx)Synchronize|Memcpy(HtoD|DtoH)?(_v2)?$)")
ALLOCATION = re.compile(r"cuda(Malloc|Free|Host)|cuMem(Alloc|Free)")


@dataclass(frozen=True)
class Span:
    """A call or an activity; the state is what the call does to its thread."""

    start: int
    end: int
    correlation: int
    thread: int
    state: str


def buckets(trace: Path, log: Path) -> list[Counter[str]]:
    """One counter of ns by bucket for each step of an exported trace."""
    exported = json.loads(trace.read_text())
    steps, thread, (low, high) = _steps(exported)
    activities, calls = _read(log, low, high)
    launched = {call.correlation: call for call in calls}
    offset = _offset(exported, launched)
    steps = [(start - offset, end - offset) for start, end in steps]
    # A step is done when the last work that was launched in it has ended, and the next one begins there.
    before = [a.end for a in activities if launched[a.correlation].start < steps[0][0]]
    before += [end - offset for end in _without_calls(exported, low)]
    done = max(before, default=0)
    window = max(steps[0][0], 0)
    found, bounds = [], []
    for i, (start, end) in enumerate(steps):
        until = steps[i + 1][0] if i + 1 < len(steps) else end
        began = max(start, done)
        mine = [a.end for a in activities if start <= launched[a.correlation].start < until]
        done = max([end, done, *mine])
        bounds.append((began, done))
    pieces = _pieces(window, done, activities, calls, launched, thread)
    for began, until in bounds:
        counted: Counter[str] = Counter()
        for start, end, bucket in pieces:
            if min(end, until) > max(start, began):
                counted[bucket] += min(end, until) - max(start, began)
        found.append(counted)
    return found


def _ns(row: dict[str, float]) -> int:
    return round(row["ts"] * 1000)


def _steps(exported: dict) -> tuple[list[tuple[int, int]], int, tuple[int, int]]:
    """Bounds of the steps on the trace's clock, their thread, and the correlations that the trace has."""
    rows = [row for row in exported["traceEvents"] if row.get("ph") == "X"]
    steps = [row for row in rows if row.get("cat") == "user_annotation" and row["name"].startswith("ProfilerStep#")]
    numbers = [row["args"]["correlation"] for row in rows if row.get("cat") in {"cuda_runtime", "cuda_driver"}]
    spans = sorted((_ns(row), _ns(row) + round(row["dur"] * 1000)) for row in steps)
    return spans, steps[0]["tid"], (min(numbers), max(numbers))


def _without_calls(exported: dict, low: int) -> list[int]:
    """When work ended that was launched before the recording, on the trace's clock."""
    rows = [row for row in exported["traceEvents"] if row.get("cat") in {"kernel", "gpu_memcpy", "gpu_memset"}]
    return [_ns(row) + round(row["dur"] * 1000) for row in rows if row["args"]["correlation"] < low]


def _read(log: Path, low: int, high: int) -> tuple[list[Span], list[Span]]:
    """Activities and calls by start."""
    activities, calls = [], []
    ends: defaultdict[int, int] = defaultdict(int)
    with log.open() as file:
        for row in csv.DictReader(file, delimiter="\t"):
            kind, name, number = row["kind"], row["name"], int(row["correlation"])
            if not low <= number <= high:
                continue
            on_device = kind in {"kernel", "memcpy", "memset"}
            states = ((LAUNCH, "kernel_launch"), (WAIT, "sync_stall"), (ALLOCATION, "alloc"))
            state = next((state for pattern, state in states if pattern.match(name)), "")
            span = Span(
                int(row["start_ns"]), int(row["end_ns"]), number, int(row["thread"]), kind if on_device else state
            )
            if on_device:
                activities.append(span)
                if kind == "memcpy" and name == "pageable":
                    ends[number] = max(ends[number], span.end)
            elif kind in {"runtime", "driver"}:
                calls.append(span)
    # A copy from or to pageable memory that has been made when its call returns was a wait.
    waited = [
        Span(c.start, c.end, c.correlation, c.thread, "sync_stall") if 0 < ends[c.correlation] <= c.end else c
        for c in calls
    ]
    return sorted(activities, key=lambda a: a.start), sorted(waited, key=lambda c: c.start)


def _offset(exported: dict, launched: dict[int, Span]) -> int:
    """The trace's clock less the device's: Kineto converts between clocks."""
    rows = [row for row in exported["traceEvents"] if row.get("cat") in {"cuda_runtime", "cuda_driver"}]
    return round(median(_ns(row) - launched[row["args"]["correlation"]].start for row in rows))


def _pieces(
    begin: int, end: int, activities: list[Span], calls: list[Span], launched: dict[int, Span], main: int
) -> list[tuple[int, int, str]]:
    """The window, cut at every boundary, with the bucket of each piece."""
    spans = [*activities, *calls]
    cuts = {begin, end, *(s.start for s in spans), *(s.end for s in spans)}
    cuts |= {call.end + SUBMITTED_LONG_AGO_NS for call in calls}
    cuts |= {2 * call.end - call.start for call in calls}
    for call in calls:
        if call.state == "sync_stall":  # where a bubble behind a wait may end
            cuts |= {call.end + a.end - call.start for a in activities if call.start < a.end <= call.end}
    times = sorted(cut for cut in cuts if begin <= cut <= end)
    starts = [call.start for call in calls]

    def running(t: int) -> set[str]:
        return {a.state for a in activities if a.start <= t < a.end}

    def calling(t: int) -> Span | None:
        """The call that the host is in; the thread that takes the steps goes first."""
        there = [
            c for c in calls[max(0, bisect.bisect_right(starts, t) - 64) : bisect.bisect_right(starts, t)] if t < c.end
        ]
        there = [call for call in there if call.state]
        return min(there, key=lambda call: call.thread != main, default=None)

    busy = [running(t) for t in times]
    found, gap = [], 0
    for i, (t, until) in enumerate(itertools.pairwise(times)):
        if busy[i]:
            found.append((t, until, "gpu_compute" if "kernel" in busy[i] else "gpu_copy"))
            continue
        if i == 0 or busy[i - 1]:
            gap = t
        over = next((times[j] for j in range(i, len(times)) if busy[j]), end)
        found.append((t, until, _idle(t, gap, [a for a in activities if a.start == over], launched, calling)))
    return found


def _idle(t, gap, ending, launched, calling) -> str:
    launch = min((launched[a.correlation] for a in ending), key=lambda call: call.start, default=None)
    if launch and t >= launch.end:
        queued = launch.end <= gap or t >= launch.end + SUBMITTED_LONG_AGO_NS
        return "gpu_gap" if queued else "kernel_launch"
    if launch and launch.start <= t and launch.state != "sync_stall":
        return "kernel_launch"
    call, before = calling(t), calling(gap)
    state = call.state if call else "host"
    drained = before is not None and before.state == "sync_stall" and ending
    if drained and state in {"host", "alloc"} and t < before.end + gap - before.start:
        return "sync_stall"
    return state
