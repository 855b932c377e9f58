"""What were the driving host threads doing, whatever the GPU did?

The main thread's state; where that is Python or the autograd engine, the first helper thread at work speaks for it.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tracekit.engine.buckets import CODES, among
from tracekit.engine.states import ENGINE, PYTHON, ThreadStates, at_work, operating, thread_states
from tracekit.intervals import Bools, Ints, StepFunction, Union, below, cuts, runs
from tracekit.trace.roles import MODULE_LOAD, OVERHEAD

if TYPE_CHECKING:
    from tracekit.trace.model import Trace

_DELAYED = [CODES[key] for key in ("dispatch", "kernel_launch", "alloc")]  # what the profiler's own work can delay


@dataclass(frozen=True)
class HostView:
    """Over the analysed window: the state of the host, and the row of the event that gave it (−1: none)."""

    states: StepFunction
    events: StepFunction


def host_view(trace: "Trace") -> HostView:
    """The host's state at every moment of the analysed window."""
    low, high = trace.steps.window
    main = thread_states(trace, trace.threads.driving[0])
    helpers = [(thread_states(trace, track), at_work(trace, track)) for track in trace.threads.helpers]
    overhead = _overhead(trace)
    edges = cuts(
        main.states.edges,
        *(edges for states, working in helpers for edges in (states.states.edges, working.edges)),
        *(union.edges for union in overhead),
        low=low,
        high=high,
    )
    points = edges[:-1]
    state, event = _spoken_for(trace, main, helpers, points)
    resolved = _delayed(state, points, *overhead)
    return HostView(StepFunction(edges, resolved, PYTHON), StepFunction(edges, event))


def _spoken_for(
    trace: "Trace", main: ThreadStates, helpers: list[tuple[ThreadStates, Union]], points: Ints
) -> tuple[Ints, Ints]:
    places = below(main.states.edges, points)
    state, event = main.states.of(places), main.events.of(places)
    idle = (state == PYTHON) | (state == ENGINE)
    spoken = ~idle
    working = np.zeros(len(points), bool)
    for helper, work in helpers:
        live = work.covers(points)
        places = below(helper.states.edges, points)
        theirs = helper.states.of(places)
        speaks = ~spoken & live & (theirs != PYTHON) & (theirs != ENGINE)
        state[speaks], event[speaks] = theirs[speaks], helper.events.of(places)[speaks]
        spoken |= speaks
        working |= live
    between = _first_to_last(idle, working)
    state[~spoken & (between | (state == ENGINE))] = operating(trace)
    return state, event


def _first_to_last(idle: Bools, working: Bools) -> Bools:
    """Within each stretch of idle neighbours, all from the first working one to the last."""
    bounds = runs(idle.astype(np.int8))
    at = np.flatnonzero(working & idle)
    if not len(at):
        return np.zeros(len(idle), bool)
    opens = runs(below(bounds, at))
    first, last = at[opens[:-1]], at[opens[1:] - 1]
    change = np.zeros(len(idle) + 1, np.int8)
    change[first] += 1
    change[last + 1] -= 1
    return np.cumsum(change[:-1], dtype=np.int8).astype(bool)


def _overhead(trace: "Trace") -> tuple[Union, Union]:
    """The profiler's own work, and of that what is CUDA loading code. It stands on a row of its own."""
    tool = trace.roles.kind == OVERHEAD
    loading = tool & trace.roles.named(MODULE_LOAD)
    return Union.of(trace.ts_ns[tool], trace.end_ns[tool]), Union.of(trace.ts_ns[loading], trace.end_ns[loading])


def _delayed(state: Ints, points: Ints, tool: Union, loading: Union) -> NDArray[np.int8]:
    delayed = among(state, _DELAYED)
    if len(tool.starts):
        state[delayed & tool.covers(points)] = CODES["profiler"]
        state[delayed & loading.covers(points)] = CODES["module_load"]
    return state.astype(np.int8)
