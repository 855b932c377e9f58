"""Which lines does a compiled kernel belong to? Those whose work was fused into it, by the compiler's provenance."""

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from tracekit.base.intervals import Bools, Ints, StepFunction
from tracekit.lines.graph_calls import (
    GraphCalls,
    generates_any,
    lines_of,
    lines_of_operators,
    lines_of_replayed,
    of_generated,
)
from tracekit.lines.owners import Group, Owners
from tracekit.lines.regions import regions
from tracekit.lines.spans import Spans, on_thread
from tracekit.lines.threads import Thread
from tracekit.trace import Trace
from tracekit.trace.roles import KERNEL, OPERATOR

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
        regions_here = _Regions(trace, track, threads[track], regions_of_track.spans, graphs_here)
        with_kernels[track] = threads[track]
        if any(graph.calls for graph in graphs_here):
            with_kernels[track] = regions_here.on_host(owners)
            regions_here.on_gpu(launch, gpu, owners)
            fills[track] = regions_here.fills(with_kernels[track], launch, gpu)
        called += graphs_here
    without_lines, by_code = sum(not graph.calls for graph in called), sum(graph.by_code for graph in called)
    return Compiled(with_kernels, gpu, len(called), without_lines, by_code, fills)


class _Regions(Struct, frozen=True):
    """The calls of compiled graphs on one thread, and what each graph calls."""

    trace: Trace
    track: int
    thread: Thread
    spans: Spans
    graphs: list[GraphCalls]

    def on_host(self, owners: Owners) -> Thread:
        """The thread, with the operators that each region calls itself assigned to their lines."""
        operators, region = self._operators()
        owner = np.full(len(region), -1, np.int64)
        is_seen = np.zeros(len(self.spans), bool)  # the regions whose generated kernels have events, or should have
        for number, rows_of_region in _by_region(region):
            names, calls = _names(self.trace, operators.rows[rows_of_region]), self.graphs[number].calls
            is_seen[number] = generates_any(names, calls)
            owner[rows_of_region] = self._owners(number, lines_of_operators(names, calls), owners)
        has_owner = owner >= 0
        return self._without_kernels(is_seen, owners).overlaid(operators.chosen(has_owner), owner[has_owner])

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

    def _without_kernels(self, is_seen: Bools, owners: Owners) -> Thread:
        """The thread with regions in which kernels run on the host that left no events: an estimate.

        What such a region does besides its operators belongs to the lines of all of those kernels.
        """
        if self.trace.roles.gpu.any():
            return self.thread
        lines = [lines_of(call for call in graph.calls if not call.operator) for graph in self.graphs]
        owner = np.array([self._owners(number, [group], owners)[0] for number, group in enumerate(lines)], np.int64)
        is_unseen = ~is_seen & (owner >= 0)
        return self.thread.overlaid(self.spans.chosen(is_unseen), owner[is_unseen], estimated=True)

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
            gpu[rows[rows_of_region]] = self._owners(
                number, self._submitted(rows[rows_of_region], replayed[rows_of_region], number), owners
            )

    def _submitted(self, rows: Ints, replayed: Bools, number: int) -> list[Group]:
        names, calls = _names(self.trace, rows), self.graphs[number].calls
        generated = of_generated(names, calls)
        if not replayed.any():
            return generated
        in_order = lines_of_replayed(names, self.trace.roles.kind[rows] == KERNEL, calls)
        return [
            lines if is_replayed else known
            for lines, known, is_replayed in zip(in_order, generated, replayed.tolist(), strict=True)
        ]

    def _operators(self) -> tuple[Spans, Ints]:
        """The operators right inside a region, and which region that is."""
        trace, roles = self.trace, self.trace.roles
        operators = Spans.of(trace, on_thread(trace, self.track, (roles.kind == OPERATOR) & ~roles.annotation))
        is_region = np.isin(operators.rows, self.spans.rows)
        region = np.where(is_region, -1, self.spans.innermost.at(operators.starts))
        parent = operators.parent
        in_operator = (parent >= 0) & ~is_region[parent]
        direct = (region >= 0) & ~(in_operator & (operators.starts[parent] >= self.spans.starts[np.maximum(region, 0)]))
        return operators.chosen(direct), region[direct]

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
