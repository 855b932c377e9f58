"""The host view (§5) and the wall view (§6), piece by piece."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from .events import LOADS_CODE, Event, call_order
from .threads import state_of

IDLE = ("python", "unrecorded", "engine")  # §5: then a helper may speak for the main thread
LATE_NS = 30_000  # §6: once a launch has ended this long ago and its work does not run, it waits for the GPU


@dataclass(slots=True)
class Piece:
    """A time in which nothing changes."""

    start: int
    end: int
    main: str  # §4: the main thread's state
    helper: str | None  # §5: the state that a helper thread gives
    helper_event: bool  # §5: an event that counts covers this time on some helper thread
    overhead: str | None  # §5: the state that tool overhead makes of dispatch, kernel_launch and alloc
    main_sync: Event | None  # the innermost event of the main thread, if that is a sync call
    helper_sync: Event | None  # the same of the helper thread that gives the state
    busy: str | None  # §6: the bucket of a busy GPU
    host: str = ""
    host_sync: Event | None = None  # Y of §6: the sync call that gives the host state


def cut_into_pieces(
    window: tuple[int, int],
    bounds: list[int],
    main: list[Event],
    helpers: list[list[Event]],
    gpu: list[Event],
    overhead: list[Event],
    o: str,
    recorded: tuple[int, int] | None,
) -> list[Piece]:
    """The window, cut at `bounds` and wherever an event starts or ends, with the events that are live in each piece."""
    rows = [main, *helpers, gpu, overhead]
    gpu_row, overhead_row = len(rows) - 2, len(rows) - 1
    changes: dict[int, list[tuple[int, bool, Event]]] = defaultdict(list)
    for row, events in enumerate(rows):
        for event in events:
            if event.lasts:
                changes[event.start].append((row, True, event))
                changes[event.end].append((row, False, event))
    times = sorted({*changes, *bounds, *window, *(recorded or ())})

    live: list[set[Event]] = [set() for _ in rows]
    states: list[tuple[str, Event | None]] = [("unrecorded", None) for _ in rows]
    counts = [False for _ in rows]
    busy = tool = None
    pieces = []
    for time, following in zip(times, [*times[1:], None], strict=True):
        heard = recorded is not None and recorded[0] <= time < recorded[1]
        changed = set(range(gpu_row)) if time in (recorded or ()) else set()
        for row, starts, event in changes.get(time, ()):
            (live[row].add if starts else live[row].remove)(event)
            changed.add(row)
        for row in changed:  # what has not changed is as it was
            if row == gpu_row:  # §6: communication and copies count only where they are exposed
                running = {e.bucket for e in live[row]}
                busy = next((b for b in ("gpu_compute", "gpu_comm", "gpu_copy") if b in running), None)
            elif row == overhead_row:
                names = {e.name for e in live[row]}
                tool = ("module_load" if names & LOADS_CODE else "profiler") if names else None
            else:
                states[row] = state_of(live[row], o, "python" if heard else "unrecorded")
                counts[row] = any(e.counts_on_helper for e in live[row])
        if following is None or not window[0] <= time < window[1]:
            continue
        given, given_sync = None, None
        for row in range(1, gpu_row):  # §5: the first helper thread that has one
            if counts[row] and states[row][0] not in IDLE:
                given, given_sync = states[row]
                break
        pieces.append(
            Piece(
                time,
                following,
                states[0][0],
                given,
                any(counts[1:gpu_row]),
                tool,
                states[0][1],
                given_sync,
                busy,
            )
        )
    return pieces


def fill_host_view(pieces: list[Piece], o: str) -> None:
    """The host state of every piece."""
    for stretch in group(pieces, lambda p: p.main in IDLE):
        helped = [p for p in stretch if p.helper_event]
        first, last = (helped[0].start, helped[-1].end) if helped else (0, 0)
        for p in stretch:
            if p.helper is not None:
                p.host, p.host_sync = p.helper, p.helper_sync
            elif first <= p.start < last or p.main == "engine":
                p.host = o
            else:
                p.host = p.main
    for p in pieces:
        if p.main not in IDLE:
            p.host, p.host_sync = p.main, p.main_sync
        if p.overhead is not None and p.host in ("dispatch", "kernel_launch", "alloc"):
            p.host = p.overhead


def group(pieces: list[Piece], wanted: Any) -> list[list[Piece]]:
    """The maximal runs of wanted neighbours (there are no holes between pieces)."""
    runs: list[list[Piece]] = []
    running = False
    for p in pieces:
        if wanted(p):
            if running:
                runs[-1].append(p)
            else:
                runs.append([p])
        running = wanted(p)
    return runs


def wall_pieces(
    pieces: list[Piece], gpu: list[Event], launch_of: dict[Event, Event], on_gpu: bool
) -> list[tuple[int, int, str]]:
    """The wall view of the window, as (start, end, bucket)."""
    if not on_gpu:
        return [(p.start, p.end, "sync_stall" if p.host == "sync" else p.host) for p in pieces]
    out = [(p.start, p.end, p.busy) for p in pieces if p.busy is not None]
    starting = defaultdict(list)
    for activity in gpu:
        if activity.lasts:
            starting[activity.start].append(activity)
    for gap in group(pieces, lambda p: p.busy is None):
        a, b = gap[0].start, gap[-1].end
        enders = starting[b]
        known = [launch_of[activity] for activity in enders if activity in launch_of]
        launch = min(known, key=call_order) if known else None  # L
        y = gap[0].host_sync  # Y
        refilled = y.end + (a - y.start) if y is not None and enders else a
        cuts = {refilled}
        if launch is not None:
            cuts |= {launch.start, launch.end, launch.end + LATE_NS}
        for p in gap:
            times = sorted({p.start, p.end, *(c for c in cuts if p.start < c < p.end)})
            for t, end in pairwise(times):
                out.append((t, end, idle_bucket(t, a, launch, refilled, p.host)))
    return sorted(out)


def idle_bucket(t: int, a: int, launch: Event | None, refilled: int, host: str) -> str:
    """Why the GPU idles at t, in a gap that began at a."""
    if launch is not None:
        if t >= launch.end:  # 1
            return "gpu_gap" if launch.end <= a or t >= launch.end + LATE_NS else "kernel_launch"
        if launch.start <= t and not launch.sync:  # 2
            return host if host in ("module_load", "profiler") else "kernel_launch"
    if host == "sync":  # 3
        return "sync_stall"
    if t < refilled and host in ("python", "unrecorded", "dispatch", "alloc", "guards"):
        return "sync_stall"
    return host
