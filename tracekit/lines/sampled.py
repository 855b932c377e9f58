"""Which lines run where a frame of the user's makes no call? Where the capture looked, it saw the line.

A sample tells what ran since the one before it, as far as no call and no operator lies between them. The last one
before a call or an operator tells what ran until then. If what it saw is a loop, its lines share that time.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from tracekit.intervals import Bools, Ints, distinct
from tracekit.lines.owners import Line
from tracekit.lines.spans import Spans, on_thread
from tracekit.lines_file import LinesFile
from tracekit.python_frames import plain_function, profiled
from tracekit.trace import Trace
from tracekit.trace.roles import OPERATOR, PYTHON

if TYPE_CHECKING:
    from tracekit.lines.main_thread import Recording


class Samples(Struct, frozen=True):
    """The samples of Python code between calls, in order, and the stretch without calls that each is in."""

    at: Ints
    place: Ints
    low: Ints
    high: Ints


def samples(trace: Trace, lines: LinesFile | None) -> Samples:
    """Those samples at which the main thread ran Python code: neither an operator nor a function in C."""
    if lines is None or not lines.sample_ns:
        nothing = np.zeros(0, np.int64)
        return Samples(nothing, nothing, nothing, nothing)
    roles, main = trace.roles, trace.threads.main
    spans = Spans.of(
        trace, on_thread(trace, main, (roles.kind == PYTHON) | ((roles.kind == OPERATOR) & ~roles.annotation))
    )
    at, place = np.array(lines.sample_ns, np.int64) - trace.base_ns, np.array(lines.sample_place, np.int64)
    order = np.argsort(at, kind="stable")
    at, place = at[order], place[order]
    inner = spans.innermost.at(at)
    is_python = np.array([profiled(name) is not None for name in trace.names], bool)
    chosen: Bools = (
        (inner >= 0) & is_python[trace.name_codes[spans.rows[inner]]] if len(spans) else np.zeros(len(at), bool)
    )
    at, place = at[chosen], place[chosen]
    changes = distinct(np.concatenate((spans.starts, spans.ends)))
    after = np.searchsorted(changes, at, side="right")
    return Samples(at, place, changes[after - 1], changes[after]) if len(at) else Samples(at, place, at, at)


def sampled_lines(
    recording: "Recording", spans: Spans, users: Spans, function_of: Callable[[int], Line | None]
) -> tuple[Ints, Ints, Ints]:
    """Moments at which a frame comes to another line, as samples show them: start, frame, line."""
    seen, lines = samples(recording.trace, recording.lines), recording.lines
    if lines is None or not len(seen.at):
        return (np.zeros(0, np.int64),) * 3
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
    start, frame_of_mark, line_of_mark = np.array(marks, np.int64).reshape(-1, 3).T
    return start, frame_of_mark, line_of_mark
