"""Who owns each moment of the main thread in a recording with stacks?

Where the interpreter marked lines, these are the lines; otherwise each call that a frame of the user's makes shows at
which line it is, until its next call.
"""

import re
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from tracekit.base.intervals import NO_INTS, Ints, StepFunction, distinct, occurring, topmost
from tracekit.lines.evaluations import SAVE, call_of, evaluations
from tracekit.lines.frames import Frames, extended, module_of, stage_of
from tracekit.lines.marked import marked_lines
from tracekit.lines.owners import BACKWARD, BUILDING, DATA, EVAL, FORWARD, OPTIMIZER, OTHER, SAVING, Owners
from tracekit.lines.spans import Spans, compressed, merged, on_thread
from tracekit.trace import Trace
from tracekit.trace.roles import BACKWARD_FRAME, DATALOAD, OPERATOR, PYTHON
from tracekit.trace.schema import values
from tracekit.vocabulary.graph_building import graph_builder
from tracekit.vocabulary.lines_file import LinesFile

_OPTIMIZER = re.compile(r"Optimizer\..*", re.DOTALL)


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
    marked = marked_lines(trace, recording.lines, owners)
    columns = [
        marked[main].groups if main in marked else _groups(recording, spans, kinds, users, owners),
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
    edges, frame, line = running_lines(users, _calls(recording, spans, users))
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


class Calls(NamedTuple):
    """Calls that frames of the user's make, in order of time."""

    start: Ints
    frame: Ints  # index into the user's frames
    line: Ints


def _calls(recording: Recording, spans: Spans, users: Spans) -> Calls:
    """The calls in the lines file in order of time, each with the frame that made it; none without a lines file."""
    lines = recording.lines
    if lines is None or not lines.call_start_ns:
        return Calls(NO_INTS, NO_INTS, NO_INTS)
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
    return Calls(start[in_frame], frame[in_frame], line[in_frame])


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


def running_lines(users: Spans, calls: Calls) -> tuple[Ints, Ints, Ints]:
    """Edges, and for each stretch the innermost frame of the user's (−1: none) and its line (0: not known yet)."""
    if not len(users):
        nothing = NO_INTS
        return nothing, nothing, nothing
    start, frame, line = calls
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
