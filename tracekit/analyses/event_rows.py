"""The rows behind an answer, one for each event, and what analyses say of such events: the runtime call, and the line
of yours that costs most. A part is built at a time, since a trace may hold millions. No analysis itself.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct

from tracekit.base.intervals import Ints, Rows, occurring
from tracekit.profile import Profile
from tracekit.profile.grouping import Names
from tracekit.profile.where import LINE_COLUMNS, distinct_lines, line_table
from tracekit.trace import Trace
from tracekit.trace.roles import bare
from tracekit.trace.schema import LABEL, column, joined

SOME = 1 << 16  # events of one table


class EventRows(Struct, frozen=True):
    """A table that is made on request, piece by piece."""

    schema: pa.Schema
    pieces: Callable[[], Iterator[pa.Table]]

    def table(self) -> pa.Table:
        """The whole table."""
        return joined(self.schema, self.pieces())


def text(trace: Trace, rows: Ints | Rows) -> pa.Array:
    """The names of events as labels; null for −1."""
    codes = np.where(rows >= 0, trace.name_codes[np.maximum(rows, 0)], 0) if len(trace.ts_ns) else rows
    numbers = pa.array(codes.astype(np.int32), mask=rows < 0)
    return pa.DictionaryArray.from_arrays(numbers, trace.name_texts)


def numbered(trace: Trace, step: Ints) -> pa.Array:
    """The N of each step, given its index; null for −1."""
    numbers = np.array([*trace.steps.number, -1], np.int64)
    return pa.array(numbers[step], mask=step < 0)


def call_schema(origin: pa.Field, *extra: pa.Field) -> pa.Schema:
    """The columns that every table of calls has; `origin` and `extra` are the additional columns of one table."""
    return pa.schema(
        [
            column("event", pa.int64(), "row of the events table", role="plumbing"),
            column("step", pa.int64(), "the N of the step in whose time it starts; null for none", role="identity"),
            column("call", LABEL, "runtime call, without version suffix", role="name"),
            column("operator", LABEL, "operator that made it", role="name"),
            origin,
            column("start_ns", pa.int64(), "start", "ns"),
            column("dur_ns", pa.int64(), "host time inside the call", "ns"),
            *extra,
        ]
    )


def call_columns(trace: Trace, calls: Ints) -> dict[str, Any]:
    """The columns of that schema, given the rows of the calls."""
    return {
        "event": calls,
        "step": numbered(trace, trace.steps.of(trace.ts_ns[calls])),
        "call": [bare(trace.names[code]) for code in trace.name_codes[calls].tolist()],
        "operator": text(trace, trace.operators.of(calls)),
        "start_ns": trace.ts_ns[calls],
        "dur_ns": trace.dur_ns[calls],
    }


class CallKeys:
    """A number for each call's name, without version suffix, and operator; and what such numbers stand for."""

    def __init__(self, trace: Trace) -> None:
        self._trace, self._width = trace, len(trace.names) + 1
        self._numbers: dict[str, int] = {}  # of names

    def of(self, calls: Ints) -> Ints:
        """The number of each call."""
        trace, numbers = self._trace, self._numbers
        codes, inverse = occurring(trace.name_codes[calls])
        number_of_code = [numbers.setdefault(bare(trace.names[code]), len(numbers)) for code in codes.tolist()]
        maker = trace.operators.of(calls)
        operator = np.where(maker >= 0, trace.name_codes[maker].astype(np.int64) + 1, 0)
        return np.array(number_of_code, np.int64)[inverse] * self._width + operator

    @property
    def columns(self) -> Names:
        """The names that the numbers stand for, as the columns of that schema."""
        calls, names, width = [*self._numbers], self._trace.names, self._width
        return {
            "call": lambda key: calls[key // width],
            "operator": lambda key: names[key % width - 1] if key % width else None,
        }


class CostliestLines:
    """Takes events some at a time, as `Grouping` does."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._by_text: dict[str, dict[str, Any]] = {}
        self._ns: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))  # group → line → cost

    def add(self, rows: Ints | Rows, group: Ints, ns: Ints) -> None:
        """More events: the group of each, and what it costs."""
        line_of, lines = distinct_lines(line_table(self._profile, np.asarray(rows, np.int64)))
        self._by_text |= {line["where"]: line for line in lines if line["where"] is not None}
        keys, inverse = occurring(group * len(lines) + line_of)
        total = np.zeros(len(keys), np.int64)
        np.add.at(total, inverse, ns)
        for key, cost in zip(keys.tolist(), total.tolist(), strict=True):
            of_group, index = divmod(key, len(lines))
            if (place := lines[index]["where"]) is not None:
                self._ns[of_group][place] += cost

    def columns(self, groups: int) -> dict[str, list[Any]]:
        """The columns of `LINE_COLUMNS`, an entry for each group: nulls where no line of yours is known."""
        costliest = [
            max(costs, key=lambda place: (costs[place], place)) if (costs := self._ns.get(k)) else None
            for k in range(groups)
        ]
        nothing: dict[str, Any] = dict.fromkeys(LINE_COLUMNS.names)
        lines = [self._by_text.get(place or "", nothing) for place in costliest]
        return {name: [line[name] for line in lines] for name in LINE_COLUMNS.names}


def line_columns(profile: Profile, rows: Ints | Rows) -> dict[str, pa.ChunkedArray]:
    """The columns of `LINE_COLUMNS`, an entry for each event."""
    columns = line_table(profile, np.asarray(rows, np.int64))
    return {name: columns[name] for name in LINE_COLUMNS.names}
