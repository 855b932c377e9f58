"""Who owns each moment of the main thread in a recording with stacks, and on which line is each frame of the user's
then?

Where a frame makes no call, the capture may have looked at it. Such a sample tells what ran since the one before it, as
far as no call and no operator lies between them; the last one before a call or an operator tells what ran until then.
If what it saw is a loop, its lines share that time.
"""

import re
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from itertools import chain
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from tracekit.base.intervals import NO_INTS, Bools, Ints, StepFunction, distinct, occurring, topmost
from tracekit.lines.evaluations import SAVE, call_of, evaluations
from tracekit.lines.frames import Frames, extended, module_of, stage_of
from tracekit.lines.owners import BACKWARD, BUILDING, DATA, EVAL, FORWARD, OPTIMIZER, OTHER, SAVING, Owners, SourceLine
from tracekit.lines.spans import Spans, compressed, merged, on_thread
from tracekit.trace import Trace
from tracekit.trace.roles import BACKWARD_FRAME, DATALOAD, OPERATOR, PYTHON
from tracekit.trace.schema import values
from tracekit.vocabulary.code_owner import plain_function, profiled
from tracekit.vocabulary.graph_building import graph_builder
from tracekit.vocabulary.lines_file import Code, LinesFile

_OPTIMIZER = re.compile(r"Optimizer\..*", re.DOTALL)
_KINDS = {
    **dict.fromkeys(("add",), ("+", "+=")),
    **dict.fromkeys(("sub", "rsub"), ("-", "-=")),
    **dict.fromkeys(("mul",), ("*", "*=")),
    **dict.fromkeys(("div", "true_divide", "reciprocal"), ("/", "/=")),
    **dict.fromkeys(("floor_divide",), ("//", "//=")),
    **dict.fromkeys(("remainder", "fmod"), ("%", "%=")),
    **dict.fromkeys(("matmul", "mm", "bmm", "mv", "dot"), ("@", "@=")),
    **dict.fromkeys(("pow", "float_power"), ("**", "**=")),
    **dict.fromkeys(("bitwise_and", "__and__", "logical_and"), ("&", "&=")),
    **dict.fromkeys(("bitwise_or", "__or__", "logical_or"), ("|", "|=")),
    **dict.fromkeys(("bitwise_xor", "__xor__", "logical_xor"), ("^", "^=")),
    **dict.fromkeys(("bitwise_left_shift", "__lshift__"), ("<<", "<<=")),
    **dict.fromkeys(("bitwise_right_shift", "__rshift__"), (">>", ">>=")),
    "neg": ("neg",),
    "bitwise_not": ("~",),
    "logical_not": ("~", "bool"),
    **{
        name: (sign,)
        for name, sign in (("lt", "<"), ("gt", ">"), ("le", "<="), ("ge", ">="), ("eq", "=="), ("ne", "!="))
    },
    **dict.fromkeys(("is_nonzero",), ("bool",)),
    **dict.fromkeys(("item", "_local_scalar_dense"), ("bool", "format", "[]", "[]=", "+", "-", "*", "/", "<", ">")),
    **dict.fromkeys(("select", "slice", "index", "unsqueeze", "alias", "gather", "nonzero"), ("[]", "[]=")),
    **dict.fromkeys(("copy", "fill", "index_put", "masked_fill", "zero"), ("[]=",)),
    **dict.fromkeys(("unbind",), ("iter",)),
    **dict.fromkeys(("numpy_T", "t", "transpose", "permute", "mT", "real", "imag", "detach"), ("attr",)),
}
_REVERSED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}  # `1 < x` runs `x > 1`


class Recording(Struct, frozen=True):
    """A trace with stacks, its lines file if it has one, and how to classify frames."""

    trace: Trace
    lines: LinesFile | None
    frames: Frames


def main_thread_owners(recording: Recording, owners: Owners) -> StepFunction:
    """The owner of each moment of the main thread."""
    trace, main = recording.trace, recording.trace.threads.main
    spans = Spans.of(trace, on_thread(trace, main, trace.roles.kind == PYTHON))
    kinds = _Kinds(recording, spans, owners)
    users = spans.chosen(kinds.line >= 0)
    # The chain of modules around each moment, and in it the stages of message passing.
    is_layer = kinds.is_module | kinds.is_stage
    layers = spans.chosen(is_layer)
    names = [kinds.labels[code] or kinds.stages[code] for code in kinds.name[is_layer].tolist()]
    chains: list[tuple[str, ...]] = []
    for name, parent in zip(names, layers.parent.tolist(), strict=True):
        chains.append(extended(chains[parent] if parent >= 0 else (), str(name)))
    numbers = np.array([0, *map(owners.module, chains)], np.int64)  # the first for −1 … by counting from the end
    columns = [
        _groups(recording, spans, kinds, users, owners),
        _libraries(spans, kinds, users),
        StepFunction(layers.innermost.edges, numbers[np.asarray(layers.innermost.values, np.int64) + 1], 0),
        _phases(trace, spans, kinds),
    ]
    edges, (group, library, module, phase) = merged(columns)
    if not len(edges):
        return StepFunction(edges, NO_INTS, 0)
    return compressed(edges, owners.of_columns(group, library, module, phase))


class _Kinds:
    """What each frame is, by the number of its name; each name is classified once."""

    def __init__(self, recording: Recording, spans: Spans, owners: Owners) -> None:
        trace = recording.trace
        used, self.name = occurring(trace.name_codes[spans.rows])  # of each span: which of these
        names = [trace.names[code] for code in used.tolist()]
        frames = [recording.frames.of(name) for name in names]
        self.lines = [frame.line for frame in frames]
        self.labels = [module_of(name) for name in names]
        self.line = self._spread([index if frame.line else -1 for index, frame in enumerate(frames)])
        self.library = self._spread([owners.library(frame.library) if frame.library else -1 for frame in frames])
        self.stages = [stage_of(name) for name in names]
        self.is_stage = self._spread([stage is not None for stage in self.stages]).astype(bool)
        self.is_module = self._spread([label is not None for label in self.labels]).astype(bool)
        self.call = self._spread([call_of(name) for name in names])
        self.backward = self._spread([BACKWARD_FRAME.fullmatch(name) is not None for name in names]).astype(bool)

    def _spread(self, by_name: list[int] | list[bool]) -> Ints:
        table = np.array(by_name, np.int64)
        spread: Ints = table[self.name] if len(table) else NO_INTS
        return spread


def _groups(recording: Recording, spans: Spans, kinds: _Kinds, users: Spans, owners: Owners) -> StepFunction:
    """The line of the innermost frame of the user's."""
    own_lines = kinds.line[kinds.line >= 0]
    calls = _calls(recording, spans, users)
    edges, frame, line = running_lines(recording, spans, users, lambda frame: kinds.lines[int(own_lines[frame])], calls)
    defined = np.array([line.line if line else 0 for line in kinds.lines], np.int64)
    line = np.where(line > 0, line, defined[own_lines[frame]])
    width = int(line.max(initial=0)) + 1
    keys, index = occurring(own_lines[frame] * width + line)
    numbers = []
    for name, number in (divmod(key, width) for key in keys.tolist()):
        function = kinds.lines[name]
        assert function is not None
        numbers.append(owners.group((function._replace(line=number),)))
    return StepFunction(edges, np.where(frame >= 0, np.array(numbers, np.int64)[index], 0), 0)


class Marks(NamedTuple):
    """Moments at which a frame of the user's comes to a line."""

    start: Ints
    frame: Ints  # index into the user's frames
    line: Ints

    @staticmethod
    def of(rows: list[tuple[int, int, int]]) -> "Marks":
        """Marks from a row for each."""
        return Marks(*np.array(rows, np.int64).reshape(-1, 3).T)


def _calls(recording: Recording, spans: Spans, users: Spans) -> Marks:
    """The calls in the lines file in order of time, each with the frame that made it; none without a lines file."""
    lines = recording.lines
    if lines is None or not lines.call_start_ns:
        return Marks.of([])
    base = recording.trace.base_ns
    start, line = np.array(lines.call_start_ns, np.int64) - base, np.array(lines.call_line, np.int64)
    nearest = np.minimum(np.searchsorted(spans.starts, start), max(len(spans) - 1, 0))
    is_on_main = spans.starts[nearest] == start if len(spans) else np.zeros(len(start), bool)  # on the main thread
    start, line = start[is_on_main], line[is_on_main]
    frame = users.innermost.at(start)
    called = np.minimum(np.searchsorted(users.starts, start), max(len(users) - 1, 0))
    begins = (users.starts[called] == start) if len(users) else np.zeros(len(start), bool)
    frame = np.where(begins, users.parent[called] if len(users) else -1, frame)
    in_frame = frame >= 0
    return Marks(start[in_frame], frame[in_frame], line[in_frame])


def _libraries(spans: Spans, kinds: _Kinds, users: Spans) -> StepFunction:
    """The innermost frame of a library, where it is inside the user's innermost, or where none of the user's runs."""
    mask = kinds.library >= 0
    of_libraries = spans.chosen(mask)
    names = kinds.library[mask]
    edges, (library, frame) = merged([of_libraries.innermost, users.innermost])
    if not len(of_libraries):
        return StepFunction(edges, np.zeros(max(len(edges) - 1, 0), np.int64), 0)
    begun = users.starts[frame] if len(users) else np.zeros(len(frame), np.int64)
    in_library = (library >= 0) & ((frame < 0) | (of_libraries.starts[library] >= begun))
    return StepFunction(edges, np.where(in_library, names[library], 0), 0)


def _phases(trace: Trace, spans: Spans, kinds: _Kinds) -> StepFunction:
    """The phase of each moment: the last of the rules that applies."""
    main, roles = trace.threads.main, trace.roles
    modules = spans.chosen(kinds.is_module)
    outermost = modules.chosen(modules.depth == 0)
    # A module trains where autograd numbered an operator in it.
    numbered = values(trace.events["sequence"], -1) >= 0
    starts = np.sort(trace.ts_ns[on_thread(trace, main, numbered & (roles.kind == OPERATOR))])
    trains = np.searchsorted(starts, outermost.ends) > np.searchsorted(starts, outermost.starts)
    backward = spans.chosen(kinds.backward)
    evaluating, training = outermost.chosen(~trains), outermost.chosen(trains)
    optimizer = Spans.of(trace, on_thread(trace, main, roles.annotation & roles.named(_OPTIMIZER)))
    loading = Spans.of(trace, on_thread(trace, main, roles.annotation & roles.named(DATALOAD)))
    builds = np.array([graph_builder(name) is not None for name in trace.names], bool)
    building = Spans.of(trace, on_thread(trace, main, roles.host & builds[trace.name_codes]))
    layers: list[tuple[int, tuple[Ints, Ints]]] = [
        (FORWARD, outermost.bounds),
        (EVAL, evaluating.bounds),
        (EVAL, evaluations(spans, kinds.call, evaluating, training, backward)),
        (BACKWARD, backward.bounds),
        (OPTIMIZER, optimizer.bounds),
        (DATA, loading.bounds),
        (BUILDING, building.bounds),
        (SAVING, spans.chosen(kinds.call == SAVE).bounds),
    ]
    edges, columns = merged([topmost(*each) for _, each in layers])
    phase = np.full(max(len(edges) - 1, 0), OTHER, np.int64)
    for (code, _), column in zip(layers, columns, strict=True):
        phase[column >= 0] = code
    return StepFunction(edges, phase, OTHER)


def running_lines(
    recording: Recording, spans: Spans, users: Spans, function_of: Callable[[int], SourceLine | None], calls: Marks
) -> tuple[Ints, Ints, Ints]:
    """Edges, and for each stretch the innermost frame of the user's (−1: none) and its line (0: not known yet)."""
    if not len(users):
        nothing = NO_INTS
        return nothing, nothing, nothing
    computed = _computed(recording, spans, users, function_of, calls)
    looked_up = sampled_lines(recording, spans, users, function_of)
    start, frame, line = (np.concatenate(columns) for columns in zip(calls, computed, looked_up, strict=True))
    edges = distinct(np.concatenate((users.innermost.edges, start)))
    points = edges[:-1]
    running = users.innermost.at(points)
    low, width = int(edges[0]), int(edges[-1] - edges[0]) + 1
    order = np.argsort(frame * width + (start - low), kind="stable")
    keys = (frame * width + (start - low))[order]
    position = np.searchsorted(keys, running * width + (points - low), side="right") - 1
    last = order[np.maximum(position, 0)] if len(order) else np.zeros(len(position), np.int64)
    is_running = (
        (position >= 0) & (running >= 0) & (frame[last] == running) if len(order) else np.zeros(len(position), bool)
    )
    return edges, running, np.where(is_running, line[last] if len(order) else 0, 0)


def _computed(
    recording: Recording, spans: Spans, users: Spans, function_of: Callable[[int], SourceLine | None], calls: Marks
) -> Marks:
    """The lines of operators that a frame runs without a call."""
    if recording.lines is None:
        return Marks.of([])
    trace, roles = recording.trace, recording.trace.roles
    codes = {(code.file, code.line, code.function): code for code in recording.lines.code}
    operators = Spans.of(trace, on_thread(trace, trace.threads.main, (roles.kind == OPERATOR) & ~roles.annotation))
    operators = operators.chosen(operators.depth == 0)
    inner = spans.innermost.at(operators.starts)
    frame = users.innermost.at(operators.starts)
    direct = (inner >= 0) & (frame >= 0) & (spans.rows[inner] == users.rows[frame])
    operators, frame = operators.chosen(direct), frame[direct]
    of_frame: dict[int, list[tuple[int, int, str]]] = defaultdict(list)  # start, line of a call or 0, operator
    is_wanted = np.isin(calls.frame, frame)
    for start, frame_number, line in zip(*(column[is_wanted].tolist() for column in calls), strict=True):
        of_frame[frame_number].append((start, line, ""))
    names = (trace.names[code] for code in trace.name_codes[operators.rows].tolist())
    for start, frame_number, name in zip(operators.starts.tolist(), frame.tolist(), names, strict=True):
        of_frame[frame_number].append((start, 0, name))
    marks: list[tuple[int, int, int]] = []
    for frame_number, happened in of_frame.items():
        function = function_of(frame_number)
        code = codes.get((function.file, function.line, function.function)) if function else None
        if code is not None:
            marks += [(start, frame_number, line) for start, line in _walk(code, sorted(happened))]
    return Marks.of(marks)


def _walk(code: Code, happened: list[tuple[int, int, str]]) -> list[tuple[int, int]]:
    """Follow one frame through its bytecode: the line of each operator that is in it."""
    following, next_call = [], 0  # for each entry the line of the first call after it; 0 for none
    for _, line, _ in reversed(happened):
        following.append(next_call)
        next_call = line or next_call
    position_reached, marks = 0, []
    for (start, line, name), call in zip(happened, reversed(following), strict=True):
        if line:
            position_reached = _position_of_call(code, position_reached, line)
        elif (position := _position_of_operator(code, position_reached, call, kinds_of(name))) is not None:
            position_reached = position + 1
            marks.append((start, code.lines[position]))
    return marks


def _position_of_call(code: Code, begin: int, line: int) -> int:
    """The position after the next call on that line, from here or, in a loop, from the start."""
    count = len(code.lines)
    for position in chain(range(begin, count), range(begin)):
        if code.lines[position] == line and code.kinds[position] == "call":
            return position + 1
    on_line = [position for position in range(count) if code.lines[position] == line]
    return on_line[0] if on_line else begin


def _position_of_operator(code: Code, begin: int, call: int, kinds: frozenset[str]) -> int | None:
    """The next instruction of such a kind, no further than the last on the line of the next call."""
    count = len(code.lines)
    end = count
    if call:
        on_line = [position for position in range(count) if code.lines[position] == call]
        end = next((position + 1 for position in reversed(on_line) if position >= begin), 0)
    ahead = range(begin, end) if end else chain(range(begin, count), range(max(on_line, default=-1) + 1))
    return next((position for position in ahead if code.kinds[position] in kinds), None)


@cache
def kinds_of(operator: str) -> frozenset[str]:
    """The instructions that may have run an operator of that name."""
    name = operator.removeprefix("aten::")
    kinds = _KINDS.get(name) or _KINDS.get(name.removesuffix("_")) or ()
    return frozenset([*kinds, *(_REVERSED[kind] for kind in kinds if kind in _REVERSED)])


class Samples(Struct, frozen=True):
    """The samples of Python code between calls, in order, and the stretch without calls that each is in."""

    at: Ints
    place: Ints
    low: Ints
    high: Ints


def samples(trace: Trace, lines: LinesFile | None) -> Samples:
    """Those samples at which the main thread ran Python code: neither an operator nor a function in C."""
    if lines is None or not lines.sample_ns:
        nothing = NO_INTS
        return Samples(nothing, nothing, nothing, nothing)
    roles, main = trace.roles, trace.threads.main
    spans = Spans.of(
        trace, on_thread(trace, main, (roles.kind == PYTHON) | ((roles.kind == OPERATOR) & ~roles.annotation))
    )
    moments, place = np.array(lines.sample_ns, np.int64) - trace.base_ns, np.array(lines.sample_place, np.int64)
    order = np.argsort(moments, kind="stable")
    moments, place = moments[order], place[order]
    inner = spans.innermost.at(moments)
    is_python = np.array([profiled(name) is not None for name in trace.names], bool)
    is_in_user_code: Bools = (
        (inner >= 0) & is_python[trace.name_codes[spans.rows[inner]]] if len(spans) else np.zeros(len(moments), bool)
    )
    moments, place = moments[is_in_user_code], place[is_in_user_code]
    changes = distinct(np.concatenate((spans.starts, spans.ends)))
    after = np.searchsorted(changes, moments, side="right")
    return Samples(moments, place, changes[after - 1], changes[after])


def sampled_lines(
    recording: Recording, spans: Spans, users: Spans, function_of: Callable[[int], SourceLine | None]
) -> Marks:
    """Moments at which a frame comes to another line, as samples show them."""
    seen, lines = samples(recording.trace, recording.lines), recording.lines
    if lines is None or not len(seen.at):
        return Marks.of([])
    frames = users.innermost.at(seen.at)
    is_top = (frames >= 0) & (spans.rows[spans.innermost.at(seen.at)] == users.rows[frames])
    begins = np.maximum(seen.low, np.concatenate(([seen.low[0]], seen.at[:-1])))
    is_last = np.append(seen.low[1:] != seen.low[:-1], True)
    ends = np.where(is_last, seen.high, seen.at)
    callers = [(file, plain_function(function)) for file, function in lines.callers]
    marks: list[tuple[int, int, int]] = []
    for frame, place, begin, end in zip(
        *(column[is_top].tolist() for column in (frames, seen.place, begins, ends)), strict=True
    ):
        function, where = function_of(frame), lines.places[place]
        if function is None or (function.file, function.function) != callers[where.caller]:
            continue  # the clocks differ by more than the frame's first instructions took
        passed, total = 0, sum(where.shares)
        for line, share in zip(where.lines, where.shares, strict=True):
            marks.append((begin + (end - begin) * passed // total, frame, line))
            passed += share
    return Marks.of(marks)
