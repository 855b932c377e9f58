"""What does a compiled graph call, in order, and from which lines of the user's does each call come?

A call is a kernel that the compiler generated or an operator that it left as it is. Events are matched with calls by
name if the name was generated, else by the order of both.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from tracekit.base.intervals import Bools, Ints
from tracekit.lines.owners import Group, SourceLine
from tracekit.lines.shortest_edit import matched
from tracekit.vocabulary.code_owner import USER, may_be_the_users, plain_function, stacked
from tracekit.vocabulary.lines_file import Graph, LinesFile

_PREFIX = re.compile(r"^graph_\d+_")  # what names a CPU kernel's event besides the kernel
_VARIANTS = ("_out", "_default")  # of an operator: the trace names the operator alone


class GraphCall(Struct, frozen=True):
    """One call; `operator` is empty for a kernel that was generated."""

    name: str
    lines: Group
    operator: str = ""


class GraphCalls(NamedTuple):
    """What a graph calls, in order."""

    calls: tuple[GraphCall, ...] = ()
    by_code: bool = False  # the lines come from the comments in its code, which are less precise than stacks


def graph_calls(lines: LinesFile | None, more: Collection[Graph] = ()) -> dict[str, GraphCalls]:
    """What each compiled graph calls, by its key and by its compilation (`name_of`).

    From the graphs in a lines file, and others by their stacks, whose paths show which files are the user's.
    """
    graphs = _by_name(more, may_be_the_users)
    if lines is None:
        return graphs
    files = {*lines.sources, *(file for file, _ in lines.callers)}
    files |= {function.file for function in lines.functions if function.owner == USER}
    return graphs | _by_name(lines.graphs, lambda file: file in files)


def name_of(compilation: str, *, backward: bool) -> str:
    """The name of a compilation's graph in traces that name no key: those before torch 2.9."""
    return f"{compilation} {'backward' if backward else 'forward'}"


def _by_name(graphs: Collection[Graph], is_mine: Callable[[str], bool]) -> dict[str, GraphCalls]:
    calls_by_name: dict[str, GraphCalls] = {}
    for graph in graphs:
        calls = []
        for label, stacks in sorted(graph.kernels, key=lambda kernel: _handle(kernel[0])):
            name = label.rpartition(":")[0] or label
            users = [[frame for frame in stacked(stack) if is_mine(frame.file)] for stack in stacks]
            lines = {
                SourceLine(mine[-1].file, mine[-1].line, plain_function(mine[-1].function)) for mine in users if mine
            }
            # `mm` of `extern_kernels.mm`, `spmm_sum` of `torch.ops.torch_sparse.spmm_sum.default`; a kernel has no dots
            parts = name.removeprefix("torch.ops.").split(".")
            operator = _plain(parts[1]) if len(parts) > 1 else ""
            calls.append(GraphCall(name, tuple(sorted(lines)), operator))
        made_calls = GraphCalls(tuple(calls), graph.by_code)
        calls_by_name[graph.key] = calls_by_name[name_of(graph.compile, backward=graph.backward)] = made_calls
    return calls_by_name


def _handle(label: str) -> int:
    number = label.rpartition(":")[2]
    return int(number) if number.isdecimal() and len(number) < 18 else 0


def _plain(operator: str) -> str:
    for ending in _VARIANTS:
        operator = operator.removesuffix(ending)
    return operator.rstrip("_")


def lines_of_operators(names: Sequence[str], calls: Sequence[GraphCall]) -> list[Group]:
    """The lines of each event on the host right inside a call of the graph; no lines where the graph has none.

    An event that matches no call of the graph, such as an allocation, gets the lines of the event before it.
    """
    call_of = _generated(names, calls)
    without_call = np.flatnonzero(call_of < 0)
    externs = np.flatnonzero(np.array([bool(call.operator) for call in calls], bool))
    numbers: dict[str, int] = {}
    happened, wanted = (
        np.array([numbers.setdefault(operator, len(numbers)) for operator in operators], np.int64)
        for operators in (
            [_plain(names[index].partition("::")[2]) for index in without_call.tolist()],
            [calls[index].operator for index in externs.tolist()],
        )
    )
    stands_for, call = matched(happened, wanted)
    call_of[without_call[stands_for]] = externs[call]
    return _lines_before(call_of, calls)


def lines_of_replayed(names: Sequence[str], is_kernel: Bools, calls: Sequence[GraphCall]) -> list[Group]:
    """The lines of what a replayed CUDA graph ran, in order: its kernels have no operators of their own.

    Kernels between two generated ones share the calls between those: one each if there are as many, else their
    union, which copies and fills also get.
    """
    call_of = _generated(names, calls)
    lines = _lines_before(call_of, calls)
    anchors = np.flatnonzero(call_of >= 0).tolist()
    bounds = [(-1, -1), *((index, int(call_of[index])) for index in anchors), (len(names), len(calls))]
    for (low, before), (high, after) in pairwise(bounds):
        shared = calls[before + 1 : after]
        kernels = [index for index in range(low + 1, high) if is_kernel[index]]
        union = lines_of(shared)
        for index in range(low + 1, high):
            if shared:
                lines[index] = union
        if len(kernels) == len(shared):
            for index, call in zip(kernels, shared, strict=True):
                lines[index] = call.lines
    return lines


def lines_of(calls: Iterable[GraphCall]) -> Group:
    """The lines of several calls together."""
    return tuple(sorted({line for call in calls for line in call.lines}))


def of_generated(names: Sequence[str], calls: Sequence[GraphCall]) -> list[Group]:
    """The lines of the kernels among these that the graph generated; none for others."""
    return [calls[call].lines if call >= 0 else () for call in _generated(names, calls).tolist()]


def generates_any(names: Sequence[str], calls: Sequence[GraphCall]) -> bool:
    """Whether any of these events is a kernel that the graph generated."""
    return bool((_generated(names, calls) >= 0).any())


def _generated(names: Sequence[str], calls: Sequence[GraphCall]) -> Ints:
    """Which call each event of a generated kernel is: if several have one name, in turn; −1 for other events."""
    of_name: dict[str, list[int]] = defaultdict(list)
    for index, call in enumerate(calls):
        if not call.operator:
            of_name[call.name].append(index)
    count_by_name: dict[str, int] = defaultdict(int)
    call_of = np.full(len(names), -1, np.int64)
    for index, name in enumerate(_PREFIX.sub("", name) for name in names):
        if name in of_name:
            call_of[index] = of_name[name][count_by_name[name] % len(of_name[name])]
            count_by_name[name] += 1
    return call_of


def _lines_before(call_of: Ints, calls: Sequence[GraphCall]) -> list[Group]:
    """The lines of each event's call or, where it has none, of the one before it."""
    last = np.maximum.accumulate(np.where(call_of >= 0, np.arange(len(call_of)), -1))
    return [calls[call_of[index]].lines if index >= 0 else () for index in last.tolist()]
