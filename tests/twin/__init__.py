"""The brute-force twin of the attribution: the contract written down a second time, pointwise and slowly.

Time is cut at every moment at which anything can change, and the rules are applied to each piece. Nothing here
is clever, so that it can be read next to the contract; the § in the comments are its sections. It shares no
code with the package: where the two differ, one of them is wrong.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from typing import Any

from .events import believable, calls_by_id, classify, has_two_clocks, link, load_events, nanoseconds
from .steps import find_steps, no_wall_view, step_is_known, step_time
from .threads import find_helpers, find_main_thread, find_recorded
from .views import cut_into_pieces, fill_host_view, wall_pieces

__all__ = ["HOST", "WALL", "document", "load_events", "nanoseconds"]

WALL = [
    *("gpu_compute", "gpu_comm", "gpu_copy", "gpu_gap", "kernel_launch", "dispatch", "python", "unrecorded"),
    *("guards", "sync_stall", "compile", "dataload", "alloc", "module_load", "profiler", "cpu_compute"),
]
HOST = [
    *("dispatch", "python", "unrecorded", "guards", "kernel_launch", "sync", "compile", "dataload", "alloc"),
    *("module_load", "profiler", "cpu_compute"),
]


def document(events: list[dict[str, Any]]) -> dict[str, Any]:
    """The document of §9 for one variant, from the events of its file."""
    known = [event for event in map(classify, events) if event is not None]
    gpu = [e for e in known if e.kind == "gpu"]
    overhead = [e for e in known if e.kind == "overhead"]
    all_hosts = [e for e in known if e.kind in ("runtime", "op", "annotation", "python")]
    main = find_main_thread(all_hosts)
    # §2: only host events of the main thread's process take part.
    hosts = [e for e in all_hosts if main is not None and e.thread[0] == main[0]]
    helpers = find_helpers(hosts, main) if main is not None else []

    calls = calls_by_id(hosts)
    on_gpu = bool(gpu)  # what has no part in anything still makes it a GPU trace
    two_clocks = has_two_clocks(gpu, calls)
    gpu = believable(gpu, calls)
    launch_of = link(gpu, calls)
    nothing_lasts = not any(e.lasts for e in [*hosts, *gpu])
    if two_clocks:  # §6: no activity has a part in §6 and §7
        gpu, launch_of = [], {}
    steps = find_steps(hosts, main, gpu, launch_of)

    o = "dispatch" if on_gpu else "cpu_compute"  # §4
    by_thread = defaultdict(list)
    for event in hosts:
        by_thread[event.thread].append(event)
    driving = [by_thread[thread] for thread in [main, *helpers]] if main is not None else [[]]

    cannot: dict[str, str] = {}
    if not hosts:
        cannot = dict.fromkeys(("wall", "host"), "the file holds no host event")
    elif not steps or nothing_lasts:
        cannot = dict.fromkeys(("wall", "host"), "nothing in the file lasts")
    elif (reason := no_wall_view(known, steps, on_gpu, two_clocks, launch_of)) is not None:
        cannot = {"wall": reason}

    host: list[tuple[int, int, str]] = []
    wall: list[tuple[int, int, str]] = []
    if "host" not in cannot:
        window = (steps[0].s, steps[-1].done)
        bounds = [t for step in steps for t in (step.s, step.e, step.begin, step.done)]
        pieces = cut_into_pieces(window, bounds, driving[0], driving[1:], gpu, overhead, o, find_recorded(hosts))
        fill_host_view(pieces, o)
        host = [(p.start, p.end, p.host) for p in pieces]
        wall = wall_pieces(pieces, gpu, launch_of, on_gpu) if "wall" not in cannot else []

    compiles = [e for row in driving for e in row if e.compile and e.lasts]
    host_starts, wall_starts = [p[0] for p in host], [p[0] for p in wall]
    rows = []
    for i, step in enumerate(steps):
        unknown = on_gpu and not step_is_known(hosts, step_time(steps, i), launch_of)
        rows.append(
            {
                "step": step.number,
                "start_ns": step.begin,
                "wall_ns": step.done - step.begin,
                "host_start_ns": step.s,
                "host_ns": step.e - step.s,
                "steady": not any(
                    max(c.start, start) < min(c.end, end)
                    for c in compiles
                    for start, end in ((step.s, step.e), (step.begin, step.done))
                ),
                "wall": None if "wall" in cannot or unknown else add_up(wall, wall_starts, step.begin, step.done, WALL),
                "host": None if "host" in cannot else add_up(host, host_starts, step.s, step.e, HOST),
            }
        )
    return {
        "device": "gpu" if on_gpu else "cpu",
        "cannot_answer": cannot,
        "steps": rows,
        "main_thread": main,
        "helpers": helpers,
    }


def add_up(
    pieces: list[tuple[int, int, str]], starts: list[int], begin: int, end: int, buckets: list[str]
) -> dict[str, int]:
    """The time in each bucket between two moments at which the pieces are cut."""
    total = dict.fromkeys(buckets, 0)
    for start, stop, bucket in pieces[bisect_left(starts, begin) : bisect_left(starts, end)]:
        total[bucket] += stop - start
    return total
