"""What the profiler writes about allocations: the `[memory]` instants of a trace recorded with `profile_memory`.

The table of events does not hold instants, so the file is read once more when they are needed.
"""

from dataclasses import dataclass

import msgspec
import numpy as np

from tracekit.intervals import Bools, Ints
from tracekit.trace.model import Trace
from tracekit.trace.reading import exact
from tracekit.trace.reading.event import NOTHING
from tracekit.trace.rereading.again import events_again

_NAME = "[memory]"
_DEVICES = {0: "cpu", 1: "cuda", 6: "hip", 12: "xpu", 13: "mps"}  # c10/core/DeviceType.h
_MOST_BYTES = 1 << 60  # sums of as many events as a file holds fit an int64
_UNKNOWN = -1


class _Arguments(msgspec.Struct, gc=False):
    address: int | float | str | None = msgspec.field(default=None, name="Addr")
    bytes: int | float | str | None = msgspec.field(default=None, name="Bytes")
    allocated: int | float | str | None = msgspec.field(default=None, name="Total Allocated")
    reserved: int | float | str | None = msgspec.field(default=None, name="Total Reserved")
    kind: int | float | str | None = msgspec.field(default=None, name="Device Type")
    device: int | float | str | None = msgspec.field(default=None, name="Device Id")


class _Event(msgspec.Struct, gc=False):
    name: msgspec.Raw = NOTHING
    ts: msgspec.Raw = NOTHING
    pid: msgspec.Raw = NOTHING
    tid: msgspec.Raw = NOTHING
    args: msgspec.Raw = NOTHING


_EVENTS = msgspec.json.Decoder(list[_Event])
_ARGUMENTS = msgspec.json.Decoder(_Arguments)


@dataclass(frozen=True)
class MemoryEvents:
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


def memory_events(trace: Trace) -> list[MemoryEvents]:
    """The allocations of each device that has any; none if the trace was recorded without `profile_memory`."""
    tracks = {
        (pid, tid): row
        for row, (pid, tid) in enumerate(
            zip(trace.tracks["pid"].to_pylist(), trace.tracks["tid"].to_pylist(), strict=True)
        )
    }
    times: list[Ints] = []
    rows: list[tuple[int, int, int, int, int, int, int]] = []
    for events in events_again(trace.path, _EVENTS, [_NAME.encode()]):
        chosen = [event for event in events if bytes(event.name) == b'"[memory]"']
        starts, known = exact.from_texts([event.ts for event in chosen])
        read = [_row(event, tracks) for event in chosen]
        whole = [at for at, row in enumerate(read) if row is not None and known[at]]
        times.append(starts[whole])
        rows += [row for at in whole if (row := read[at]) is not None]
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


def _row(event: _Event, tracks: dict[tuple[str, str], int]) -> tuple[int, int, int, int, int, int, int] | None:
    """Device type, its number, bytes, address, what is allocated and reserved in total, and the track."""
    try:
        given = _ARGUMENTS.decode(event.args)
        thread = tuple(str(msgspec.json.decode(each)) for each in (event.pid, event.tid))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    size = _whole(given.bytes)
    if size is None or not -_MOST_BYTES < size < _MOST_BYTES:
        return None
    return (
        _bounded(given.kind),
        _bounded(given.device),
        size,
        _bounded(given.address),
        _bounded(given.allocated),
        _bounded(given.reserved),
        tracks.get((thread[0], thread[1]), _UNKNOWN),
    )


def _bounded(given: object) -> int:
    """A number that fits a column; -1 if there is none."""
    number = _whole(given)
    return number if number is not None and 0 <= number < 1 << 62 else _UNKNOWN


def _whole(given: object) -> int | None:
    return given if isinstance(given, int) and not isinstance(given, bool) else None
