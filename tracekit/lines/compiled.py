"""Which lines is a compiled kernel for? Those whose work was fused into it, as the compiler's provenance says."""

import re
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np

from tracekit.intervals import Ints
from tracekit.lines.owners import Group, Line, Owners
from tracekit.lines.thread import Spans, on_thread
from tracekit.lines.threads import Thread
from tracekit.lines.user_code import plain_function
from tracekit.lines_file import USER, Graph, LinesFile
from tracekit.trace import Trace
from tracekit.trace.enclosing import is_users
from tracekit.trace.roles import OPERATOR
from tracekit.trace.roles import USER as ANNOTATION

_REGION = re.compile(r"## Call CompiledFxGraph (\S+) ##")
_PLACE = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')
_PREFIX = re.compile(r"^graph_\d+_")  # what names a CPU kernel's event besides the kernel
_EXTERN = re.compile(r"(?:extern_kernels|torch\.ops\.aten|aten|torch\.ops)\.(\w+)")


@dataclass(frozen=True)
class _Kernel:
    """A kernel or a call of a graph, in the order in which the graph calls them."""

    name: str
    lines: Group
    extern: str  # the operator that it calls; empty for what was generated


@dataclass(frozen=True)
class Provenance:
    """The kernels of each compiled graph, by its key."""

    graphs: dict[str, list[_Kernel]]

    @staticmethod
    def of(lines: LinesFile | None, more: Collection[Graph] = ()) -> "Provenance":
        """What a lines file knows, and of more graphs what their stacks say: of these, paths tell the user's files."""
        graphs = {graph.key: _kernels(graph, is_users) for graph in more}
        if lines is None:
            return Provenance(graphs)
        files = {*lines.sources, *(file for file, _ in lines.callers)}
        files |= {each.file for each in lines.functions if each.owner == USER}
        recorded = {
            graph.key: _kernels(graph, lambda frame: frame.rpartition("(")[0] in files) for graph in lines.graphs
        }
        return Provenance(graphs | recorded)


def _kernels(graph: Graph, is_mine: Callable[[str], bool]) -> list[_Kernel]:
    kernels = []
    for label, stacks in sorted(graph.kernels, key=lambda each: _handle(each[0])):
        name = label.rpartition(":")[0] or label
        extern = _EXTERN.match(name)
        lines = dict.fromkeys(line for stack in stacks if (line := _innermost(stack, is_mine)) is not None)
        kernels.append(_Kernel(name, tuple(sorted(lines)), extern[1] if extern else ""))
    return kernels


def _handle(label: str) -> int:
    number = label.rpartition(":")[2]
    return int(number) if number.isdecimal() and len(number) < 18 else 0


def _innermost(stack: str, is_mine: Callable[[str], bool]) -> Line | None:
    own = [(file, line, name) for file, line, name in _PLACE.findall(stack) if is_mine(f"{file}({line}): {name}")]
    return Line(own[-1][0], int(own[-1][1]), plain_function(own[-1][2])) if own else None


@dataclass(frozen=True)
class Compiled:
    """Whose the compiled kernels of a trace are."""

    threads: dict[int, Thread]  # with the kernels that run on the host
    gpu: Ints  # the owner of a GPU activity by its row; −1 where its launch says it
    regions: int  # calls of compiled graphs
    unknown: int  # of these, such whose graph has no provenance


def compiled(
    trace: Trace, launch: Ints, threads: dict[int, Thread], provenance: Provenance, owners: Owners
) -> Compiled:
    """Give every generated kernel and every extern call inside a compiled graph to the lines it is for."""
    gpu = np.full(len(trace.ts_ns), -1, np.int64)
    given: dict[int, Thread] = {}
    calls = unknown = 0
    named = np.array([_REGION.fullmatch(name) is not None for name in trace.names], bool)
    kind = trace.roles.kind
    mask = named[trace.name_codes] & ((kind == OPERATOR) | (kind == ANNOTATION)) if len(named) else kind < 0
    for track, thread in threads.items():
        spans = Spans.of(trace, on_thread(trace, track, mask))
        keys = [_key(trace, row) for row in spans.rows.tolist()]
        calls += len(keys)
        unknown += sum(key not in provenance.graphs for key in keys)
        regions = _Regions(trace, track, thread, spans, [provenance.graphs.get(key, []) for key in keys])
        given[track] = thread
        if any(regions.graphs):
            given[track] = regions.on_host(owners)
            regions.on_gpu(launch, gpu, owners)
    return Compiled(given, gpu, calls, unknown)


def _key(trace: Trace, row: int) -> str:
    shape = _REGION.fullmatch(trace.names[int(trace.name_codes[row])])
    return shape[1] if shape else ""


@dataclass(frozen=True)
class _Regions:
    """The calls of compiled graphs on one thread, and the kernels of each."""

    trace: Trace
    track: int
    thread: Thread
    spans: Spans
    graphs: list[list[_Kernel]]

    def on_host(self, owners: Owners) -> Thread:
        """The thread with the operators that each region calls itself given to their lines."""
        calls, region = self._calls()
        owner = self._owners(calls.rows, region, owners)
        given = owner >= 0
        return self.thread.overlaid(calls.chosen(given), owner[given])

    def on_gpu(self, launch: Ints, gpu: Ints, owners: Owners) -> None:
        """The kernels that were launched inside a region, in order of their launches."""
        trace = self.trace
        rows = np.flatnonzero((launch >= 0) & trace.roles.gpu)
        rows = rows[trace.track[launch[rows]] == self.track]
        rows = rows[np.lexsort((trace.ts_ns[rows], trace.ts_ns[launch[rows]]))]
        region = self.spans.innermost.at(trace.ts_ns[launch[rows]])
        gpu[rows[region >= 0]] = self._owners(rows[region >= 0], region[region >= 0], owners)

    def _calls(self) -> tuple[Spans, Ints]:
        """The operators right inside a region, and which region that is."""
        trace, roles = self.trace, self.trace.roles
        operators = Spans.of(trace, on_thread(trace, self.track, (roles.kind == OPERATOR) & ~roles.annotation))
        is_region = np.isin(operators.rows, self.spans.rows)
        region = np.where(is_region, -1, self.spans.innermost.at(operators.starts))
        parent = operators.parent
        within = (parent >= 0) & ~is_region[parent]
        direct = (region >= 0) & ~(within & (operators.starts[parent] >= self.spans.starts[np.maximum(region, 0)]))
        return operators.chosen(direct), region[direct]

    def _owners(self, rows: Ints, region: Ints, owners: Owners) -> Ints:
        """The owner of each call, −1 where it keeps that of its region."""
        trace, owner = self.trace, np.full(len(rows), -1, np.int64)
        for number in np.unique(region).tolist():
            at = np.flatnonzero(region == number)
            names = [trace.names[code] for code in trace.name_codes[rows[at]].tolist()]
            own = self.thread.owners.at(self.spans.starts[number : number + 1])
            for position, group in zip(at.tolist(), _in_order(names, self.graphs[number]), strict=True):
                if group is not None:
                    owner[position] = owners.of_group(own, owners.group(group))[0]
        return owner


def _in_order(names: list[str], kernels: list[_Kernel]) -> list[Group | None]:
    """The lines of each call of a region: a generated kernel by its name, an extern call by the order of them.

    A call that no kernel stands for goes with the one before it; what has no lines keeps the region's.
    """
    generated: dict[str, list[_Kernel]] = defaultdict(list)
    for kernel in kernels:
        if not kernel.extern:
            generated[kernel.name].append(kernel)
    extern = [kernel for kernel in kernels if kernel.extern]
    seen: dict[str, int] = defaultdict(int)
    at, before, lines = 0, None, []
    for name in (_PREFIX.sub("", name) for name in names):
        if name in generated:
            before = generated[name][seen[name] % len(generated[name])].lines or None
            seen[name] += 1
        elif at < len(extern) and _calls(name, extern[at].extern):
            before = extern[at].lines or None
            at += 1
        lines.append(before)
    return lines


def _calls(name: str, extern: str) -> bool:
    """`aten::addmm` is what `extern_kernels.addmm` calls."""
    return name.partition("::")[2].rstrip("_") == extern.removesuffix("_out").removesuffix("_default")
