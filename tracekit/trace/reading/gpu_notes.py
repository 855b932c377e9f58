"""What the profiler writes about a few GPU events besides times: what a wait is for, counters, bandwidths.

Waits are recorded with `enable_cuda_sync_events`, counters by CUPTI's range profiler: only text that holds these is
decoded again, because their arguments have any name. The bandwidth of copies is stored if times are whole µs, because
the profiler computed it from finer ones; otherwise it follows from bytes and duration.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import pyarrow as pa

from tracekit.trace.reading import exact
from tracekit.trace.reading.event import NOTHING, Event, value_of
from tracekit.trace.schema import column

NOTES = pa.schema(
    [
        column("ts_ns", pa.int64(), "start of the event that records it", "ns"),
        column("pid", pa.string(), "process of the event, or device on GPU rows"),
        column("tid", pa.string(), "thread of the event, or stream on GPU rows"),
        column("name", pa.string(), "name of the event"),
        column("wait_stream", pa.int64(), "stream on which the awaited CUDA event was recorded"),
        column("wait_correlation", pa.int64(), "correlation id of the call that recorded it"),
        column("bandwidth", pa.float64(), "bandwidth of a copy or a memset, 10⁹ bytes a second"),
        column("counters", pa.map_(pa.string(), pa.float64()), "performance counters of a kernel"),
    ]
)
COUNTED = "cuda_profiler_range"  # the category of events that have counters


class _Event(msgspec.Struct, gc=False):
    ph: object = None
    cat: object = None
    name: object = None
    pid: object = None
    tid: object = None
    ts: msgspec.Raw = NOTHING
    args: object = None


_EVENTS = msgspec.json.Decoder(list[_Event])


def waits(events: Iterable[Event]) -> Iterator[list[Any]]:
    """A row of NOTES for each event with a valid time that says what it waits for."""
    for event in events:
        args = event.args
        if args is None or (args.wait_stream is NOTHING and args.wait_correlation is NOTHING):
            continue
        start = exact.from_text(bytes(event.ts))
        stream, correlation = (_whole(value_of(raw)) for raw in (args.wait_stream, args.wait_correlation))
        if start is not None and (stream, correlation) != (None, None):
            yield [start, str(event.pid), str(event.tid), str(event.name), stream, correlation, None, None]


def counters(text: bytes) -> Iterator[list[Any]]:
    """A row of NOTES for each event of a list that has performance counters; none for a list that is damaged."""
    try:
        events = _EVENTS.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return
    for event in events:
        start = exact.from_text(bytes(event.ts))
        if start is not None and event.ph == "X" and event.cat == COUNTED and isinstance(event.args, dict):
            numbers = [(str(key), float(value)) for key, value in event.args.items() if type(value) in (int, float)]
            yield [start, str(event.pid), str(event.tid), str(event.name), None, None, None, numbers]


def bandwidths(events: Iterable[Event]) -> Iterator[list[Any]]:
    """A row of NOTES for each copy or memset with a valid time."""
    for event in events:
        speed = event.args.bandwidth if event.args is not None else None
        if isinstance(speed, int | float) and (start := exact.from_text(bytes(event.ts))) is not None:
            yield [start, str(event.pid), str(event.tid), str(event.name), None, None, float(speed), None]


def table_of(rows: list[list[Any]]) -> pa.Table:
    """The rows in order of time."""
    ordered = sorted(rows, key=lambda row: row[0])
    columns = zip(*ordered, strict=True) if ordered else [()] * len(NOTES)
    return pa.table([pa.array([*each], field.type) for each, field in zip(columns, NOTES, strict=True)], schema=NOTES)


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 62 else None
