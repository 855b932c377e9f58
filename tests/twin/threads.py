"""Which threads drive the training (§3), and what one of them is doing at a moment (§4)."""

from __future__ import annotations

import re
from collections import Counter, defaultdict

from .events import EVALUATE, STEP, Event

KIND_ORDER = {"runtime": 2, "op": 1, "python": 0, "annotation": 0}  # §4, equal intervals


def find_main_thread(hosts: list[Event]) -> tuple[str, str] | None:
    """The main thread; among equals, the one whose (pid, tid) comes first as text."""

    def most(events: list[Event]) -> tuple[str, str] | None:
        counts = Counter(event.thread for event in events)
        return min(counts, key=lambda thread: (-counts[thread], thread)) if counts else None

    steps = [e for e in hosts if e.kind == "annotation" and STEP.fullmatch(e.name)]
    if steps:
        return most(steps)

    evaluations = defaultdict(list)
    for event in hosts:
        if event.name.startswith(EVALUATE):
            evaluations[event.thread].append(event)

    def starts_outside(event: Event) -> bool:
        return not any(v.start <= event.start < v.end for v in evaluations[event.thread])

    return (
        most([e for e in hosts if e.launch and starts_outside(e)])
        or most([e for e in hosts if e.kind == "op" and starts_outside(e)])
        or most(hosts)
    )


def find_helpers(hosts: list[Event], main: tuple[str, str]) -> list[tuple[str, str]]:
    """The helper threads in order of thread id: numbers first, then textual ids."""
    helpers = {
        e.thread
        for e in hosts
        if e.thread[0] == main[0] and e.thread != main and (e.launch or e.name.startswith(EVALUATE))
    }

    def order(thread: tuple[str, str]) -> tuple[bool, int, str]:
        number = re.fullmatch(r"-?[0-9]+", thread[1])
        return (number is None, int(thread[1]) if number else 0, thread[1])

    return sorted(helpers, key=order)


def find_recorded(hosts: list[Event]) -> tuple[int, int] | None:
    """From when to when silence of a thread of this process is Python, and not a lack of records (§4.4)."""
    lasting = [e for e in hosts if e.lasts]
    if not lasting or not any(e.kind in ("op", "python") for e in hosts):
        return None
    return min(e.start for e in lasting), max(e.end for e in lasting)


def state_of(live: set[Event], o: str, silence: str) -> tuple[str, Event | None]:
    """The state of a thread whose events in `live` cover t, and the sync call that causes it."""
    innermost = None
    inner = [e for e in live if e.kind != "annotation"]
    if inner:
        innermost = max(inner, key=lambda e: (e.start, -e.end, KIND_ORDER[e.kind], e.name, e.sync))
    if any(e.compile for e in live):  # 1
        return "compile", None
    if innermost is not None:  # 2
        if innermost.sync:
            return "sync", innermost
        if innermost.launch:
            return "kernel_launch", None
        if innermost.alloc:
            return "alloc", None
    if any(e.dataload for e in live):  # 3
        return "dataload", None
    if innermost is None:  # 4
        return silence, None
    if innermost.name == "TorchDynamo Cache Lookup":  # 5
        return "guards", None
    if innermost.kind == "runtime":  # 6
        return "dispatch", None
    if innermost.kind == "python":  # 7
        if innermost.name.startswith("<built-in method run_backward"):
            return "engine", None
        if any(e.compiled_code for e in live):
            return o, None
        return "python", None
    return o, None  # 8
