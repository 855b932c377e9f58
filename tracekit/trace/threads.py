"""Which host thread drives the training, and which threads help it?"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracekit.intervals import Bools, Ints, Union
from tracekit.trace.roles import OPERATOR

if TYPE_CHECKING:
    from tracekit.trace.model import Trace


@dataclass(frozen=True)
class Threads:
    """Tracks by role. `main` is None for a trace without any host event."""

    main: int | None
    helpers: tuple[int, ...]
    process: Bools  # for each event: a host event of the main thread's process

    @property
    def driving(self) -> tuple[int, ...]:
        """The main thread and its helpers."""
        return () if self.main is None else (self.main, *self.helpers)


def find_threads(trace: "Trace") -> Threads:
    """The thread with the most steps, else launches, else operators, else events; and its helpers."""
    roles, track = trace.roles, trace.track
    pids, tids = trace.tracks["pid"].to_pylist(), trace.tracks["tid"].to_pylist()
    main = _main(trace, pids, tids)
    if main is None:
        return Threads(None, (), np.zeros(len(track), bool))
    same = np.array([pid == pids[main] for pid in pids], bool)
    process = roles.host & same[track]
    helping = np.flatnonzero(np.bincount(track[process & (roles.launch | roles.backward_node)]))
    helpers = sorted((int(other) for other in helping if other != main), key=lambda other: _number_first(tids[other]))
    return Threads(main, tuple(helpers), process)


def _main(trace: "Trace", pids: list[str], tids: list[str]) -> int | None:
    roles = trace.roles
    for candidates in (roles.step, None, roles.host):
        counted = candidates if candidates is not None else _launches_or_operators(trace)
        if counted.any():
            counts: Ints = np.bincount(trace.track[counted], minlength=len(pids))
            best = np.flatnonzero(counts == counts.max())
            return int(min(best, key=lambda track: (pids[track], tids[track])))
    return None


def _launches_or_operators(trace: "Trace") -> Bools:
    """Launch calls outside the autograd engine's nodes, or else operators outside them."""
    roles = trace.roles
    outside = ~_inside_own(trace, roles.backward_node)
    launches = roles.launch & outside
    return launches if launches.any() else (roles.kind == OPERATOR) & ~roles.annotation & outside


def _inside_own(trace: "Trace", spans: Bools) -> Bools:
    """The events that start inside such a span of their own thread."""
    inside = np.zeros(len(spans), bool)
    for track in np.flatnonzero(np.bincount(trace.track[spans])):
        of_track = trace.track == track
        chosen = spans & of_track
        union = Union.of(trace.ts_ns[chosen], trace.end_ns[chosen])
        inside[of_track] = union.covers(trace.ts_ns[of_track])
    return inside


def _number_first(tid: str) -> tuple[int, int, str]:
    try:
        return 0, int(tid), tid
    except ValueError:
        return 1, 0, tid
