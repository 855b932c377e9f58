"""Who owns each moment of each driving thread? Backward nodes belong to the line of their forward operator."""

import numpy as np
from msgspec import Struct

from tracekit.base.intervals import Bools, Ints, Rows, StepFunction
from tracekit.lines.double_backward import Numbering, double_passes
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


def threads(trace: Trace, main: Thread, owners: Owners, detailed: DetailedTrace | None = None) -> dict[int, Thread]:
    """Every driving thread by its track. Outside of nodes, a helper has the owner of the main thread."""
    if trace.threads.main is None:
        return {}
    forward = _forward_operators(trace)
    passes = double_passes(trace, main.owners, Numbering(*_numbers(trace), _is_forward(trace)))
    of_passes = main.owners.at(passes.spans.starts)  # the lines that call them
    for phase in (INNER_BACKWARD, DOUBLE_BACKWARD):
        of_passes = np.where(passes.phases == phase, owners.in_phase(of_passes, phase), of_passes)
    return {
        track: main.overlaid(*_nodes(trace, track, main, forward, owners, detailed=detailed)).overlaid(
            passes.spans, of_passes
        )
        for track in trace.threads.driving
    }


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
    nodes = Spans.of(trace, on_thread(trace, track, trace.roles.backward_node))
    operator = np.full(len(nodes), -1, np.int64)
    for rows in forward:
        operator = np.where(operator >= 0, operator, _last_before(trace, rows, nodes))
    owner = np.where(operator >= 0, main.owners.at(trace.ts_ns[np.maximum(operator, 0)]), -1)
    if detailed is not None and (lost := np.flatnonzero(operator < 0)).size:
        owner[lost] = detailed.owners_of(trace, _numbers(trace)[0][nodes.rows[lost]])
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


def _last_before(trace: Trace, rows: Ints, nodes: Spans) -> Ints:
    """The last operator of one thread to start before each node with its number; −1 for none."""
    if not len(rows) or not len(nodes):
        return np.full(len(nodes), -1, np.int64)
    numbers, _ = _numbers(trace)
    wanted_numbers, starts = numbers[nodes.rows], trace.ts_ns[rows]
    low = min(int(starts.min()), int(nodes.starts.min()))
    width = max(int(starts.max()), int(nodes.starts.max())) - low + 1
    distinct_numbers, rank = np.unique(numbers[rows], return_inverse=True)
    keys = rank.reshape(-1) * width + (starts - low)
    number = np.minimum(np.searchsorted(distinct_numbers, wanted_numbers), len(distinct_numbers) - 1)
    position = np.searchsorted(keys, number * width + (nodes.starts - low), side="left") - 1
    operator = rows[np.maximum(position, 0)]
    fits = (position >= 0) & (wanted_numbers >= 0) & (numbers[operator] == wanted_numbers)
    return np.where(fits, operator, -1)


def _numbers(trace: Trace) -> tuple[Ints, Ints]:
    """Autograd's number of each event, −1 for none, and the thread its forward ran on: 0 for what runs forward."""
    events = trace.events
    return values(events["sequence"], -1), values(events["fwd_thread"], 0)
