"""Which host thread drives the training, and which threads help it?"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from tracekit.intervals import Bools, Ints, below
from tracekit.trace.census import Ask
from tracekit.trace.roles import OPERATOR, PYTHON
from tracekit.trace.rows import AFTER, BEFORE, at_moments

if TYPE_CHECKING:
    from tracekit.trace.model import Trace


class Threads(Struct, frozen=True):
    """Tracks by role. `main` is None for a trace without any host event."""

    main: int | None
    helpers: tuple[int, ...]
    process: Bools  # for each track: whether it belongs to the main thread's process

    @property
    def driving(self) -> tuple[int, ...]:
        """The main thread and its helpers."""
        return () if self.main is None else (self.main, *self.helpers)


def find_threads(trace: "Trace") -> Threads:
    """The thread with the most steps, else launches, else operators, else events; and its helpers."""
    pids, tids = trace.tracks["pid"].to_pylist(), trace.tracks["tid"].to_pylist()
    main = _main(trace, pids, tids)
    if main is None:
        return Threads(None, (), np.zeros(len(pids), bool))
    process = np.array([pid == pids[main] for pid in pids], bool)
    helping = trace.census.by_track(lambda roles: roles.launch | roles.backward_node, len(pids))
    helpers = (int(track) for track in np.flatnonzero(process & (helping > 0)) if track != main)
    return Threads(main, tuple(sorted(helpers, key=lambda track: _number_first(tids[track]))), process)


def host_recorded(trace: "Trace") -> tuple[int, int]:
    """From when to when the training process was recorded, by its lasting events; never, if neither an operator nor a
    Python frame of it was: then what it did between calls of the runtime is unknown."""
    census = trace.census
    tells = ((census.roles.kind == OPERATOR) & ~census.roles.annotation) | (census.roles.kind == PYTHON)
    if not (tells & trace.threads.process[census.track]).any():
        return AFTER, AFTER
    start, end = host_span(trace)
    return start, max(start, end)


def host_span(trace: "Trace") -> tuple[int, int]:
    """From the first to the last moment that an event of the training process covers; the end comes first if none
    covers any."""
    start, end = AFTER, BEFORE
    for part in trace.parts():
        lasting = part.process & part.lasting
        start = min(start, int(part.ts_ns[lasting].min(initial=AFTER)))
        end = max(end, int(part.end_ns[lasting].max(initial=BEFORE)))
    return start, end


def _main(trace: "Trace", pids: list[str], tids: list[str]) -> int | None:
    candidates: tuple[Callable[[], Ints], ...] = (
        lambda: trace.census.by_track(lambda roles: roles.step, len(pids)),
        lambda: _outside_nodes(trace, lambda roles: roles.launch),
        lambda: _outside_nodes(trace, lambda roles: (roles.kind == OPERATOR) & ~roles.annotation),
        lambda: trace.census.by_track(lambda roles: roles.host, len(pids)),
    )
    for count in candidates:
        counts = count()
        if counts.any():
            best = np.flatnonzero(counts == counts.max())
            return int(min(best, key=lambda track: (pids[track], tids[track])))
    return None


def _outside_nodes(trace: "Trace", ask: Ask) -> Ints:
    """How many of these events on each track start outside the autograd engine's nodes of their own thread."""
    counts = np.zeros(len(trace.tracks), np.int64)
    reach = np.full(len(trace.tracks), BEFORE, np.int64)  # when the last of the nodes seen on each track ends
    if not trace.census.any(lambda roles: roles.backward_node):
        return trace.census.by_track(ask, len(counts))
    for part in at_moments(trace):
        has_role, nodes = ask(part.roles), part.roles.backward_node
        for track in np.flatnonzero(np.bincount(part.track[has_role | nodes])).tolist():
            on_track = part.track == track
            starts = part.ts_ns[on_track & nodes]
            reached = np.maximum.accumulate(np.append(reach[track], part.end_ns[on_track & nodes]))
            points = part.ts_ns[on_track & has_role]
            counts[track] += int((reached[below(starts, points)] <= points).sum())
            reach[track] = reached[-1]
    return counts


def _number_first(tid: str) -> tuple[int, int, str]:
    try:
        return 0, int(tid), tid
    except ValueError:
        return 1, 0, tid
