"""Who owns each moment of each driving thread? Backward nodes belong to the line of their forward operator.

Except where a backward pass is differentiated again: `autograd.grad(…, create_graph=True)` records what its nodes
compute, these operators have numbers, and the nodes of a later pass have the same ones. A line of the forward pass says
little about either: each belongs to the line that calls it, as a clock around that line would tell.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import numpy as np
from msgspec import Struct

from tracekit.base.intervals import NO_INTS, Bools, Ints, Rows, StepFunction
from tracekit.lines.marked import MarkedLines
from tracekit.lines.owners import BACKWARD, DOUBLE_BACKWARD, INNER_BACKWARD, Owners
from tracekit.lines.spans import Spans, compressed, merged, on_thread
from tracekit.trace import Trace
from tracekit.trace.roles import OPERATOR
from tracekit.trace.schema import values


class Thread(Struct, frozen=True):
    """One thread: the owner of each moment, and where that is an estimate."""

    owners: StepFunction
    divided: StepFunction

    def overlaid(self, spans: Spans, owner: Ints, *, estimated: bool = False) -> "Thread":
        """The same thread, overlaid with spans whose owners are known or estimated, innermost first."""
        if not len(spans):
            return self
        edges, (which, below, shared) = merged([spans.innermost, self.owners, self.divided])
        value = np.where(which >= 0, owner[which], below)
        return Thread(compressed(edges, value), compressed(edges, np.where(which >= 0, int(estimated), shared)))

    def of_lines(self, marks: MarkedLines, owners: Owners) -> "Thread":
        """The same thread with the lines that were marked; they are estimates only in loops."""
        edges, (owner, group, estimated) = merged([self.owners, marks.groups, marks.estimated])
        value = owners.with_groups(np.maximum(owner, 0), group)
        return Thread(compressed(edges, value), compressed(edges, np.maximum(estimated, 0)))

    def of_own_code(self, nodes: Spans, marks: MarkedLines, owners: Owners, *, is_main: bool) -> "Thread":
        """The same thread, where marks show that the user's code runs inside of a node: on the main thread, another
        line than the one that called `backward`; on a helper, any line."""
        if not len(nodes):
            return self
        outermost = nodes.chosen(nodes.depth == 0)
        called = marks.groups.at(outermost.starts) if is_main else np.zeros(len(outermost), np.int64)
        edges, (node, owner, group, shared) = merged([outermost.innermost, self.owners, marks.groups, self.divided])
        is_own = (node >= 0) & (group > 0) & (group != called[node])
        value = np.where(is_own, owners.with_groups(np.maximum(owner, 0), np.maximum(group, 0)), owner)
        return Thread(compressed(edges, value), compressed(edges, shared))


class DetailedTrace(Struct, frozen=True):
    """The recording that a trace was read from: it has forward operators that the trace has lost."""

    trace: Trace
    owners: StepFunction  # of its main thread
    matched: Ints  # for each event of the other trace its row here; −1 for none

    def owners_of(self, trace: Trace, numbers: Ints) -> Ints:
        """The owner of the forward operator of each of autograd's numbers; −1 if it is not here either.

        Between two matched operators both traces number consecutively, so their numbers differ by a constant.
        """
        here, there = _numbers(self.trace)[0], _numbers(trace)[0]
        rows = np.flatnonzero((self.matched >= 0) & _is_forward(trace))
        rows = rows[here[self.matched[rows]] >= 0]
        rows = rows[np.argsort(there[rows], kind="stable")]
        forward = _forward_operators(self.trace)[0]
        if not len(rows) or not len(forward):
            return np.full(len(numbers), -1, np.int64)
        nearest = rows[np.maximum(np.searchsorted(there[rows], numbers, side="right") - 1, 0)]
        wanted = numbers - there[nearest] + here[self.matched[nearest]]
        last = np.maximum(np.searchsorted(here[forward], wanted, side="right") - 1, 0)
        is_known = (numbers >= 0) & (here[forward[last]] == wanted)
        return np.where(is_known, self.owners.at(self.trace.ts_ns[forward[last]]), -1)


def threads(
    trace: Trace,
    main: Thread,
    owners: Owners,
    detailed: DetailedTrace | None = None,
    marked: Mapping[int, MarkedLines] = MappingProxyType({}),
) -> dict[int, Thread]:
    """Every driving thread by its track. Outside of nodes, a helper has the owner of the main thread; code of the
    user's that runs in a node, such as a hook, owns its time."""
    if trace.threads.main is None:
        return {}
    forward = _forward_operators(trace)
    passes, phases = double_passes(trace, main.owners)
    of_passes = main.owners.at(passes.starts)  # the lines that call them
    for phase in (INNER_BACKWARD, DOUBLE_BACKWARD):
        of_passes = np.where(phases == phase, owners.in_phase(of_passes, phase), of_passes)
    by_track = {}
    for track in trace.threads.driving:
        nodes, of_nodes = _nodes(trace, track, main, forward, owners, detailed=detailed)
        thread = main.overlaid(nodes, of_nodes).overlaid(passes, of_passes)
        if track in marked:
            thread = thread.of_own_code(nodes, marked[track], owners, is_main=track == trace.threads.main)
        by_track[track] = thread
    return by_track


def owners_at(threads: dict[int, Thread], track: Ints | Rows, moment: Ints) -> tuple[Ints, Bools]:
    """The owner of each thread at a moment of its own, and whether that is an estimate.

    The first of the threads is the main one, whose owners also hold for threads that do not drive the training.
    """
    owner, divided = np.zeros(len(track), np.int64), np.zeros(len(track), bool)
    helpers = [*threads][1:]
    for number, thread in threads.items():
        of_thread = track == number if number in helpers else ~np.isin(track, helpers)
        owner[of_thread] = thread.owners.at(moment[of_thread])
        divided[of_thread] = thread.divided.at(moment[of_thread]) > 0
    return owner, divided


def _nodes(
    trace: Trace, track: int, main: Thread, forward: list[Ints], owners: Owners, *, detailed: DetailedTrace | None
) -> tuple[Spans, Ints]:
    """The backward nodes of a thread, and the owner of each: that of the operator with its number, of the first thread
    that has one."""
    numbers, nodes = _numbers(trace)[0], Spans.of(trace, on_thread(trace, track, trace.roles.backward_node))
    operator, wanted_numbers = np.full(len(nodes), -1, np.int64), numbers[nodes.rows]
    for rows in forward if len(nodes) else ():
        if not len(rows):
            continue
        # The last operator of that thread to start before each node with its number.
        starts = trace.ts_ns[rows]
        low = min(int(starts.min()), int(nodes.starts.min()))
        width = max(int(starts.max()), int(nodes.starts.max())) - low + 1
        distinct_numbers, rank = np.unique(numbers[rows], return_inverse=True)
        keys = rank.reshape(-1) * width + (starts - low)
        number = np.minimum(np.searchsorted(distinct_numbers, wanted_numbers), len(distinct_numbers) - 1)
        position = np.searchsorted(keys, number * width + (nodes.starts - low), side="left") - 1
        last = rows[np.maximum(position, 0)]
        fits = (operator < 0) & (position >= 0) & (wanted_numbers >= 0) & (numbers[last] == wanted_numbers)
        operator[fits] = last[fits]
    owner = np.where(operator >= 0, main.owners.at(trace.ts_ns[np.maximum(operator, 0)]), -1)
    if detailed is not None and (lost := np.flatnonzero(operator < 0)).size:
        owner[lost] = detailed.owners_of(trace, wanted_numbers[lost])
    before = np.maximum.accumulate(np.where(owner >= 0, np.arange(len(nodes)), -1))
    called = main.owners.at(nodes.starts)  # without any: the line that called backward
    return nodes, owners.in_phase(np.where(before >= 0, owner[np.maximum(before, 0)], called), BACKWARD)


def _forward_operators(trace: Trace) -> list[Ints]:
    """The forward operators of each driving thread, the main one first, in order of their numbers and starts."""
    numbers, is_forward = _numbers(trace)[0], _is_forward(trace)
    by_thread = []
    for track in trace.threads.driving:
        rows = on_thread(trace, track, is_forward)
        nodes = Spans.of(trace, on_thread(trace, track, trace.roles.backward_node))
        rows = rows[nodes.innermost.at(trace.ts_ns[rows]) < 0]
        by_thread.append(rows[np.lexsort((trace.ts_ns[rows], numbers[rows]))])
    return by_thread


def _is_forward(trace: Trace) -> Bools:
    """Which events are forward operators that autograd numbered."""
    roles, (numbers, thread) = trace.roles, _numbers(trace)
    forward: Bools = (
        (roles.kind == OPERATOR) & ~roles.annotation & ~roles.backward_node & (numbers >= 0) & (thread == 0)
    )
    return forward


def _numbers(trace: Trace) -> tuple[Ints, Ints]:
    """Autograd's number of each event, −1 for none, and the thread its forward ran on: 0 for what runs forward."""
    events = trace.events
    return values(events["sequence"], -1), values(events["fwd_thread"], 0)


def double_passes(trace: Trace, called: StepFunction) -> tuple[Spans, Ints]:
    """The backward passes that are differentiated again, and those that do it, in order, with the phase of each;
    `called` is the owner of each moment of the main thread."""
    (numbers, home), is_forward, main = _numbers(trace), _is_forward(trace), trace.threads.main
    nodes = _sorted(trace, np.flatnonzero(trace.roles.backward_node & np.isin(trace.track, trace.threads.driving)))
    inside_nodes = dict(_inside_nodes(trace, nodes, is_forward))
    if not inside_nodes:
        nothing = NO_INTS
        return Spans(nothing, nothing, nothing), nothing
    outside = np.setdiff1d(np.flatnonzero(is_forward & (trace.track == main)), [*inside_nodes])
    # The number of the pass of each node: one ends where another line calls, or forward operators run in between.
    starts = trace.ts_ns[nodes]
    forward_before = np.searchsorted(np.sort(trace.ts_ns[outside]), starts)
    changes = (np.diff(called.at(starts)) != 0) | (np.diff(forward_before) != 0)
    in_pass: Ints = np.concatenate(([0], np.cumsum(changes)))
    # The nodes that differentiate an operator of a node before them, and these operators. Each thread numbers by
    # itself; autograd's own number of the main thread is that of most nodes whose forward operator it ran.
    of_main = home[nodes[np.isin(numbers[nodes], numbers[outside])]]
    main_home = int(np.bincount(of_main).argmax()) if len(of_main) else -1
    recorded: dict[tuple[int, bool], list[tuple[int, int, int]]] = {}
    for row, end in inside_nodes.items():
        key = int(numbers[row]), int(trace.track[row]) == main
        recorded.setdefault(key, []).append((int(trace.ts_ns[row]), end, row))
    for row in outside.tolist():
        if (key := (int(numbers[row]), True)) in recorded:
            recorded[key].append((int(trace.ts_ns[row]), -1, row))
    again, first = [], []
    for position, row in enumerate(nodes.tolist()):
        start, key = int(starts[position]), (int(numbers[row]), int(home[row]) == main_home)
        earlier = [operator for operator in recorded.get(key, ()) if operator[0] < start]
        _, end, operator_row = max(earlier, default=(0, -1, -1))
        if 0 <= end <= start:  # not what a node recomputes for itself, as checkpoints do
            again.append(position)
            first.append(operator_row)
    phase = np.zeros(int(in_pass.max()) + 1, np.int64)
    phase[in_pass[np.searchsorted(starts, trace.ts_ns[np.array(first, np.int64)], side="right") - 1]] = INNER_BACKWARD
    phase[in_pass[np.array(again, np.int64)]] = DOUBLE_BACKWARD
    passes = [nodes[in_pass == number] for number in np.flatnonzero(phase).tolist()]
    columns = ([rows[0], trace.ts_ns[rows].min(), trace.end_ns[rows].max()] for rows in passes)
    return Spans(*np.array([*columns], np.int64).reshape(-1, 3).T), phase[phase > 0]


def _inside_nodes(trace: Trace, nodes: Ints, is_forward: Bools) -> Iterator[tuple[int, int]]:
    """The numbered operators inside of nodes, by thread and start, and when the outermost node around each ends."""
    for track in trace.threads.driving:
        rows = _sorted(trace, on_thread(trace, track, is_forward))
        spans = Spans.of(trace, nodes[trace.track[nodes] == track])
        outermost = spans.chosen(spans.depth == 0)
        if len(rows) and len(outermost):
            node = outermost.innermost.at(trace.ts_ns[rows])
            yield from zip(rows[node >= 0].tolist(), outermost.ends[node[node >= 0]].tolist(), strict=True)


def _sorted(trace: Trace, rows: Ints) -> Ints:
    rows = rows[trace.end_ns[rows] > trace.ts_ns[rows]]
    return rows[np.argsort(trace.ts_ns[rows], kind="stable")]
