"""What were the driving host threads doing, whatever the GPU did?

The main thread's state; where that is Python or the autograd engine, the first helper thread at work speaks for it.
"""

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from tracekit.base.intervals import Bools, Ints, Rows, StepFunction, Union, count_up_to, cuts, runs
from tracekit.engine.buckets import CODES, DELAYED, among
from tracekit.engine.states import ENGINE, PYTHON, HostRules, ThreadStates, thread_states
from tracekit.trace.roles import MODULE_LOAD, OVERHEAD, RUNTIME
from tracekit.trace.roles import PYTHON as PYTHON_FRAME

if TYPE_CHECKING:
    from tracekit.trace.model import Trace


class HostView(Struct, frozen=True):
    """The host's state over a stretch of time, and the row of the event that gave it (−1: none)."""

    states: StepFunction
    events: StepFunction


class DrivingStates(Struct, frozen=True):
    """The driving threads over a stretch of time, which `edges` cut into moments."""

    edges: Ints
    main: ThreadStates
    main_at: Rows  # how many of the main thread's edges are at or before each moment
    helpers: list[ThreadStates]
    idle: Bools  # the main thread is in Python or in the autograd engine
    working: Bools  # a helper is at work

    def first(self, mask: Bools) -> int | None:
        """When the first of the chosen moments begins; None if none is chosen."""
        positions = np.flatnonzero(mask)
        return int(self.edges[positions[0]]) if len(positions) else None


def driving_states(
    trace: "Trace", rules: HostRules, rows: Ints, low: int, high: int, *cut_points: Ints
) -> DrivingStates:
    """What the driving threads do in `[low, high)`; `cut_points` are further points at which to cut."""
    track = trace.track[rows]
    main, *helpers = (
        thread_states(trace, rules, rows[track == thread], (low, high), main=thread == trace.threads.main)
        for thread in trace.threads.driving
    )
    edges = cuts(
        main.states.edges,
        *(edges for helper in helpers for edges in (helper.states.edges, helper.work.edges)),
        *cut_points,
        np.array(rules.recorded),
        low=low,
        high=high,
    )
    points = edges[:-1]
    main_at = count_up_to(main.states.edges, points)
    state = main.states.of(main_at)
    working = np.zeros(len(points), bool)
    for helper in helpers:
        if len(helper.work.starts):
            working |= helper.work.covers(points)
    return DrivingStates(edges, main, main_at, helpers, (state == PYTHON) | (state == ENGINE), working)


def host_between(trace: "Trace", low: int, high: int) -> HostView:
    """What the host does in `[low, high)`, as if nothing were known of the time before and after."""
    stop = int(np.searchsorted(trace.ts_ns, high))
    driving = trace.threads.is_driving
    overlapping = np.flatnonzero(trace.ts_ns[:stop] + trace.dur_ns[:stop] > low)
    part = trace.events_at(overlapping)
    kind = part.roles.kind
    rows = overlapping[part.lasting & (kind >= RUNTIME) & (kind <= PYTHON_FRAME) & driving[part.track]]
    rules = HostRules.of(trace, blame=True)
    tools = overhead(trace, overlapping[part.lasting & (kind == OVERHEAD)], low, high)
    threads = driving_states(trace, rules, rows, low, high, *(union.edges for union in tools))
    is_backward = first_to_last(threads.idle, threads.working, before=False, after=False)
    return host_view(threads, is_backward, rules, tools)


def host_view(threads: DrivingStates, is_backward: Bools, rules: HostRules, overhead: tuple[Union, Union]) -> HostView:
    """The host's state; `is_backward` says when the autograd engine is at work, or waits for its threads."""
    points = threads.edges[:-1]
    state, event = threads.main.states.of(threads.main_at), threads.main.events.of(threads.main_at)
    spoken = ~threads.idle
    for helper in threads.helpers:
        if not len(helper.work.starts):
            continue
        positions = count_up_to(helper.states.edges, points)
        helper_state = helper.states.of(positions)
        speaks = ~spoken & helper.work.covers(points) & (helper_state != PYTHON) & (helper_state != ENGINE)
        state[speaks], event[speaks] = helper_state[speaks], helper.events.of(positions)[speaks]
        spoken |= speaks
    state[~spoken & (is_backward | (state == ENGINE))] = rules.compute
    first, last = rules.recorded
    state[(state == PYTHON) & ((points < first) | (points >= last))] = CODES["unrecorded"]
    tool, loading = overhead
    if len(tool.starts):
        delayed = among(state, DELAYED)
        state[delayed & tool.covers(points)] = CODES["profiler"]
        state[delayed & loading.covers(points)] = CODES["module_load"]
    return HostView(StepFunction(threads.edges, state.astype(np.int8), PYTHON), StepFunction(threads.edges, event))


def first_to_last(idle: Bools, working: Bools, before: bool, after: bool) -> Bools:
    """In each run of idle moments, everything from the first working one to the last.

    `before` and `after` say whether a helper works in the part of the first and of the last run outside this block.
    """
    idle = np.concatenate(([before], idle, [after]))
    working = np.concatenate(([before], working, [after]))
    positions = np.flatnonzero(working & idle)
    if not len(positions):
        return np.zeros(len(idle) - 2, bool)
    opens = runs(count_up_to(runs(idle.astype(np.int8)), positions))
    first, last = positions[opens[:-1]], positions[opens[1:] - 1]
    change = np.zeros(len(idle) + 1, np.int8)
    change[first] += 1
    change[last + 1] -= 1
    return np.cumsum(change[:-1], dtype=np.int8).astype(bool)[1:-1]


def overhead(trace: "Trace", tool: Ints, low: int, high: int) -> tuple[Union, Union]:
    """The profiler's own work, and the part of it in which CUDA loads code. It has a row of its own in traces."""
    loading = tool[trace.events_at(tool).roles.named(MODULE_LOAD)]
    profiling, code_loading = (
        Union.of(trace.ts_ns[rows], trace.events_at(rows).end_ns).clip(low, high) for rows in (tool, loading)
    )
    return profiling, code_loading
