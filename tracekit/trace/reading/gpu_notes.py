"""What the profiler writes about a few GPU events besides times: what a wait is for, counters, bandwidths.

Waits are recorded with `enable_cuda_sync_events`, counters by CUPTI's range profiler. Chunks of the file that mention
neither, which are nearly all, are decoded only once. The bandwidth of copies is stored if times are whole µs, because
the profiler computed it from finer ones; otherwise it follows from bytes and duration.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from tracekit.intervals import Ints
from tracekit.trace.reading import exact
from tracekit.trace.reading.event import NOTHING, Event
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
_COUNTED = "cuda_profiler_range"
_SIGNS = (b'"wait_on_stream"', b'"wait_on_cuda_event_record_corr_id"', f'"{_COUNTED}"'.encode())


class _Event(msgspec.Struct, gc=False):
    ph: object = None
    cat: object = None
    name: object = None
    pid: object = None
    tid: object = None
    ts: msgspec.Raw = NOTHING
    args: object = None


_EVENTS = msgspec.json.Decoder(list[_Event])


def noted(chunk: bytes) -> Iterator[list[Any]]:
    """A row of NOTES for each event of a list that has such arguments; none for a list that is damaged."""
    if not any(sign in chunk for sign in _SIGNS):
        return
    try:
        events = _EVENTS.decode(chunk)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return
    for event in events:
        args = event.args
        if event.ph != "X" or not isinstance(args, dict):
            continue
        stream, correlation = (_whole(args.get(f"wait_on_{key}")) for key in ("stream", "cuda_event_record_corr_id"))
        counters = _counters(args) if str(event.cat).lower() == _COUNTED else None
        start = exact.from_text(bytes(event.ts))
        if start is not None and (stream, correlation, counters) != (None, None, None):
            yield [start, str(event.pid), str(event.tid), str(event.name), stream, correlation, None, counters]


def bandwidths(events: Sequence[Event], ts_ns: Ints) -> Iterator[list[Any]]:
    """A row of NOTES for each copy or memset among some events; none if their times are finer than a µs."""
    if (ts_ns % 1000).any():
        return
    for event, start in zip(events, ts_ns.tolist(), strict=True):
        speed = event.args.bandwidth if event.args is not None else None
        if isinstance(speed, int | float):
            yield [start, str(event.pid), str(event.tid), str(event.name), None, None, float(speed), None]


def table_of(rows: list[list[Any]]) -> pa.Table:
    """The rows in order of time."""
    ordered = sorted(rows, key=lambda row: row[0])
    columns = zip(*ordered, strict=True) if ordered else [()] * len(NOTES)
    return pa.table([pa.array([*each], field.type) for each, field in zip(columns, NOTES, strict=True)], schema=NOTES)


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 62 else None


def _counters(args: dict[Any, Any]) -> list[tuple[str, float]]:
    return [(str(key), float(value)) for key, value in args.items() if type(value) in (int, float)]
