"""What were the host threads doing, whatever the GPU did?

On one thread the innermost live event decides, then the events around it. The host's state is that of the main thread;
where that is Python or the autograd engine, the first helper thread at work speaks for it.
"""

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracekit.base.intervals import Bools, Ints, Rows, StepFunction, Union, count_up_to, cuts, distinct, runs, topmost
from tracekit.engine.buckets import CODES, DELAYED, among
from tracekit.trace import roles as r
from tracekit.trace.rows import nested

if TYPE_CHECKING:
    from tracekit.trace.model import Trace

PYTHON = CODES["python"]
ENGINE = len(CODES)  # the autograd engine at work or waiting: resolved into another state by the host view
SYNC = CODES["sync"]
_CALLS = [CODES[key] for key in ("sync", "kernel_launch", "alloc")]  # innermost, they decide whatever is around

# Events that surround others, or only name what happens inside them: bits.
ANNOTATION, COMPILE, DATALOAD, COMPILED, WORK = (1 << bit for bit in range(5))
_SURROUNDINGS = (COMPILE, DATALOAD, COMPILED)


class ThreadStates(Struct, frozen=True):
    """One thread over a stretch of time: its states, the row of the event that gave each (−1: none), and when the
    thread works, which Python frames and annotations other than compile spans do not show."""

    states: StepFunction
    events: StepFunction
    work: Union


class HostRules(Struct, frozen=True):
    """What an event of each kind and name says about its thread: a state if it is innermost, and bits.

    Of each kind, not of each `cat`: there are a few kinds, and a trace may have as many cats as it likes.
    """

    state: NDArray[np.int8]
    bits: NDArray[np.uint8]
    compute: int  # the bucket of operators and compiled code: the CPU computes there only if no GPU does
    names: int
    blame: bool  # whether the event behind every moment is needed, and not only that of syncs
    recorded: tuple[int, int]  # where the state Python is one: before and after, nothing was recorded

    @staticmethod
    def of(trace: "Trace", blame: bool) -> "HostRules":
        """The rules for the kinds and names of this trace: each line overrides those before it."""
        names, kinds = max(len(trace.names), 1), int(trace.labels.kinds.max(initial=-1)) + 1
        label = np.arange(names * kinds if len(trace.names) else 0)
        roles = trace.labels.roles_of((label // names).astype(np.int8), label % names)
        compute = CODES["dispatch" if trace.device == "gpu" else "cpu_compute"]
        state = np.full(len(label), compute, np.int8)  # an operator, a compiled region
        state[roles.kind == r.PYTHON] = PYTHON
        state[(roles.kind == r.PYTHON) & roles.named(r.BACKWARD_FRAME)] = ENGINE
        state[roles.kind == r.RUNTIME] = CODES["dispatch"]
        state[roles.named(r.GUARDS)] = CODES["guards"]
        state[roles.alloc] = CODES["alloc"]
        state[roles.launch] = CODES["kernel_launch"]
        state[roles.sync_by_name] = SYNC
        bits = np.zeros(len(label), np.uint8)
        bits[roles.annotation] |= ANNOTATION
        bits[roles.compile_span] |= COMPILE
        bits[roles.annotation & roles.named(r.DATALOAD)] |= DATALOAD
        bits[roles.named(r.COMPILED_CODE) | ((roles.kind == r.PYTHON) & roles.named(r.INDUCTOR_FRAME))] |= COMPILED
        bits[(roles.kind != r.PYTHON) & (~roles.annotation | roles.compile_span)] |= WORK
        return HostRules(state, bits, compute, names, blame, trace.host_recorded)

    def label(self, trace: "Trace", rows: Ints) -> Ints:
        """The number of each row's kind and name."""
        numbers: Ints = trace.labels.kinds[trace.cat_codes[rows]] * np.int64(self.names) + trace.name_codes[rows]
        return numbers


def thread_states(trace: "Trace", rules: HostRules, rows: Ints, window: tuple[int, int], *, main: bool) -> ThreadStates:
    """The states of one thread in a window, given the rows that overlap it, in order of their starts.

    When a thread works is computed for helpers only.
    """
    low, high = window
    label = rules.label(trace, rows)
    bits = rules.bits[label]
    occurring = int(np.bitwise_or.reduce(bits)) if len(bits) else 0
    candidates = rows
    if occurring & ANNOTATION:
        plain = (bits & ANNOTATION) == 0
        candidates, label = rows[plain], label[plain]
    inner = nested(trace, candidates)
    starts, ends = _clipped(trace, inner, low, high)
    inner_states = rules.state[label if inner is candidates else rules.label(trace, inner)]
    copies = np.flatnonzero(inner_states == CODES["kernel_launch"])
    inner_states[copies[trace.links.is_blocking(inner[copies])]] = SYNC
    leaves = inner_states != rules.compute
    if not rules.blame and not (starts[1:] < ends[:-1])[leaves[:-1]].any():
        top = _leaves_on_others(starts, ends, leaves)
    else:
        top = topmost(starts, ends)
    surrounding = {bit: _union(trace, rows[(bits & bit) != 0], low, high) for bit in _SURROUNDINGS if occurring & bit}
    surrounding = {bit: union for bit, union in surrounding.items() if len(union.starts)}
    # Annotations are never innermost, yet they change the state where they begin and end.
    surrounding_edges = [union.edges for union in surrounding.values()]
    edges = distinct(np.concatenate([top.edges, *surrounding_edges])) if surrounding_edges else top.edges
    points = edges[:-1]
    top_index = top.at(points) if surrounding_edges else top.values
    has_event = top_index >= 0
    event = np.full(len(points), -1, np.int32)
    event[has_event] = inner[top_index[has_event]]
    state = np.full(len(points), PYTHON, np.int8)
    state[has_event] = inner_states[top_index[has_event]]
    # What surrounds the innermost event, each rule overriding those before it.
    covered = {bit: union.covers(points) for bit, union in surrounding.items()}
    if COMPILED in covered:
        state[has_event & (state == PYTHON) & covered[COMPILED]] = rules.compute
    if DATALOAD in covered:
        state[covered[DATALOAD] & ~among(state, _CALLS)] = CODES["dataload"]
    if COMPILE in covered:
        state[covered[COMPILE]] = CODES["compile"]
    if not rules.blame:
        event[state != SYNC] = -1
        first = runs(state.astype(np.int64) << 32 | (event + 1))
        edges, state, event = edges[first] if len(edges) else edges, state[first[:-1]], event[first[:-1]]
    work = Union.of(starts[:0], ends[:0]) if main else _union(trace, rows[(bits & WORK) != 0], low, high)
    return ThreadStates(StepFunction(edges, state, PYTHON), StepFunction(edges, event, -1), work)


def _leaves_on_others(starts: Ints, ends: Ints, leaves: Bools) -> StepFunction:
    """`topmost`, if nothing starts inside a leaf and it does not matter which of the other events is on top.

    This saves sorting and painting those others, which are the majority: any one of them represents all.
    """
    leaf = np.flatnonzero(leaves & (ends > starts))
    non_leaves = Union.of(starts[~leaves], ends[~leaves])
    edges = distinct(np.concatenate((starts[leaf], ends[leaf], non_leaves.edges)))
    points = edges[:-1]
    value = np.full(len(points), -1, np.int32)
    if len(non_leaves.starts):
        value[non_leaves.covers(points)] = np.argmin(leaves)
    leaf_index = count_up_to(starts[leaf], points) - 1
    on_top = (leaf_index >= 0) & (points < ends[leaf[leaf_index]]) if len(leaf) else np.zeros(len(points), bool)
    value[on_top] = leaf[leaf_index[on_top]]
    return StepFunction(edges, value)


def _union(trace: "Trace", rows: Ints, low: int, high: int) -> Union:
    return Union.of(*_clipped(trace, rows, low, high))


def _clipped(trace: "Trace", rows: Ints | Rows, low: int, high: int) -> tuple[Ints, Ints]:
    events = trace.events_at(rows)
    return np.maximum(events.ts_ns, low), np.minimum(events.end_ns, high)


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
    rows = overlapping[part.lasting & (kind >= r.RUNTIME) & (kind <= r.PYTHON) & driving[part.track]]
    rules = HostRules.of(trace, blame=True)
    tools = overhead(trace, overlapping[part.lasting & (kind == r.OVERHEAD)], low, high)
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
    loading = tool[trace.events_at(tool).roles.named(r.MODULE_LOAD)]
    profiling, code_loading = (
        Union.of(trace.ts_ns[rows], trace.events_at(rows).end_ns).clip(low, high) for rows in (tool, loading)
    )
    return profiling, code_loading
