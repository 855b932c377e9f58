"""Runtime calls: by name and by the operator that made them, and as rows, one for each call."""

from typing import Any

import numpy as np
import pyarrow as pa

from tracekit.analyses.shared.event_rows import numbered, text
from tracekit.intervals import Ints
from tracekit.profile.grouping import Names
from tracekit.trace import Trace
from tracekit.trace.enclosing import names_of_rows
from tracekit.trace.roles import bare
from tracekit.trace.schema import LABEL, column


def call_schema(origin: pa.Field, *more: pa.Field) -> pa.Schema:
    """The columns that every table of calls has; `origin` and `more` are the additional columns of one table."""
    return pa.schema(
        [
            column("event", pa.int64(), "row of the events table", role="plumbing"),
            column("step", pa.int64(), "the N of the step in whose time it starts; null for none", role="identity"),
            column("call", LABEL, "runtime call, without version suffix", role="name"),
            column("operator", LABEL, "operator that made it", role="name"),
            origin,
            column("start_ns", pa.int64(), "start", "ns"),
            column("dur_ns", pa.int64(), "host time inside the call", "ns"),
            *more,
        ]
    )


def call_columns(trace: Trace, calls: Ints, makers: Ints) -> dict[str, Any]:
    """The columns of that schema, given the rows of the calls and of the operators that made them (−1: none)."""
    return {
        "event": calls,
        "step": numbered(trace, trace.steps.of(trace.ts_ns[calls])),
        "call": [bare(name or "") for name in names_of_rows(trace, calls)],
        "operator": text(trace, makers),
        "start_ns": trace.ts_ns[calls],
        "dur_ns": trace.dur_ns[calls],
    }


class BareNames:
    """Numbers for the names of runtime calls, without version suffixes."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._numbers: dict[str, int] = {}
        self._of_code: dict[int, int] = {}

    def of(self, rows: Ints) -> Ints:
        """The number of each call's name."""
        codes, which = np.unique(self._trace.name_codes[rows], return_inverse=True)
        for code in codes.tolist():
            if code not in self._of_code:
                self._of_code[code] = self._numbers.setdefault(bare(self._trace.names[code]), len(self._numbers))
        return np.array([self._of_code[code] for code in codes.tolist()], np.int64)[which]

    @property
    def texts(self) -> list[str]:
        """The texts that the numbers stand for."""
        return list(self._numbers)


def keys_of(trace: Trace, names: BareNames, calls: Ints) -> Ints:
    """One number for each call's name and operator."""
    maker = trace.operators.of(calls)
    operator = np.where(maker >= 0, trace.name_codes[maker].astype(np.int64) + 1, 0)
    return names.of(calls) * (len(trace.names) + 1) + operator


def names_of(trace: Trace, names: BareNames) -> Names:
    """The names that such numbers stand for."""
    width = len(trace.names) + 1

    def call(key: int) -> str:
        return names.texts[key // width]

    def operator(key: int) -> str | None:
        return trace.names[key % width - 1] if key % width else None

    return {"call": call, "operator": operator}
