"""Which line of the user's runs at each moment of a thread, as the interpreter marked it (`LinesFile.marks`)."""

import numpy as np
from msgspec import Struct

from tracekit.base.intervals import StepFunction
from tracekit.lines.owners import Owners, SourceLine
from tracekit.trace import Trace
from tracekit.vocabulary.code_owner import plain_function
from tracekit.vocabulary.lines_file import LinesFile


class MarkedLines(Struct, frozen=True):
    """The lines of one thread."""

    groups: StepFunction  # the group of the line, 0 where none of the user's runs
    estimated: StepFunction  # 1 where the lines of a loop share its time


def marked_lines(trace: Trace, lines: LinesFile | None, owners: Owners) -> dict[int, MarkedLines]:
    """The lines of each thread of the trace that has marks, by its track."""
    if lines is None or not lines.marks:
        return {}
    functions = {(code.file, code.function): code.line for code in reversed(lines.code)}
    groups = []
    for caller, line in lines.mark_places:
        file, name = lines.callers[caller]
        function = plain_function(name)
        place = SourceLine(file, line or functions.get((file, function), 0), function, line == 0)
        groups.append(owners.group((place,)))
    of_place = np.array([*groups, 0], np.int64)  # the last for −1
    rows = np.array(lines.marks, np.int64)
    tids = trace.tracks["tid"].to_pylist()
    tracks = [track for track in np.flatnonzero(trace.threads.process).tolist() if tids[track].isdecimal()]
    of_thread = {int(tids[track]): track for track in tracks}
    marked = {}
    for thread in np.unique(rows[:, 2]).tolist():
        if thread in of_thread:
            ns, place, _, estimated = rows[rows[:, 2] == thread].T
            last = np.append(ns[1:] > ns[:-1], True)  # of several at one moment, the last
            edges = ns[last] - trace.base_ns
            marked[of_thread[thread]] = MarkedLines(
                StepFunction(edges, of_place[place[last]][:-1], 0),
                StepFunction(edges, estimated[last][:-1], 0),
            )
    return marked
