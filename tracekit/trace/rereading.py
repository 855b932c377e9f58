"""What only a few questions need of a trace, and is looked up again in its file: the arguments of some events, and
allocations. Only files of Kineto's have them.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from tracekit.base import disclosure
from tracekit.base.intervals import Bools, Ints, distinct
from tracekit.trace.model import Trace
from tracekit.trace.reading import exact
from tracekit.trace.reading.chunks import events_again
from tracekit.trace.reading.event_details import NOTHING, Scalar, value_of

Inputs = list[tuple[int, ...]]  # the dimensions of each input; () for what is not a tensor, or has none
_NAME = b'"[memory]"'
_CALL_STACK = b'"Call stack"'
_DEVICES = {0: "cpu", 1: "cuda", 6: "hip", 12: "xpu", 13: "mps"}  # c10/core/DeviceType.h
_MOST_BYTES = 1 << 60  # sums of as many events as a file holds fit an int64
_UNKNOWN = -1
_Row = tuple[int, int, int, int, int, int, int]


class Arguments(msgspec.Struct, gc=False):
    """The arguments of one event, as written; what was not recorded is null."""

    dims: msgspec.Raw = msgspec.field(default=NOTHING, name="Input Dims")
    kinds: msgspec.Raw = msgspec.field(default=NOTHING, name="Input type")
    steps: msgspec.Raw = msgspec.field(default=NOTHING, name="Input Strides")
    occupied: msgspec.Raw = msgspec.field(default=NOTHING, name="est. achieved occupancy %")
    blocks: msgspec.Raw = msgspec.field(default=NOTHING, name="blocks per SM")
    gpu_context: msgspec.Raw = msgspec.field(default=NOTHING, name="context")
    stack: msgspec.Raw = msgspec.field(default=NOTHING, name="Call stack")

    @property
    def inputs(self) -> Inputs | None:
        """The dimensions of an operator's inputs, lists of tensors one by one; None if they were not recorded."""
        return _dims(self.dims)

    @property
    def strides(self) -> Inputs | None:
        """The strides of the inputs, in the form of `inputs`."""
        return _dims(self.steps)

    @property
    def types(self) -> list[str]:
        """The type of each input: `float`, `c10::BFloat16`, `ScalarList`, ""."""
        decoded = value_of(self.kinds)
        return [str(kind) for kind in decoded] if isinstance(decoded, list) else []

    @property
    def occupancy(self) -> float | None:
        """The part of the GPU's warps that a kernel keeps occupied, as the profiler estimates it from the launch."""
        decoded = value_of(self.occupied)
        return decoded / 100 if isinstance(decoded, int | float) else None

    @property
    def blocks_per_sm(self) -> float | None:
        """How many blocks of a kernel each multiprocessor gets; if it is below 1, some get none."""
        decoded = value_of(self.blocks)
        return float(decoded) if isinstance(decoded, int | float) else None

    @property
    def context(self) -> int | None:
        """The CUDA context that a GPU activity belongs to; processes do not share one."""
        decoded = value_of(self.gpu_context)
        return decoded if isinstance(decoded, int) else None


class MemoryEvents(Struct, frozen=True):
    """Allocations and releases on one device in order of time, as columns."""

    device: str  # cpu, cuda:0 …
    ts_ns: Ints
    bytes: Ints  # negative for a release
    address: Ints  # -1 where it was not recorded
    allocated: Ints  # in total on the device after the event; -1 where it was not recorded
    reserved: Ints  # by the allocator; -1 where it was not recorded
    track: Ints  # row of the trace's tracks; -1 for a thread that has none

    def __len__(self) -> int:
        return len(self.ts_ns)

    @property
    def addressed(self) -> bool:
        """Whether every event has its address, so that each release can be matched with its allocation."""
        return bool((self.address >= 0).all())

    def chosen(self, mask: Bools) -> "MemoryEvents":
        """Some of them."""
        names = ("ts_ns", "bytes", "address", "allocated", "reserved", "track")
        return MemoryEvents(self.device, **{name: getattr(self, name)[mask] for name in names})


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


def _dims(raw: msgspec.Raw) -> Inputs | None:
    decoded = value_of(raw)
    return [*_flat(decoded)] if isinstance(decoded, list) else None


def _flat(nested: list[Any]) -> Iterator[tuple[int, ...]]:
    for dims in nested:
        if isinstance(dims, list) and any(isinstance(inner, list) for inner in dims):
            yield from _flat(dims)
        elif isinstance(dims, list) and all(isinstance(length, int) for length in dims):
            yield tuple(dims)
        else:
            yield ()


def arguments(trace: Trace, rows: Ints) -> dict[int, Arguments]:
    """What was recorded about these events, by row, without events that have no record. Takes one pass over the file.

    Nothing is known if the file no longer exists, such as that of a trace read from a pipe.
    """
    if not trace.source.is_json:
        return {}
    row_of = {(int(trace.ts_ns[row]), trace.name(row)): row for row in distinct(rows).tolist()}
    times = distinct(trace.ts_ns[rows])
    arguments_of: dict[int, Arguments] = {}
    requested, filter_ = len(row_of), disclosure.current()
    for events in events_again(trace.path, _EVENTS_WITH_ARGUMENTS, _beginnings(times)):
        starts, is_time = exact.from_texts([event.ts for event in events])
        for k in np.flatnonzero(is_time & np.isin(starts, times)).tolist():
            name = str(value_of(events[k].name))
            row = row_of.pop((int(starts[k]), filter_.name(name) if filter_ is not None else name), None)
            if row is not None and (args := events[k].args) is not None:
                arguments_of[row] = args
        if len(row_of) == 0 < requested:
            break
    return arguments_of


def carries_call_stacks(trace: Trace) -> bool:
    """Whether operators carry their call stacks, as torch wrote them before Python frames were events of their own."""
    if not trace.source.is_json:
        return False
    return any(
        event.args is not None and isinstance(value_of(event.args.stack), str)
        for events in events_again(trace.path, _EVENTS_WITH_ARGUMENTS, [_CALL_STACK])
        for event in events
    )


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
    if not trace.source.is_json:
        return []
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
    devices = []
    for kind, number in np.unique(table[:, :2], axis=0).tolist():
        mask = (table[:, 0] == kind) & (table[:, 1] == number)
        name = _DEVICES.get(kind, f"device type {kind}")
        devices.append(MemoryEvents(name if number < 0 else f"{name}:{number}", ts[mask], *table[mask, 2:].T))
    return devices


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
