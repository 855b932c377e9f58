"""How often does each line of the user's call an operator in a step, and which one most of all?

Only outermost operators count: what an operator calls itself is no call of the line's. A line that calls one a thousand
times a step is a loop over rows, which one operator over all of them may replace.
"""

from typing import NamedTuple

import numpy as np

from tracekit.base.intervals import Bools, occurring
from tracekit.base.units import count
from tracekit.lines.means import kept_with_recording
from tracekit.lines.owners import EVAL, FORWARD, OTHER, Group
from tracekit.lines.ownership import Ownership
from tracekit.trace.roles import OPERATOR
from tracekit.trace.rows import outermost
from tracekit.trace.steps import in_steps
from tracekit.trace.storing.cache import file_state, result_name
from tracekit.vocabulary.lines_file import lines_path

_READ_BACK = "aten::item"  # what .item() calls, and float(), int() and bool() of a tensor, which call .item()
_OF_THE_LINE = (OTHER, FORWARD, EVAL)  # phases in which what is called is what the line says


class LineCalls(NamedTuple):
    """The operator that a line, or a group of lines, calls most often, and how often in a mean step. Of these, `looped`
    are of the line itself: called in one module, and neither by a library nor by an optimizer."""

    lines: Group
    operator: str
    calls: float
    looped: float

    @property
    def called(self) -> str:
        """What people call the operator: `.item()`, or its own name."""
        return ".item()" if self.operator == _READ_BACK else self.operator

    @property
    def rank(self) -> tuple[float, bool, str]:
        """What operators of a line are compared by: of those that are called as often, reading back costs most."""
        return self.calls, self.operator == _READ_BACK, self.operator

    @property
    def in_words(self) -> str:
        """`1,037 × .item()`."""
        return f"{count(round(self.calls))} × {self.called}"


def known_calls(ownership: Ownership, counted: Bools) -> list[LineCalls]:
    """What the driving threads' lines call in the counted steps, by line, from the cache where it is known; nothing
    where no line is."""

    def name() -> str:
        trace = ownership.attribution.trace
        path = ownership.detail or trace.path
        states = [file_state(file) for file in (trace.path, path, lines_path(path))]
        causes = states, sorted(ownership.mine), ownership.graphs, counted.tobytes()
        return result_name("line-calls", __name__, causes=causes)

    found = kept_with_recording(ownership, name, list[LineCalls], lambda: _calls(ownership, counted))
    assert found is not None
    return found


def _calls(ownership: Ownership, counted: Bools) -> list[LineCalls]:
    trace = ownership.attribution.trace
    if ownership.recording is None or not counted.any():
        return []
    rows = trace.where(lambda part: part.process & (part.roles.kind == OPERATOR))
    in_counted = in_steps(counted, trace.steps.of(trace.ts_ns[rows]))
    rows = outermost(trace, rows[in_counted & np.isin(trace.track[rows], trace.threads.driving)])
    rows = rows[~trace.events_at(rows).roles.backward_node]  # those belong to the line of their forward operator
    pairs, which = occurring(ownership.of_events(rows) * len(trace.names) + trace.name_codes[rows])
    owners, steps = ownership.owners, int(counted.sum())
    by_line: dict[tuple[int, int], LineCalls] = {}
    for pair, calls in zip(pairs.tolist(), (np.bincount(which, minlength=len(pairs)) / steps).tolist(), strict=True):
        owner, code = divmod(pair, len(trace.names))
        numbers = owners.rows[owner]
        looped = calls if not numbers.library and numbers.phase in _OF_THE_LINE else 0.0
        key = numbers.group, code
        before = by_line.get(key, LineCalls(owners.groups[numbers.group], trace.names[code], 0.0, 0.0))
        by_line[key] = before._replace(calls=before.calls + calls, looped=max(before.looped, looped))
    most: dict[Group, LineCalls] = {}
    for one in by_line.values():
        if one.lines and (one.lines not in most or one.rank > most[one.lines].rank):
            most[one.lines] = one
    return list(most.values())
