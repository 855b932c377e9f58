"""Reads a Kineto file a second time: the arguments of some events, and allocations."""

from collections.abc import Callable
from functools import cache

import msgspec
import numpy as np

from tracekit.base.intervals import Ints, distinct
from tracekit.trace.model import Trace
from tracekit.trace.reading import exact
from tracekit.trace.reading.chunks import events_again
from tracekit.trace.reading.event_details import NOTHING, Scalar, value_of
from tracekit.trace.rereading import Arguments, MemoryEvents

_NAME = b'"[memory]"'
_DEVICES = {0: "cpu", 1: "cuda", 6: "hip", 12: "xpu", 13: "mps"}  # c10/core/DeviceType.h
_MOST_BYTES = 1 << 60  # sums of as many events as a file holds fit an int64
_UNKNOWN = -1
_Row = tuple[int, int, int, int, int, int, int]


class _EventWithArguments(msgspec.Struct, gc=False):
    name: msgspec.Raw = NOTHING
    ts: msgspec.Raw = NOTHING
    args: Arguments | None = None


class _MemoryArguments(msgspec.Struct, gc=False):
    address: Scalar = msgspec.field(default=None, name="Addr")
    bytes: Scalar = msgspec.field(default=None, name="Bytes")
    allocated: Scalar = msgspec.field(default=None, name="Total Allocated")
    reserved: Scalar = msgspec.field(default=None, name="Total Reserved")
    kind: Scalar = msgspec.field(default=None, name="Device Type")
    device: Scalar = msgspec.field(default=None, name="Device Id")


class _MemoryInstant(msgspec.Struct, gc=False):
    name: msgspec.Raw = NOTHING
    ts: msgspec.Raw = NOTHING
    pid: msgspec.Raw = NOTHING
    tid: msgspec.Raw = NOTHING
    args: msgspec.Raw = NOTHING


_EVENTS_WITH_ARGUMENTS = msgspec.json.Decoder(list[_EventWithArguments])
_MEMORY_INSTANTS = msgspec.json.Decoder(list[_MemoryInstant])
_MEMORY_ARGUMENTS = msgspec.json.Decoder(_MemoryArguments)


def arguments(trace: Trace, rows: Ints) -> dict[int, Arguments]:
    """What was recorded about these events, by row, without events that have no record. Takes one pass over the file.

    Nothing is known if the file no longer exists, such as that of a trace read from a pipe.
    """
    row_of = {(int(trace.ts_ns[row]), trace.names[trace.name_codes[row]]): row for row in distinct(rows).tolist()}
    times = distinct(trace.ts_ns[rows])
    arguments_of: dict[int, Arguments] = {}
    requested = len(row_of)
    for events in events_again(trace.path, _EVENTS_WITH_ARGUMENTS, _beginnings(times)):
        starts, is_time = exact.from_texts([event.ts for event in events])
        for k in np.flatnonzero(is_time & np.isin(starts, times)).tolist():
            row = row_of.pop((int(starts[k]), str(value_of(events[k].name))), None)
            if row is not None and (args := events[k].args) is not None:
                arguments_of[row] = args
        if len(row_of) == 0 < requested:
            break
    return arguments_of


def _beginnings(times: Ints) -> list[bytes]:
    """The possible first characters of a start, as text; a chunk that contains none of them need not be decoded."""
    if not len(times) or times[0] < 1000:
        return [b""]
    first, last = int(times[0]) // 1000 - 1, int(times[-1]) // 1000 + 1  # whole µs, as they are written
    dropped = len(str(last - first))
    if len(str(first)) != len(str(last)) or len(str(first)) <= dropped:
        return [b""]
    return [str(prefix).encode() for prefix in range(first // 10**dropped, last // 10**dropped + 1)]


def memory_events(trace: Trace) -> list[MemoryEvents]:
    """The allocations of each device that has any; none if the trace was recorded without `profile_memory`."""
    times: list[Ints] = []
    rows: list[_Row] = []

    @cache
    def track_of(pid: bytes, tid: bytes) -> int:
        process, thread = (str(msgspec.json.decode(identifier)) for identifier in (pid, tid))
        return trace.track_rows.get((process, thread), _UNKNOWN)

    for events in events_again(trace.path, _MEMORY_INSTANTS, [_NAME]):
        instants = [event for event in events if bytes(event.name) == _NAME]
        starts, has_time = exact.from_texts([event.ts for event in instants])
        read = [_row(event, track_of) for event in instants]
        valid = [index for index, row in enumerate(read) if row is not None and has_time[index]]
        times.append(starts[valid])
        rows += [row for index in valid if (row := read[index]) is not None]
    if not rows:
        return []
    table = np.array(rows, np.int64)
    ts = np.concatenate(times)
    order = np.argsort(ts, kind="stable")  # those of one moment in the order of the file
    ts, table = ts[order], table[order]
    devices = np.unique(table[:, :2], axis=0)
    return [_of_device(ts, table, int(kind), int(number)) for kind, number in devices.tolist()]


def _of_device(ts: Ints, table: Ints, kind: int, number: int) -> MemoryEvents:
    mask = (table[:, 0] == kind) & (table[:, 1] == number)
    name = _DEVICES.get(kind, f"device type {kind}")
    return MemoryEvents(name if number < 0 else f"{name}:{number}", ts[mask], *table[mask, 2:].T)


def _row(event: _MemoryInstant, track_of: Callable[[bytes, bytes], int]) -> _Row | None:
    """Device type, its number, bytes, address, what is allocated and reserved in total, and the track."""
    try:
        decoded = _MEMORY_ARGUMENTS.decode(event.args)
        track = track_of(bytes(event.pid), bytes(event.tid))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    size = decoded.bytes
    if type(size) is not int or not -_MOST_BYTES < size < _MOST_BYTES:
        return None
    return (
        _bounded(decoded.kind),
        _bounded(decoded.device),
        size,
        _bounded(decoded.address),
        _bounded(decoded.allocated),
        _bounded(decoded.reserved),
        track,
    )


def _bounded(decoded: object) -> int:
    """A number that fits a column; -1 if there is none."""
    return decoded if type(decoded) is int and 0 <= decoded < 1 << 62 else _UNKNOWN
