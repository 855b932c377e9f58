"""The rows behind an answer, one for each event: built a part at a time, since a trace may hold millions."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tracekit.intervals import Ints, Rows
from tracekit.trace import Trace
from tracekit.trace.columns import joined

SOME = 1 << 16  # events of one table


@dataclass(frozen=True)
class EventRows:
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
