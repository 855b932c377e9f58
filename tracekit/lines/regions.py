"""Where do compiled graphs run, and which graph is it?

Traces of torch 2.9 and later name the graph; earlier ones name the compilation that made it.
"""

import re
from collections.abc import Collection

import numpy as np
from msgspec import Struct

from tracekit.base.intervals import Bools, Ints
from tracekit.lines.graph_calls import name_of
from tracekit.lines.spans import Spans, on_thread
from tracekit.trace import Trace
from tracekit.trace.roles import OPERATOR, USER
from tracekit.trace.schema import values
from tracekit.vocabulary.lines_file import GRAPH_CALL

_REGION = re.compile(r"Torch-Compiled Region: (\d+/\d+)")
_FORWARD, _BACKWARD = re.compile("CompiledFunction"), re.compile("CompiledFunctionBackward")


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
    return {track: _known(regions, graphs) for track, regions in _of_compilations(trace, compiled).items()}


def nameless_regions(trace: Trace) -> Spans:
    """What torch.compile runs on the main thread if no compiled graph has a name: the backend is not Inductor."""
    if any(GRAPH_CALL.fullmatch(name) for name in trace.names):
        return Spans.of(trace, np.zeros(0, np.int64))
    return _named(trace, trace.threads.main, _REGION).spans


def _known(calls: Regions, graphs: Collection[str]) -> Regions:
    is_known = np.array([name in graphs for name in calls.names], bool)
    return Regions(calls.spans.chosen(is_known), [name for name in calls.names if name in graphs])


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
