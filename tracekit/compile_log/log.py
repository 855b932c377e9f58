"""What the compiler logged, record by record: compilations, failing guards, graph breaks with stacks, unix ns.

Inductor records from which lines of the user's a compiled kernel comes, if it is asked to before it starts.
Otherwise, which is the case before torch 2.9 and where a backward graph is compiled late, the lines are known
less precisely: comments in the generated code name the nodes that a call was made of, and the lowered graphs
give the line of each node.

Dynamo's stack of a break ends with the caller of the compiled function and continues in the functions that were
inlined: if Dynamo was inlining a module, the function itself is missing. But what runs after the break is
compiled again below that function, and the stack of that compilation has its line.
"""

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from tracekit.vocabulary.code_owner import plain_function
from tracekit.vocabulary.event_names import COMPILE_SPANS
from tracekit.vocabulary.lines_file import Graph

_SKIP = re.compile(r"skipping cudagraphs? due to (.*)", re.S)
_LIMIT = re.compile(r"hit config\.(\w+) \((\d+)\)\s+function: '(.+?)' \((.+):(\d{1,9})\)\s+last reason: (.*)", re.S)
# Records with the metrics of a compilation.
_METRICS_OF_BACKWARD = ("bwd_compilation_metrics", "aot_autograd_backward_compilation_metrics")
_METRICS = ("compilation_metrics", "comp_metrics", *_METRICS_OF_BACKWARD)
# Of these, what is used; times in the unit of their name, or else in s.
_TEXTS = ("compile_id", "cudagraph_skip_reason", "co_filename", "co_name", "fail_type", "fail_reason")
_NUMBERS = (
    *("start_time", "start_time_us", "end_time_us", "duration_us", "entire_frame_compile_time_s", "graph_op_count"),
    *("backend_compile_time_s", "aot_autograd_cumulative_compile_time_us", "inductor_compile_time_s"),
    *("inductor_cumulative_compile_time_us", "guard_latency_us", "co_firstlineno"),
)
_LARGEST_NUMBER = 1 << 52  # µs: a hundred and forty years
_HALF = re.compile(r"\\u[dD][89a-fA-F]")  # perhaps of a surrogate pair
TRACEBACK = "User code traceback:\n"
_RAISED = "\nTraceback (most recent call last)"
_ENTRY = re.compile(r'^(?= *File ")', re.MULTILINE)
_FRAME = re.compile(r' *File "(.+)", line (\d{1,9}), in (.+)')
_STACKS = "inductor_provenance_tracking_kernel_stack_traces"
_CACHE = "fx_graph_cache_"  # …hit, …miss: the record that ends a graph, and has its key
_TRACED = "dynamo_output_graph"  # of a compilation; forward and backward are made of it
_LOWERED, _CODE = "inductor_post_grad_graph", "inductor_output_code"  # of a graph
_FILE = re.compile(r"\s*# File: (.+):(\d+) in (\S+), code:")
_NO_FILE = re.compile(r"\s*# No stacktrace found")
_NODE = re.compile(r"\s*(\w+)(?:: \"[^\"]*\")? = (?:torch\.ops\.(\w+\.\w+))?")
_OPERATOR = re.compile(r"(?:torch\.ops\.)?(\w+\.\w+)")
_SOURCES = re.compile(r"\s*# (?:Topologically Sorted |Unsorted )?Source Nodes: \[(.*?)\]")
_FRAGMENT = re.compile(r"# +%(\w+) : \[num_users=")
_KERNEL = re.compile(r"(\w+) = async_compile\.\w+\(")
_CALL = re.compile(r"\s+(?:\w+ = )?((?:extern_kernels|aten|torch\.ops)\.[\w.]+|(?:triton|cpp)_\w+)(?:\.run)?\(")
_BODY = re.compile(r"\s*def call\(")
_BACKWARD = re.compile(r"# AOT ID: \['\d+_backward'\]", re.MULTILINE)


class Span(Struct):
    """One span of the compiler's log, unix ns."""

    name: str
    id: str
    thread: int
    start_ns: int
    end_ns: int = 0
    children_ns: int = 0
    phases: dict[str, int] = field(default_factory=lambda: defaultdict(int))  # own time by name


class CompileLog:
    """The parts of torch's structured log that are used here; it takes records from any source."""

    def __init__(self) -> None:
        self.compiled: list[Span] = []
        self.reasons: dict[str, list[str]] = {}
        self.breaks: list[LogEntry] = []
        self.limits: list[LimitHit] = []
        self.skips: list[LogEntry] = []
        self.metrics: dict[str, dict[str, Any]] = {}
        self.measured: list[tuple[str, str, int, dict[str, Any]]] = []  # kind, id, thread and metrics of compilations
        self.with_graph: set[str] = set()  # compilations that had a graph to compile
        self.provenance = Provenance()
        self._break_stacks = BreakStacks(self.breaks)
        self._open: dict[int, list[Span]] = defaultdict(list)

    def take(self, metadata: dict[str, Any], payload: Any, t_ns: int, thread: int) -> None:
        """Process one record of the structured log, given its thread and its time in unix ns."""
        compile_id = f"{metadata.get('frame_id')}/{metadata.get('frame_compile_id')}"
        artifact = (metadata.get("artifact") or {}).get("name")
        self.provenance.take(metadata, payload, compile_id, thread)
        self._break_stacks.take(metadata, compile_id)
        if "chromium_event" in metadata:
            event = from_json(payload) if isinstance(payload, str) else payload
            event_ns, spans = round(event["ts"] * 1000), self._open[thread]
            if event["ph"] == "B":
                # torch 2.6 has the id beside the event only.
                spans.append(Span(event["name"], str(event["args"].get("compile_id") or compile_id), thread, event_ns))
            elif event["ph"] == "E" and any(span.name == event["name"] for span in spans):
                while spans[-1].name != event["name"]:  # an exception ended these without a record
                    spans.pop()
                root = next((span for span in spans if span.name in COMPILE_SPANS), None)  # one compilation
                span = spans.pop()
                span.end_ns = event_ns
                if spans:
                    spans[-1].children_ns += event_ns - span.start_ns
                if root is not None:
                    root.phases[span.name] += event_ns - span.start_ns - span.children_ns
                if span is root:
                    self.compiled.append(span)
        elif "dynamo_output_graph" in metadata:
            self.with_graph.add(compile_id)
        elif artifact == "recompile_reasons":
            self.reasons[compile_id] = [*map(str, from_json(payload))] if payload.startswith("[") else [payload]
        elif artifact == "dynamo_graph_break_reason":
            self.breaks.append(LogEntry(compile_id, t_ns, str(payload)))
            self._break_stacks.broke()
        elif (kind := next((key for key in _METRICS if key in metadata), None)) is not None:
            metrics = _known(metadata[kind] or (from_json(payload) if isinstance(payload, str) else {}))
            compile_id = str(metrics.get("compile_id") or compile_id)
            self.measured.append((kind, compile_id, thread, metrics))
            if kind in _METRICS_OF_BACKWARD:
                return
            if skipped := metrics.get("cudagraph_skip_reason"):
                self._take_skip(compile_id, t_ns, skipped)
            self.metrics[compile_id] = metrics

    def compilations(self) -> list[Span]:
        """What was compiled: by the compiler's spans or, before torch 2.5, which records none, by its metrics."""
        return self.compiled or [_measured_span(*measured) for measured in self.measured]

    def take_warning(self, text: str, t_ns: int, thread: int) -> None:
        """Process one warning of Dynamo's or Inductor's."""
        spans = self._open[thread]
        compile_id = spans[0].id if spans else "None/None"
        if limit := _LIMIT.search(text):
            setting, _, name, file, line, rest = limit.groups()
            reason = rest.partition("\nTo log all")[0].strip()
            self.limits.append(LimitHit(compile_id, t_ns, setting, name, file, int(line), reason))
        elif _SKIP.search(text):
            self._take_skip(compile_id, t_ns, text)

    def _take_skip(self, compile_id: str, t_ns: int, text: str) -> None:
        """Process a skipped CUDA graph, which is reported in a warning, and again in the metrics of the compilation."""
        match = _SKIP.search(text)
        reason = (match[1] if match else text).strip()
        if all((skip.id, skip.text) != (compile_id, reason) for skip in self.skips):
            self.skips.append(LogEntry(compile_id, t_ns, reason))


def _known(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """The metrics that are used, as far as they are what their names say."""
    numbers = ((name, metrics.get(name)) for name in _NUMBERS)
    return {
        **{name: str(text) for name in _TEXTS if (text := metrics.get(name)) is not None},
        **{
            name: number
            for name, number in numbers
            if isinstance(number, int | float) and 0 <= number < _LARGEST_NUMBER  # which no NaN is
        },
    }


def _measured_span(kind: str, compile_id: str, thread: int, metrics: Mapping[str, Any]) -> Span:
    """The span of a compilation of which there are only metrics: as long as they say, of parts that they name."""
    name = "entire_backward_compile" if kind in _METRICS_OF_BACKWARD else "dynamo"

    def ns(*fields: tuple[str, float]) -> int:
        """The first of these that is a number, given in units of so many ns."""
        values = ((metrics.get(field), unit) for field, unit in fields)
        return next((round(value * unit) for value, unit in values if isinstance(value, int | float)), 0)

    start = ns(("start_time_us", 1e3), ("start_time", 1e9))
    end = ns(("end_time_us", 1e3)) or start + ns(("duration_us", 1e3), ("entire_frame_compile_time_s", 1e9))
    span = Span(name, compile_id, thread, start, max(end, start))
    inner_ns = ns(("backend_compile_time_s", 1e9), ("aot_autograd_cumulative_compile_time_us", 1e3))
    innermost = ns(("inductor_compile_time_s", 1e9), ("inductor_cumulative_compile_time_us", 1e3))
    inner_ns = min(max(inner_ns, innermost), span.end_ns - start)
    span.phases |= {
        "backend_compile": inner_ns - min(innermost, inner_ns),
        "inductor_compile": min(innermost, inner_ns),
    }
    span.phases[name] = span.end_ns - start - inner_ns
    return span


class LogEntry(Struct, frozen=True):
    """A message of the compiler, and the compilation that it is about."""

    id: str
    t_ns: int
    text: str


class LimitHit(Struct, frozen=True):
    """Dynamo's warning that it no longer compiles a function."""

    id: str
    t_ns: int
    setting: str
    name: str
    file: str
    line: int
    reason: str


class _Frame(NamedTuple):
    file: str
    line: int
    function: str
    source: str = ""

    @property
    def location(self) -> tuple[str, int, str]:
        return self.file, self.line, plain_function(self.function)

    @property
    def code(self) -> tuple[str, str]:
        return self.file, plain_function(self.function)


class BreakStacks:
    """Completes the stacks of graph breaks, once a later compilation shows the line."""

    def __init__(self, breaks: list[LogEntry]) -> None:
        self._breaks = breaks
        self._files: dict[int, str] = {}
        self._stacks: dict[str, list[_Frame]] = {}  # for each compilation, with the function itself innermost
        self._open: list[int] = []  # breaks whose line is not known yet

    def take(self, metadata: dict[str, Any], compile_id: str) -> None:
        """Look at one record of the compiler's log: a name in its table of files, or the start of a compilation."""
        if "str" in metadata:
            file, number = metadata["str"]
            self._files[number] = file
        elif "dynamo_start" in metadata:
            frames = [
                _Frame(self._files.get(record["filename"], ""), record["line"], record["name"], record.get("loc") or "")
                for record in metadata["dynamo_start"].get("stack") or ()
            ]
            # Functions with breaks may be among the callers of the one that is about to be compiled.
            for index in [*self._open]:
                entry = self._breaks[index]
                stack = self._stacks.get(entry.id)
                callers = (frame for frame in frames[-2::-1] if stack and frame.code == stack[-1].code)
                line = next(callers, None)
                if stack and line is not None and line.file:
                    self._breaks[index] = replace(entry, text=_with_frame(entry.text, stack[:-1], line))
                    self._open.remove(index)
            self._stacks[compile_id] = frames

    def broke(self) -> None:
        """Note that the latest break was just recorded."""
        self._open.append(len(self._breaks) - 1)


def _with_frame(text: str, callers: list[_Frame], frame: _Frame) -> str:
    """A break's text with that frame inserted below the function's callers, unless it is already there."""
    head, mark, rest = text.partition(TRACEBACK)
    stack, raised, error = rest.partition(_RAISED)
    entries = _ENTRY.split(stack)
    frames = [_Frame(shape[1], int(shape[2]), shape[3]) if shape else None for shape in map(_FRAME.match, entries)]
    outer = {caller.location for caller in callers}
    position = 1 + max(
        (index for index, parsed in enumerate(frames) if parsed and parsed.location in outer), default=-1
    )
    if any(parsed and parsed.code == frame.code for parsed in frames[position:]):
        return text
    frame_text = f'  File "{frame.file}", line {frame.line}, in {plain_function(frame.function)}\n    {frame.source}\n'
    return head + mark + "".join([*entries[:position], frame_text, *entries[position:]]) + raised + error


class Provenance:
    """Joins a graph's stacks, or its code, with its key; the records of a thread come in this order."""

    def __init__(self) -> None:
        self.graphs: list[Graph] = []
        self._traced: dict[str, str] = {}  # by compile id
        self._said: dict[int, dict[str, str]] = defaultdict(dict)  # of the graph under way on a thread

    def take(self, metadata: dict[str, Any], payload: Any, compile_id: str, thread: int) -> None:
        """Look at one record of the compiler's log."""
        if not isinstance(payload, str):
            return
        artifact = str((metadata.get("artifact") or {}).get("name"))
        if _TRACED in metadata:
            self._traced[compile_id] = payload
        for kind in (_LOWERED, _CODE):
            if kind in metadata:
                self._said[thread][kind] = payload
        if artifact == _STACKS:
            self._said[thread][_STACKS] = payload
        elif artifact.startswith(_CACHE):
            key, payloads = from_json(payload).get("key"), self._said.pop(thread, {})
            if not isinstance(key, str):
                return
            code, stacks = payloads.get(_CODE, ""), from_json(payloads.get(_STACKS, "{}"))
            kernels = [*stacks.items()]
            if not stacks:
                sources = nodes_of(self._traced.get(compile_id, ""))
                kernels = calls(code, sources, nodes_of(payloads.get(_LOWERED, "")))
            if kernels:
                backward = _BACKWARD.search(code) is not None
                self.graphs.append(Graph(key, compile_id, kernels, backward, by_code=not stacks))


class Node(NamedTuple):
    """A node of a graph."""

    frame: str  # its line, as Python prints a frame of a stack
    operator: str  # `aten.mm`; empty where it calls something else


def nodes_of(graph: str) -> dict[str, Node]:
    """The nodes of a printed graph that have a line, by name."""
    nodes: dict[str, Node] = {}
    frame = ""
    for line in graph.splitlines():
        if file := _FILE.match(line):
            frame = f'File "{file[1]}", line {file[2]}, in {file[3]}'
        elif _NO_FILE.match(line):
            frame = ""
        elif frame and (node := _NODE.match(line)):
            nodes[node[1]] = Node(frame, node[2] or "")
    return nodes


def calls(code: str, sources: Mapping[str, Node], nodes: Mapping[str, Node]) -> list[tuple[str, list[str]]]:
    """What generated code calls, in order: "name:position", and the frames of the work behind it.

    `sources` are the nodes that Dynamo traced, `nodes` those of the graph that was lowered. Comments name the nodes of
    a Triton kernel and the sources of an operator. Without such a comment, an operator may come from any line that
    calls it, and a kernel for the CPU from any line of the graph.
    """
    kernels: dict[str, list[str]] = {}  # the frames of those whose nodes are named
    fragment: list[str] = []
    for line in code.splitlines():
        if node := _FRAGMENT.match(line):
            fragment.append(node[1])
        elif not line.startswith("#"):
            if kernel := _KERNEL.match(line):
                kernels[kernel[1]] = _frames(fragment, nodes)
            fragment = []
    called: list[tuple[str, list[str]]] = []
    in_body, commented = False, list[str]()  # what the comment before a call names
    for line in code.splitlines():
        in_body = bool(_BODY.match(line)) or (in_body and (not line or line[0].isspace()))
        if in_body and (comment := _SOURCES.match(line)):
            commented = comment[1].split(", ")
        elif in_body and (call := _CALL.match(line)):
            frames = kernels.get(call[1]) or _frames(commented, sources) or _anywhere(call[1], nodes)
            called.append((f"{call[1]}:{len(called)}", frames))
            commented = []
    return called


def _frames(names: list[str], nodes: Mapping[str, Node]) -> list[str]:
    return [*dict.fromkeys(nodes[name].frame for name in names if name in nodes)]


def _anywhere(name: str, nodes: Mapping[str, Node]) -> list[str]:
    if name.startswith("cpp_"):
        return [*dict.fromkeys(node.frame for node in nodes.values())]
    operator = _OPERATOR.match(name.replace("extern_kernels.", "aten."))
    return [*dict.fromkeys(node.frame for node in nodes.values() if operator and node.operator == operator[1])]


def from_json(text: str) -> Any:
    """The value, in whose texts halves of surrogate pairs, which no file can hold, are replaced. Raises ValueError and
    RecursionError."""
    value = json.loads(text)
    if _HALF.search(text) is None:
        return value
    written = json.dumps(value, ensure_ascii=False)
    return json.loads(written.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
