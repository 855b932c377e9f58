"""On which line is each frame of the user's at each moment?

Every call that a frame makes sets its line; samples tell it between calls. Operators that no call made (`a + b`,
`x[i]`) are found in the bytecode: the next instruction of their kind that comes no later than the frame's next call.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from tracekit.intervals import Ints, distinct
from tracekit.lines.operator_kinds import kinds_of
from tracekit.lines.owners import Line
from tracekit.lines.sampled import sampled_lines
from tracekit.lines.spans import Spans, on_thread
from tracekit.lines_file import Code
from tracekit.trace.roles import OPERATOR

if TYPE_CHECKING:
    from tracekit.lines.main_thread import Recording


@dataclass(frozen=True)
class Calls:
    """Moments at which a frame of the user's is on a line; rows in order of time."""

    start: Ints
    frame: Ints  # index into the user's frames
    line: Ints


def running_lines(
    recording: "Recording", spans: Spans, users: Spans, function_of: Callable[[int], Line | None], calls: Calls
) -> tuple[Ints, Ints, Ints]:
    """Edges, and for each stretch the innermost frame of the user's (−1: none) and its line (0: not known yet)."""
    if not len(users):
        nothing = np.zeros(0, np.int64)
        return nothing, nothing, nothing
    computed = _computed(recording, spans, users, function_of, calls)
    looked_up = sampled_lines(recording, spans, users, function_of)
    start, frame, line = (
        np.concatenate(columns)
        for columns in zip((calls.start, calls.frame, calls.line), computed, looked_up, strict=True)
    )
    edges = distinct(np.concatenate((users.innermost.edges, start)))
    points = edges[:-1]
    running = users.innermost.at(points)
    low, width = int(edges[0]), int(edges[-1] - edges[0]) + 1
    order = np.argsort(frame * width + (start - low), kind="stable")
    keys = (frame * width + (start - low))[order]
    at = np.searchsorted(keys, running * width + (points - low), side="right") - 1
    last = order[np.maximum(at, 0)] if len(order) else np.zeros(len(at), np.int64)
    known = (at >= 0) & (running >= 0) & (frame[last] == running) if len(order) else np.zeros(len(at), bool)
    return edges, running, np.where(known, line[last] if len(order) else 0, 0)


def _computed(
    recording: "Recording", spans: Spans, users: Spans, function_of: Callable[[int], Line | None], calls: Calls
) -> tuple[Ints, Ints, Ints]:
    """Add the lines of operators that a frame runs without a call."""
    trace, nothing = recording.trace, np.zeros(0, np.int64)
    if recording.lines is None:
        return nothing, nothing, nothing
    codes = {(code.file, code.line, code.function): code for code in recording.lines.code}
    roles = trace.roles
    operators = Spans.of(trace, on_thread(trace, trace.threads.main, (roles.kind == OPERATOR) & ~roles.annotation))
    operators = operators.chosen(operators.depth == 0)
    inner = spans.innermost.at(operators.starts)
    frame = users.innermost.at(operators.starts)
    direct = (inner >= 0) & (frame >= 0) & (spans.rows[inner] == users.rows[frame])
    operators, frame = operators.chosen(direct), frame[direct]
    of_frame: dict[int, list[tuple[int, int, str]]] = defaultdict(list)  # start, line of a call or 0, operator
    wanted = np.isin(calls.frame, frame)
    for start, each, line in zip(
        *(column[wanted].tolist() for column in (calls.start, calls.frame, calls.line)), strict=True
    ):
        of_frame[each].append((start, line, ""))
    names = (trace.names[code] for code in trace.name_codes[operators.rows].tolist())
    for start, each, name in zip(operators.starts.tolist(), frame.tolist(), names, strict=True):
        of_frame[each].append((start, 0, name))
    marks: list[tuple[int, int, int]] = []
    for each, happened in of_frame.items():
        function = function_of(each)
        code = codes.get((function.file, function.line, function.function)) if function else None
        if code is not None:
            marks += [(start, each, line) for start, line in _walk(code, sorted(happened))]
    if not marks:
        return nothing, nothing, nothing
    start, frame, line = np.array(marks, np.int64).T
    return start, frame, line


def _walk(code: Code, happened: list[tuple[int, int, str]]) -> list[tuple[int, int]]:
    """Follow one frame through its bytecode: the line of each operator that is in it."""
    at, marks = 0, []
    following = _next_calls(happened)
    for (start, line, name), call in zip(happened, following, strict=True):
        if line:
            at = _position_of_call(code, at, line)
        elif (position := _position_of_operator(code, at, call, kinds_of(name))) is not None:
            at = position + 1
            marks.append((start, code.lines[position]))
    return marks


def _next_calls(happened: list[tuple[int, int, str]]) -> list[int]:
    """For each entry the line of the first call after it; 0 for none."""
    following, line = [], 0
    for _, line_of_call, _ in reversed(happened):
        following.append(line)
        line = line_of_call or line
    return following[::-1]


def _position_of_call(code: Code, at: int, line: int) -> int:
    """The position after the next call on that line, from here or, in a loop, from the start."""
    count = len(code.lines)
    for position in chain(range(at, count), range(at)):
        if code.lines[position] == line and code.kinds[position] == "call":
            return position + 1
    on_line = [position for position in range(count) if code.lines[position] == line]
    return on_line[0] if on_line else at


def _position_of_operator(code: Code, at: int, call: int, kinds: frozenset[str]) -> int | None:
    """The next instruction of such a kind, no further than the last on the line of the next call."""
    count = len(code.lines)
    end = count
    if call:
        on_line = [position for position in range(count) if code.lines[position] == call]
        end = next((position + 1 for position in reversed(on_line) if position >= at), 0)
    ahead = range(at, end) if end else chain(range(at, count), range(max(on_line, default=-1) + 1))
    return next((position for position in ahead if code.kinds[position] in kinds), None)
