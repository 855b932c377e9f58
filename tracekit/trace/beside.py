"""Tables beside the events, with more about a few of them: which event does a row describe?"""

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tracekit.intervals import Ints
from tracekit.trace.columns import values

if TYPE_CHECKING:
    from tracekit.trace.model import Trace


def rows_of(trace: "Trace", table: pa.Table) -> Ints:
    """The event that each row of a table describes, by its start, process, thread and name; −1 for none."""
    starts = values(table["ts_ns"])
    low, high = np.searchsorted(trace.ts_ns, starts, side="left"), np.searchsorted(trace.ts_ns, starts, side="right")
    threads = zip(trace.tracks["pid"].to_pylist(), trace.tracks["tid"].to_pylist(), strict=True)
    tracks = {thread: row for row, thread in enumerate(threads)}
    wanted = zip(*(table[name].to_pylist() for name in ("pid", "tid", "name")), strict=True)
    rows = []
    for first, end, (pid, tid, name) in zip(low.tolist(), high.tolist(), wanted, strict=True):
        track = tracks.get((pid, tid), -1)
        here = (
            row for row in range(first, end) if trace.track[row] == track and trace.names[trace.name_codes[row]] == name
        )
        rows.append(next(here, -1))
    return np.array(rows, np.int64)
