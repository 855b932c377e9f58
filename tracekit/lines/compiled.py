"""Which lines does a compiled kernel belong to? Those whose work was fused into it, by the compiler's provenance.

Traces of torch 2.9 and later name the graph that runs; earlier ones name the compilation that made it.
"""

import re
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from msgspec import Struct

from tracekit.base.intervals import NO_INTS, Bools, Ints, StepFunction
from tracekit.lines.graph_calls import (
    GraphCalls,
    generates_any,
    lines_of,
    lines_of_operators,
    lines_of_replayed,
    name_of,
    of_generated,
)
from tracekit.lines.owners import Group, Owners
from tracekit.lines.spans import Spans, on_thread
from tracekit.lines.threads import Thread
from tracekit.trace import Trace
from tracekit.trace.roles import KERNEL, OPERATOR, USER
from tracekit.trace.schema import values
from tracekit.vocabulary.lines_file import GRAPH_CALL

_REGION = re.compile(r"Torch-Compiled Region: (\d+/\d+)")
_FORWARD, _BACKWARD = re.compile("CompiledFunction"), re.compile("CompiledFunctionBackward")
_NOTHING = GraphCalls()


class Fills(Struct, frozen=True):
    """Where the work of compiled graphs begins on a thread: a graph allocates a buffer right before what fills it."""

    regions: Spans
    around: StepFunction  # the owners of the thread without compiled work
    starts: Ints
    owners: Ints  # of the work that begins at these moments

    def of_buffers(self, moments: Ints, owners: Ints) -> Ints:
        """The owners of allocations: in a graph, outside of its operators, that of the next work in the same graph."""
        region = self.regions.innermost.at(moments)
        following = np.searchsorted(self.starts, moments)
        is_known = (region >= 0) & (following < len(self.starts)) & (owners == self.around.at(moments))
        position = np.minimum(following, max(len(self.starts) - 1, 0))
        result = owners.copy()
        is_known[is_known] = self.starts[position[is_known]] < self.regions.ends[region[is_known]]
        result[is_known] = self.owners[position[is_known]]
        return result


class Compiled(Struct, frozen=True):
    """The owners of the compiled kernels of a trace, and for how many calls of graphs the lines are known."""

    threads: dict[int, Thread]  # with the kernels that run on the host
    gpu: Ints  # the owner of a GPU activity by its row; −1 where its launch says it
    calls: int  # of compiled graphs
    without_lines: int  # of these, those whose graph does not say which lines its kernels are for
    by_code: int  # of these, calls whose lines only the generated code shows
    fills: dict[int, Fills]  # by thread


class Regions(Struct, frozen=True):
    """The calls of compiled graphs on one thread, and the names of the graphs."""

    spans: Spans
    names: list[str]


def regions(trace: Trace, graphs: Collection[str]) -> dict[int, Regions]:
    """The regions of each driving thread; where only compilations are named, those of known graphs."""
    calls = {track: _named(trace, track, GRAPH_CALL) for track in trace.threads.driving}
    if any(call.names for call in calls.values()):
        return calls
    compiled = {track: _named(trace, track, _REGION) for track in trace.threads.driving}
    if not any(regions.names for regions in compiled.values()):
        return calls
    return {
        track: Regions(
            called.spans.chosen(np.array([name in graphs for name in called.names], bool)),
            [name for name in called.names if name in graphs],
        )
        for track, called in _of_compilations(trace, compiled).items()
    }


def nameless_regions(trace: Trace) -> Spans:
    """What torch.compile runs on the main thread if no compiled graph has a name: the backend is not Inductor."""
    if any(GRAPH_CALL.fullmatch(name) for name in trace.names):
        return Spans.of(trace, NO_INTS)
    return _named(trace, trace.threads.main, _REGION).spans


def compiled(
    trace: Trace, launch: Ints, threads: dict[int, Thread], graphs: Mapping[str, GraphCalls], owners: Owners
) -> Compiled:
    """Assign every generated kernel and every operator inside a compiled graph to the lines that it comes from."""
    gpu = np.full(len(trace.ts_ns), -1, np.int64)
    with_kernels: dict[int, Thread] = {}
    called: list[GraphCalls] = []
    fills: dict[int, Fills] = {}
    for track, regions_of_track in regions(trace, graphs).items():
        graphs_here = [graphs.get(name, _NOTHING) for name in regions_of_track.names]
        regions_here = _CalledGraphs(trace, track, threads[track], regions_of_track.spans, graphs_here)
        with_kernels[track] = threads[track]
        if any(graph.calls for graph in graphs_here):
            with_kernels[track] = regions_here.on_host(owners)
            regions_here.on_gpu(launch, gpu, owners)
            fills[track] = regions_here.fills(with_kernels[track], launch, gpu)
        called += graphs_here
    without_lines, by_code = sum(not graph.calls for graph in called), sum(graph.by_code for graph in called)
    return Compiled(with_kernels, gpu, len(called), without_lines, by_code, fills)


class _CalledGraphs(Struct, frozen=True):
    """The calls of compiled graphs on one thread, and what each graph calls."""

    trace: Trace
    track: int
    thread: Thread
    spans: Spans
    graphs: list[GraphCalls]

    def on_host(self, owners: Owners) -> Thread:
        """The thread, with the operators that each region calls itself assigned to their lines."""
        trace, roles, thread = self.trace, self.trace.roles, self.thread
        # The operators right inside a region, and which region that is.
        operators = Spans.of(trace, on_thread(trace, self.track, (roles.kind == OPERATOR) & ~roles.annotation))
        is_region, parent = np.isin(operators.rows, self.spans.rows), operators.parent
        region = np.where(is_region, -1, self.spans.innermost.at(operators.starts))
        in_operator = (parent >= 0) & ~is_region[parent]
        direct = (region >= 0) & ~(in_operator & (operators.starts[parent] >= self.spans.starts[np.maximum(region, 0)]))
        operators, region = operators.chosen(direct), region[direct]
        owner = np.full(len(region), -1, np.int64)
        is_seen = np.zeros(len(self.spans), bool)  # the regions whose generated kernels have events, or should have
        for number, rows_of_region in _by_region(region):
            names, calls = _names(trace, operators.rows[rows_of_region]), self.graphs[number].calls
            is_seen[number] = generates_any(names, calls)
            owner[rows_of_region] = self._owners(number, lines_of_operators(names, calls), owners)
        known, region = operators.chosen(owner >= 0), region[owner >= 0]
        owner = owner[owner >= 0]
        # On a CPU, what a region does besides its operators, such as allocating their results, prepares the next one.
        # Where its kernels left no events, it belongs to the lines of all of them. Both are estimates.
        if not roles.gpu.any():
            thread = thread.overlaid(self._around(known, region), owner, estimated=True)
            lines = [lines_of(call for call in graph.calls if not call.operator) for graph in self.graphs]
            fused = np.array([self._owners(number, [group], owners)[0] for number, group in enumerate(lines)], np.int64)
            is_unseen = ~is_seen & (fused >= 0)
            thread = thread.overlaid(self.spans.chosen(is_unseen), fused[is_unseen], estimated=True)
        return thread.overlaid(known, owner)

    def _around(self, operators: Spans, region: Ints) -> Spans:
        """The operators of each region, from the end of the one before to their own; the last until the region ends."""
        if not len(region):
            return operators
        changes = region[1:] != region[:-1]
        is_first, is_last = np.append(True, changes), np.append(changes, True)
        before = np.concatenate(([0], operators.ends[:-1]))
        return Spans(
            operators.rows,
            np.where(is_first, self.spans.starts[region], before),
            np.where(is_last, self.spans.ends[region], operators.ends),
        )

    def fills(self, with_kernels: Thread, launch: Ints, gpu: Ints) -> Fills:
        """Where the operators that have lines begin, and the launches of the kernels that do."""
        trace, usual_owners, assigned = self.trace, self.thread.owners, with_kernels.owners
        owners_here = assigned.at(assigned.edges)
        new = owners_here != usual_owners.at(assigned.edges)
        rows = np.flatnonzero((gpu >= 0) & (launch >= 0))
        rows = rows[trace.track[launch[rows]] == self.track]
        starts = np.concatenate((assigned.edges[new], trace.ts_ns[launch[rows]]))
        order = np.argsort(starts, kind="stable")
        return Fills(self.spans, usual_owners, starts[order], np.concatenate((owners_here[new], gpu[rows]))[order])

    def on_gpu(self, launch: Ints, gpu: Ints, owners: Owners) -> None:
        """The GPU activities that were submitted inside a region, in order of their launches.

        A generated kernel is recognised by its name; anything else that an operator launches has the operator's lines.
        """
        trace = self.trace
        rows = np.flatnonzero((launch >= 0) & trace.roles.gpu)
        rows = rows[trace.track[launch[rows]] == self.track]
        rows = rows[np.lexsort((trace.ts_ns[rows], trace.ts_ns[launch[rows]]))]
        region = self.spans.innermost.at(trace.ts_ns[launch[rows]])
        rows, region = rows[region >= 0], region[region >= 0]
        replayed = trace.roles.graph_launch[launch[rows]]
        for number, rows_of_region in _by_region(region):
            submitted, calls = rows[rows_of_region], self.graphs[number].calls
            names = _names(trace, submitted)
            lines = of_generated(names, calls)
            if replayed[rows_of_region].any():
                in_order = lines_of_replayed(names, trace.roles.kind[submitted] == KERNEL, calls)
                pairs = zip(in_order, lines, replayed[rows_of_region].tolist(), strict=True)
                lines = [by_order if is_replayed else by_name for by_order, by_name, is_replayed in pairs]
            gpu[submitted] = self._owners(number, lines, owners)

    def _owners(self, number: int, lines: Sequence[Group], owners: Owners) -> Ints:
        """The owner of each event of a region, given its lines; −1 for an event without lines, which keeps the
        region's owner."""
        owner_of_region = self.thread.owners.at(self.spans.starts[number : number + 1])
        owner_of_group = {
            group: int(owners.of_group(owner_of_region, owners.group(group))[0])
            for group in dict.fromkeys(lines)
            if group
        }
        return np.array([owner_of_group.get(group, -1) for group in lines], np.int64)


def _by_region(region: Ints) -> list[tuple[int, Ints]]:
    """Each region that occurs, and where."""
    numbers, starts = np.unique(region[order := np.argsort(region, kind="stable")], return_index=True)
    return [*zip(numbers.tolist(), np.split(order, starts[1:]), strict=True)] if len(numbers) else []


def _names(trace: Trace, rows: Ints) -> list[str]:
    return [trace.names[code] for code in trace.name_codes[rows].tolist()]


def _of_compilations(trace: Trace, compiled: dict[int, Regions]) -> dict[int, Regions]:
    """Each region calls the forward graph of its compilation: inside a function of autograd's, if anything wants a
    gradient, and the backward of that function calls the other graph.
    """
    number = values(trace.events["sequence"], -1)
    of_number: dict[int, str] = {}
    forward: dict[int, Regions] = {}
    for track, regions in compiled.items():
        functions = Spans.of(trace, on_thread(trace, track, _operators(trace, _FORWARD)))
        homes = regions.spans.innermost.at(functions.starts)
        functions, homes = functions.chosen(homes >= 0), homes[homes >= 0].tolist()
        of_number |= {int(number[row]): regions.names[index] for row, index in zip(functions.rows, homes, strict=True)}
        alone = np.ones(len(regions.spans), bool)
        alone[homes] = False
        names = [regions.names[index] for index in (*np.flatnonzero(alone).tolist(), *homes)]
        rows = np.concatenate((regions.spans.rows[alone], functions.rows))
        forward[track] = _in_order(trace, rows, [name_of(name, backward=False) for name in names])
    backward = _operators(trace, _BACKWARD) & np.isin(number, [*of_number])
    both = {}
    for track, regions in forward.items():
        rows = on_thread(trace, track, backward)
        names = [name_of(of_number[row_number], backward=True) for row_number in number[rows].tolist()]
        both[track] = _in_order(trace, np.concatenate((regions.spans.rows, rows)), [*regions.names, *names])
    return both


def _in_order(trace: Trace, rows: Ints, names: list[str]) -> Regions:
    of_row = dict(zip(rows.tolist(), names, strict=True))
    spans = Spans.of(trace, rows)
    return Regions(spans, [of_row[row] for row in spans.rows.tolist()])


def _named(trace: Trace, track: int | None, pattern: re.Pattern[str]) -> Regions:
    spans = Spans.of(trace, on_thread(trace, track, _operators(trace, pattern)))
    shapes = (pattern.fullmatch(trace.names[code]) for code in trace.name_codes[spans.rows].tolist())
    return Regions(spans, [shape[1] for shape in shapes if shape])


def _operators(trace: Trace, pattern: re.Pattern[str]) -> Bools:
    kind = trace.roles.kind
    operators: Bools = trace.roles.named(pattern) & ((kind == OPERATOR) | (kind == USER))
    return operators
