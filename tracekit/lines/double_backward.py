"""Which backward passes are differentiated again, and which differentiate them?

`autograd.grad(…, create_graph=True)` records what its nodes compute: these operators have numbers, and the nodes of a
later pass have the same ones. A line of the forward pass says little about either: each belongs to the line that calls
it, as a clock around that line would tell.
"""

import numpy as np
from msgspec import Struct

from tracekit.base.intervals import Bools, Ints, StepFunction
from tracekit.lines.owners import DOUBLE_BACKWARD, INNER_BACKWARD
from tracekit.lines.spans import Spans, on_thread
from tracekit.trace import Trace


class Passes(Struct, frozen=True):
    """Such backward passes, in order: when each begins and ends, and its phase."""

    spans: Spans
    phases: Ints


class Numbering(Struct, frozen=True):
    """Autograd's numbers, for each event of a trace. Each thread numbers by itself."""

    numbers: Ints  # −1 for none
    home: Ints  # of a node, autograd's own number of the thread that ran its forward operator
    forward: Bools  # whether it is an operator that autograd numbered


class _Inside(Struct, frozen=True):
    """The numbered operators inside of nodes, and when the outermost node around each ends."""

    rows: Ints
    outer_ends: Ints


def double_passes(trace: Trace, called: StepFunction, numbering: Numbering) -> Passes:
    """The passes that are differentiated again, and those that do it; `called` is the owner of each moment of the main
    thread.
    """
    nodes = _sorted(trace, np.flatnonzero(trace.roles.backward_node & np.isin(trace.track, trace.threads.driving)))
    if not len(nodes):
        return _none(trace)
    inside_nodes = _inside_nodes(trace, nodes, numbering.forward)
    if not len(inside_nodes.rows):
        return _none(trace)
    of_main = np.flatnonzero(numbering.forward & (trace.track == trace.threads.main))
    outside = np.setdiff1d(of_main, inside_nodes.rows)
    in_pass = _pass_of(trace, nodes, called, outside)
    again, first = _differentiated(trace, nodes, numbering, inside_nodes, outside)
    phase = np.zeros(int(in_pass.max()) + 1, np.int64)
    phase[in_pass[np.searchsorted(trace.ts_ns[nodes], trace.ts_ns[first], side="right") - 1]] = INNER_BACKWARD
    phase[in_pass[again]] = DOUBLE_BACKWARD
    rows_in_phase = np.flatnonzero(phase)
    starts = np.array([trace.ts_ns[nodes[in_pass == row]].min() for row in rows_in_phase], np.int64)
    ends = np.array([trace.end_ns[nodes[in_pass == row]].max() for row in rows_in_phase], np.int64)
    firsts = np.array([nodes[in_pass == row][0] for row in rows_in_phase], np.int64)
    return Passes(Spans(firsts, starts, ends), phase[rows_in_phase])


def _none(trace: Trace) -> Passes:
    nothing = np.zeros(0, np.int64)
    return Passes(Spans.of(trace, nothing), nothing)


def _sorted(trace: Trace, rows: Ints) -> Ints:
    rows = rows[trace.end_ns[rows] > trace.ts_ns[rows]]
    return rows[np.argsort(trace.ts_ns[rows], kind="stable")]


def _inside_nodes(trace: Trace, nodes: Ints, is_forward: Bools) -> _Inside:
    found_rows, ends = [], []
    for track in trace.threads.driving:
        rows = _sorted(trace, on_thread(trace, track, is_forward))
        spans = Spans.of(trace, nodes[trace.track[nodes] == track])
        outermost = spans.chosen(spans.depth == 0)
        if not len(rows) or not len(outermost):
            continue
        node = outermost.innermost.at(trace.ts_ns[rows])
        found_rows.append(rows[node >= 0])
        ends.append(outermost.ends[node[node >= 0]])
    nothing = np.zeros(0, np.int64)
    return _Inside(np.concatenate([nothing, *found_rows]), np.concatenate([nothing, *ends]))


def _pass_of(trace: Trace, nodes: Ints, called: StepFunction, outside: Ints) -> Ints:
    """The number of the pass of each node: one ends where another line calls, or forward operators run in between."""
    starts = trace.ts_ns[nodes]
    forward_before = np.searchsorted(np.sort(trace.ts_ns[outside]), starts)
    caller = called.at(starts)
    changes = (np.diff(caller) != 0) | (np.diff(forward_before) != 0)
    passes: Ints = np.concatenate(([0], np.cumsum(changes)))
    return passes


def _differentiated(
    trace: Trace, nodes: Ints, numbering: Numbering, inside_nodes: _Inside, outside: Ints
) -> tuple[Ints, Ints]:
    """The positions of the nodes that differentiate an operator of a node before them, and these operators."""
    numbers, home = numbering.numbers, numbering.home
    # Autograd's own number of the main thread: that of most nodes whose forward operator it ran.
    of_main = home[nodes[np.isin(numbers[nodes], numbers[outside])]]
    main_home = int(np.bincount(of_main).argmax()) if len(of_main) else -1
    last: dict[tuple[int, bool], list[tuple[int, int, int]]] = {}
    for row, end in zip(inside_nodes.rows.tolist(), inside_nodes.outer_ends.tolist(), strict=True):
        key = int(numbers[row]), int(trace.track[row]) == trace.threads.main
        last.setdefault(key, []).append((int(trace.ts_ns[row]), end, row))
    for row in outside.tolist():
        if (key := (int(numbers[row]), True)) in last:
            last[key].append((int(trace.ts_ns[row]), -1, row))
    again, first = [], []
    for position, row in enumerate(nodes.tolist()):
        start, key = int(trace.ts_ns[row]), (int(numbers[row]), int(home[row]) == main_home)
        before = [row for row in last.get(key, ()) if row[0] < start]
        _, end, operator = max(before, default=(0, -1, -1))
        if 0 <= end <= start:  # not what a node recomputes for itself, as checkpoints do
            again.append(position)
            first.append(operator)
    return np.array(again, np.int64), np.array(first, np.int64)
