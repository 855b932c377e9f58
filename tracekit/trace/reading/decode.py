"""Decodes a chunk of JSON events into columns, by a fast, typed path; `mend` reads what does not fit it one by one."""

import gc
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from tracekit.intervals import Ints
from tracekit.trace.columns import valid, values
from tracekit.trace.reading import exact
from tracekit.trace.reading.communications import CommunicationEvent, communication_rows, mentions, of_backends
from tracekit.trace.reading.event import Args, Event, Length, Scalar
from tracekit.trace.reading.gpu_notes import bandwidths, noted
from tracekit.trace.schema import CODED, category

_EVENTS = msgspec.json.Decoder(list[Event])
_WITH_COMMUNICATION: msgspec.json.Decoder[list[Any]] = msgspec.json.Decoder(list[CommunicationEvent])
_LENGTHS = msgspec.json.Decoder(list[Length])
_NO_ARGS = Args()
_INT64 = 1 << 63


class Span(NamedTuple):
    """When the events of a batch start, in the order of the file."""

    first: int
    last: int
    ascending: bool


class Codes(dict[Any, int]):
    """Numbers for values, in the order in which they first occur."""

    def __missing__(self, value: Any) -> int:
        self[value] = code = len(self)
        return code


@dataclass
class Decoder:
    """Turns chunks into columns, each chunk in order of time.

    It remembers the names and tracks that occur, and counts what it could not read.
    """

    categories: Codes = field(default_factory=Codes)
    names: Codes = field(default_factory=Codes)
    tracks: Codes = field(default_factory=Codes)
    labels: dict[tuple[str, str, str], str] = field(default_factory=dict)  # (what, pid, tid) → process or thread name
    events: int = 0  # of any phase
    lost: int = 0  # pieces of text that cannot be read as events, and events without a valid time
    mended: int = 0  # events that only a lenient reader understood, or whose duration is negative
    spans: list[Span] = field(default_factory=list)  # of each batch
    communications: list[list[Any]] = field(default_factory=list)  # rows about communication
    notes: list[list[Any]] = field(default_factory=list)  # rows about waits and counters
    closing: int | None = None  # where in the chunk last given the list of events ended, if it did

    def batch(self, chunk: memoryview | bytes) -> pa.RecordBatch:
        """The duration events of a JSON array of events, in order of time."""
        running = gc.isenabled()
        gc.disable()  # there are thousands of small objects, none cyclic: collecting would take half the time
        try:
            lengths: list[bytes] | None = None
            try:
                text = bytes(chunk)
                with_communication = mentions(text)
                events = (_WITH_COMMUNICATION if with_communication else _EVENTS).decode(chunk)
                if not with_communication and of_backends(events):
                    events = _WITH_COMMUNICATION.decode(chunk)
                self.notes += noted(text)
            except (msgspec.DecodeError, UnicodeError, RecursionError):
                events, lengths = self._mended(bytes(chunk))
                if self.closing == len(chunk):  # the bracket of the chunk itself
                    self.closing = None
            return self._columns(events, lengths, chunk)
        finally:
            if running:
                gc.enable()

    def last(self, tail: bytes) -> tuple[pa.RecordBatch, bytes | None]:
        """The events in the tail of a file, and what follows their closing bracket; None if there is no bracket."""
        events, lengths = self._mended(tail)
        rest = tail[self.closing :] if self.closing is not None else None
        self.notes += noted(b"[" + tail[1 : self.closing])
        return self._columns(events, lengths, tail), rest

    def _mended(self, text: bytes) -> tuple[list[Event], list[bytes]]:
        from tracekit.trace.reading.mend import read_one_by_one

        read = read_one_by_one(text)
        self.lost += read.lost
        self.mended += read.mended
        self.closing = read.closing
        return read.events, read.lengths

    def _columns(self, events: list[Event], lengths: list[bytes] | None, chunk: memoryview | bytes) -> pa.RecordBatch:
        self.events += len(events)
        for event in events:
            if event.ph == "M":
                self._label(event)
        durations = [index for index, event in enumerate(events) if event.ph == "X"]
        chosen = events if len(durations) == len(events) else [events[index] for index in durations]
        ts_ns, timed = exact.from_texts([event.ts for event in chosen])
        if not timed.all():
            self.lost += sum(bytes(chosen[row].ts) != b"null" for row in np.flatnonzero(~timed).tolist())
            durations = [index for index, good in zip(durations, timed.tolist(), strict=True) if good]
            chosen, ts_ns = [events[index] for index in durations], ts_ns[timed]
        if len(ts_ns):
            ascending = bool((ts_ns[1:] >= ts_ns[:-1]).all())
            self.spans.append(Span(int(ts_ns[0]), int(ts_ns[-1]), ascending))
            if not ascending:
                order = np.argsort(ts_ns, kind="stable")
                ts_ns, numbers = ts_ns[order], order.tolist()
                chosen, durations = [chosen[k] for k in numbers], [durations[k] for k in numbers]
        self.communications += communication_rows(chosen, ts_ns.tolist())
        self.notes += bandwidths(chosen, ts_ns)
        args = [event.args or _NO_ARGS for event in chosen]
        external_id = _either(
            _integers([arg.external_id for arg in args]), _integers([arg.external_id_2021 for arg in args])
        )
        columns = [
            pa.array(ts_ns),
            pa.array(self._durations(chosen, durations, lengths, chunk)),
            _coded(self.categories, _categories(chosen)),
            _coded(self.names, [event.name for event in chosen]),
            _coded(self.tracks, [(event.pid, event.tid) for event in chosen]),
            _linking(_integers([arg.correlation for arg in args])),
            external_id,
            _integers([arg.stream for arg in args]),
            _integers([arg.bytes for arg in args]),
            _integers([arg.sequence for arg in args]),
            _integers([arg.fwd_thread for arg in args]),
            _integers([arg.python_id for arg in args]),
            _integers([arg.python_parent_id for arg in args]),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=CODED)

    def _durations(
        self, events: list[Event], indices: list[int], lengths: list[bytes] | None, chunk: memoryview | bytes
    ) -> Ints:
        """Nanoseconds; anything that is not a number counts as 0."""
        if lengths is None:
            dur_ns, certain = exact.from_numbers([event.dur or 0 for event in events])
            if certain.all():
                self.mended += int((dur_ns < 0).sum())
                return np.maximum(dur_ns, 0)
            lengths = [bytes(length.dur) for length in _LENGTHS.decode(chunk)]
        exactly = [exact.from_text(lengths[index]) for index in indices]
        self.mended += sum(duration is not None and duration < 0 for duration in exactly)
        return np.array([max(duration or 0, 0) for duration in exactly], np.int64)

    def _label(self, event: Event) -> None:
        if event.name in ("process_name", "thread_name") and event.args is not None and event.args.name is not None:
            tid = "" if event.name == "process_name" else str(event.tid)
            self.labels[str(event.name), str(event.pid), tid] = str(event.args.name)


def _categories(events: list[Event]) -> list[object]:
    cats: list[object] = [event.cat for event in events]
    if None in cats:  # files of 2019: the process shows it
        cats = [category(event.cat, event.pid) for event in events]
    return cats


def _coded(codes: Codes, given: Sequence[object]) -> pa.Array:
    return pa.array(np.fromiter(map(codes.__getitem__, given), np.int32, len(given)))


def _linking(ids: pa.Array) -> pa.Array:
    """The ids that link events; 0 and −1 link nothing."""
    numbers = values(ids)
    return pa.array(numbers, mask=(numbers == 0) | (numbers == -1))


def _either(one: pa.Array, other: pa.Array) -> pa.Array:
    """The values of the first; where it has none, those of the other."""
    if not one.null_count or other.null_count == len(other):
        return one
    here = valid(one)
    return pa.array(np.where(here, values(one), values(other)), mask=~here & ~valid(other))


def _integers(given: Sequence[Scalar]) -> pa.Array:
    try:
        return pa.array(given, pa.int64())
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([_integer(value) for value in given], pa.int64())


def _integer(value: Scalar) -> int | None:
    """A whole number that fits, also from a string of digits; None for anything else."""
    try:
        whole = int(value) if value is not None else None
    except (ValueError, OverflowError):  # of a NaN, an infinity
        return None
    return whole if whole is not None and -_INT64 <= whole < _INT64 else None
