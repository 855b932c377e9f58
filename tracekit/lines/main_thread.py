"""Who owns each moment of the main thread in a recording with stacks?"""

import re
from dataclasses import dataclass

import numpy as np

from tracekit.intervals import Ints, StepFunction, occurring
from tracekit.lines.owners import BACKWARD, DATA, EVAL, FORWARD, OPTIMIZER, OTHER, Line, Owners
from tracekit.lines.running_line import Calls, running_lines
from tracekit.lines.spans import Spans, compressed, merged, on_thread
from tracekit.lines.user_code import Frames, extended, module_of, stage_of
from tracekit.lines_file import LinesFile
from tracekit.topmost import topmost
from tracekit.trace import Trace
from tracekit.trace.columns import values
from tracekit.trace.roles import BACKWARD_FRAME, DATALOAD, OPERATOR, PYTHON

_OPTIMIZER = re.compile(r"Optimizer\..*", re.DOTALL)


@dataclass(frozen=True)
class Recording:
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
    columns = [
        _groups(recording, spans, kinds, users, owners),
        _libraries(spans, kinds, users),
        _modules(spans, kinds, owners),
        _phases(trace, spans, kinds),
    ]
    edges, (group, library, module, phase) = merged(columns)
    if not len(edges):
        return StepFunction(edges, np.zeros(0, np.int64), 0)
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
        self.line = self._spread([at if frame.line else -1 for at, frame in enumerate(frames)])
        self.library = self._spread([owners.library(frame.library) if frame.library else -1 for frame in frames])
        self.stages = [stage_of(name) for name in names]
        self.is_stage = self._spread([stage is not None for stage in self.stages]).astype(bool)
        self.is_module = self._spread([label is not None for label in self.labels]).astype(bool)
        self.backward = self._spread([BACKWARD_FRAME.fullmatch(name) is not None for name in names]).astype(bool)

    def _spread(self, by_name: list[int] | list[bool]) -> Ints:
        table = np.array(by_name, np.int64)
        spread: Ints = table[self.name] if len(table) else np.zeros(0, np.int64)
        return spread


def _groups(recording: Recording, spans: Spans, kinds: _Kinds, users: Spans, owners: Owners) -> StepFunction:
    """The line of the innermost frame of the user's."""
    which = kinds.line[kinds.line >= 0]
    calls = _calls(recording, spans, kinds, users)
    edges, frame, line = running_lines(recording, spans, users, lambda frame: kinds.lines[int(which[frame])], calls)
    defined = np.array([each.line if each else 0 for each in kinds.lines], np.int64)
    line = np.where(line > 0, line, defined[which[frame]] if len(which) else 0)
    width = int(line.max(initial=0)) + 1
    keys, index = occurring((which[frame] * width + line) if len(which) else line)
    named = [divmod(key, width) for key in keys.tolist()] if len(which) else []
    numbers = np.array([owners.group((_at(kinds.lines[name], number),)) for name, number in named], np.int64)
    value = np.where(frame >= 0, numbers[index], 0) if len(numbers) else np.zeros(len(frame), np.int64)
    return StepFunction(edges, value, 0)


def _at(function: Line | None, line: int) -> Line:
    assert function is not None
    return function._replace(line=line)


def _calls(recording: Recording, spans: Spans, kinds: _Kinds, users: Spans) -> Calls:
    """The calls in the lines file, each with the frame that made it; none without a lines file."""
    lines, nothing = recording.lines, np.zeros(0, np.int64)
    if lines is None or not lines.call_start_ns:
        return Calls(nothing, nothing, nothing)
    base = recording.trace.base_ns
    start, line = np.array(lines.call_start_ns, np.int64) - base, np.array(lines.call_line, np.int64)
    nearest = np.minimum(np.searchsorted(spans.starts, start), max(len(spans) - 1, 0))
    known = spans.starts[nearest] == start if len(spans) else np.zeros(len(start), bool)  # on the main thread
    start, line = start[known], line[known]
    frame = users.innermost.at(start)
    called = np.minimum(np.searchsorted(users.starts, start), max(len(users) - 1, 0))
    begins = (users.starts[called] == start) if len(users) else np.zeros(len(start), bool)
    frame = np.where(begins, users.parent[called] if len(users) else -1, frame)
    inside = frame >= 0
    return Calls(start[inside], frame[inside], line[inside])


def _libraries(spans: Spans, kinds: _Kinds, users: Spans) -> StepFunction:
    """The innermost frame of a library, where it is inside the user's innermost, or where none of the user's runs."""
    mask = kinds.library >= 0
    of_libraries = spans.chosen(mask)
    names = kinds.library[mask]
    edges, (library, frame) = merged([of_libraries.innermost, users.innermost])
    if not len(of_libraries):
        return StepFunction(edges, np.zeros(max(len(edges) - 1, 0), np.int64), 0)
    begun = users.starts[frame] if len(users) else np.zeros(len(frame), np.int64)
    inside = (library >= 0) & ((frame < 0) | (of_libraries.starts[library] >= begun))
    return StepFunction(edges, np.where(inside, names[library], 0), 0)


def _modules(spans: Spans, kinds: _Kinds, owners: Owners) -> StepFunction:
    """The chain of modules around each moment, and in it the stages of message passing."""
    layers = spans.chosen(kinds.is_module | kinds.is_stage)
    names = [kinds.labels[at] or kinds.stages[at] for at in kinds.name[kinds.is_module | kinds.is_stage].tolist()]
    chains: list[tuple[str, ...]] = []
    for name, parent in zip(names, layers.parent.tolist(), strict=True):
        chains.append(extended(chains[parent] if parent >= 0 else (), str(name)))
    numbers = np.array([0, *map(owners.module, chains)], np.int64)  # the first for −1 … by counting from the end
    inner = layers.innermost
    return StepFunction(inner.edges, numbers[np.asarray(inner.values, np.int64) + 1], 0)


def _phases(trace: Trace, spans: Spans, kinds: _Kinds) -> StepFunction:
    """The phase of each moment: the last of the rules that applies."""
    main, roles = trace.threads.main, trace.roles
    modules = spans.chosen(kinds.is_module)
    outermost = modules.chosen(modules.depth == 0)
    evaluating = outermost.chosen(~_trains(trace, outermost))
    layers = [
        (FORWARD, outermost),
        (EVAL, evaluating),
        (BACKWARD, spans.chosen(kinds.backward)),
        (OPTIMIZER, Spans.of(trace, on_thread(trace, main, roles.annotation & roles.named(_OPTIMIZER)))),
        (DATA, Spans.of(trace, on_thread(trace, main, roles.annotation & roles.named(DATALOAD)))),
    ]
    edges, columns = merged([topmost(each.starts, each.ends) for _, each in layers])
    phase = np.full(max(len(edges) - 1, 0), OTHER, np.int64)
    for (code, _), column in zip(layers, columns, strict=True):
        phase[column >= 0] = code
    return StepFunction(edges, phase, OTHER)


def _trains(trace: Trace, modules: Spans) -> np.ndarray:
    """Which of these calls hold an operator that autograd numbered."""
    numbered = values(trace.events["sequence"], -1) >= 0
    starts = np.sort(trace.ts_ns[on_thread(trace, trace.threads.main, numbered & (trace.roles.kind == OPERATOR))])
    return np.searchsorted(starts, modules.ends) > np.searchsorted(starts, modules.starts)
