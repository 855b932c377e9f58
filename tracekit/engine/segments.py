"""A view as a table of segments: each is the time of one bucket and one event to blame."""

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from tracekit.engine.buckets import KEYS
from tracekit.engine.host import HostView
from tracekit.engine.wall import WallView
from tracekit.intervals import Ints, runs
from tracekit.trace.schema import LABEL, column

SEGMENTS = pa.schema(
    [
        column("view", LABEL, "wall or host"),
        column("start_ns", pa.int64(), "start", "ns"),
        column("dur_ns", pa.int64(), "duration", "ns"),
        column("bucket", LABEL, "bucket that the time belongs to"),
        column("event", pa.int64(), "row of the event to blame; null for none"),
    ]
)


def segments(view: str, blocks: Iterable[HostView | WallView]) -> Iterator[pa.Table]:
    """The segments of successive blocks; a segment that continues in the next block stays whole."""
    starts, ends, codes, events = (np.zeros(0, np.int64) for _ in range(4))
    for each in blocks:
        edges = each.states.edges
        codes = np.concatenate((codes, each.states.values))
        events = np.concatenate((events, each.events.at(edges[:-1])))
        starts, ends = np.concatenate((starts, edges[:-1])), np.concatenate((ends, edges[1:]))
        first = runs(codes << 40 | (events + 1))
        starts, ends = starts[first[:-1]], ends[first[1:] - 1]
        codes, events = codes[first[:-1]], events[first[:-1]]
        yield _table(view, starts[:-1], ends[:-1], codes[:-1], events[:-1])
        starts, ends, codes, events = starts[-1:], ends[-1:], codes[-1:], events[-1:]  # it may go on
    yield _table(view, starts, ends, codes, events)


def _table(view: str, starts: Ints, ends: Ints, codes: Ints, events: Ints) -> pa.Table:
    return pa.Table.from_arrays(
        [
            pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(starts), np.int32)), [view]),
            pa.array(starts),
            pa.array(ends - starts),
            pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), list(KEYS)),
            pa.array(events, mask=events < 0),
        ],
        schema=SEGMENTS,
    )
