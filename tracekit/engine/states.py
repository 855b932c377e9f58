"""What is one host thread doing at a moment? The innermost live event decides, then what stands around it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tracekit.engine.buckets import CODES
from tracekit.intervals import Bools, Ints, Rows, StepFunction, Union, distinct, topmost
from tracekit.trace import roles as r
from tracekit.trace.enclosing import nested

if TYPE_CHECKING:
    from tracekit.trace.model import Trace

PYTHON = CODES["python"]
ENGINE = len(CODES)  # the autograd engine at work or waiting: resolved into another state by the host view


@dataclass(frozen=True)
class ThreadStates:
    """One thread over its own time: a state for every stretch, and the row of the event that gave it (−1: none)."""

    states: StepFunction
    events: StepFunction


def operating(trace: "Trace") -> int:
    """The bucket of operators and compiled code: the CPU computes there only if no GPU does."""
    return CODES["dispatch" if trace.device == "gpu" else "cpu_compute"]


def thread_states(trace: "Trace", track: int) -> ThreadStates:
    """The states of one thread, from its first event to its last."""
    roles = trace.roles
    rows = _lasting(trace, track)
    inner = nested(trace, rows[~roles.annotation[rows]])
    top = topmost(trace.ts_ns[inner], trace.end_ns[inner])
    around = {
        name: _union(trace, rows[mask[rows]])
        for name, mask in (
            ("compile", roles.compile_span),
            ("dataload", roles.annotation & roles.named(r.DATALOAD)),
            ("compiled", roles.named(r.COMPILED_CODE) | (roles.kind == r.PYTHON) & roles.named(r.INDUCTOR_FRAME)),
        )
    }
    # Annotations are never innermost, yet they change the state where they begin and end.
    edges = distinct(np.concatenate([top.edges, *(u.edges for u in around.values())]))
    points = edges[:-1]
    which = top.at(points)
    event = np.full(len(points), -1, np.int32)
    event[which >= 0] = inner[which[which >= 0]]
    states = _resolve(trace, event, {name: union.covers(points) for name, union in around.items()})
    return ThreadStates(StepFunction(edges, states, PYTHON), StepFunction(edges, event, -1))


def at_work(trace: "Trace", track: int) -> Union:
    """When an event of the thread does work: no Python frame, no annotation but a compile span."""
    roles, rows = trace.roles, _lasting(trace, track)
    works = (roles.kind[rows] != r.PYTHON) & (~roles.annotation[rows] | roles.compile_span[rows])
    return _union(trace, rows[works])


def _resolve(trace: "Trace", event: Rows, around: dict[str, Bools]) -> NDArray[np.int8]:
    """The rules for one thread, the first that applies: each line overrides those before it."""
    roles, known, row = trace.roles, event >= 0, np.maximum(event, 0)
    kind = roles.kind[row] if len(roles.kind) else np.zeros(len(row), np.int8)

    def innermost(mask: Bools) -> Bools:
        return known & mask[row]

    compute = operating(trace)
    state = np.full(len(event), compute, np.int8)  # an operator, a compiled region
    frame = known & (kind == r.PYTHON)
    state[frame & ~around["compiled"]] = PYTHON
    state[frame & innermost(roles.named(r.BACKWARD_FRAME))] = ENGINE
    state[known & (kind == r.RUNTIME)] = CODES["dispatch"]
    state[innermost(roles.named(r.GUARDS))] = CODES["guards"]
    state[~known] = PYTHON
    state[around["dataload"]] = CODES["dataload"]
    state[innermost(roles.alloc)] = CODES["alloc"]
    state[innermost(roles.launch)] = CODES["kernel_launch"]
    state[innermost(trace.links.sync)] = CODES["sync"]
    state[around["compile"]] = CODES["compile"]
    return state


def _lasting(trace: "Trace", track: int) -> Ints:
    return np.flatnonzero((trace.track == track) & trace.threads.process & (trace.end_ns > trace.ts_ns))


def _union(trace: "Trace", rows: Ints) -> Union:
    return Union.of(trace.ts_ns[rows], trace.end_ns[rows])
