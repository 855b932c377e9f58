"""Decodes a chunk of JSON events into columns, by a fast, typed path; `mend` reads what does not fit it one by one.

Arrow's own reader of JSON took 1.4 times the processor time: it refuses blocks in which processes are both numbers and
names, a sixth of those of 2 MiB. It also lets pass bytes that are not UTF-8 and times in quotes.
"""

import gc
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import Struct, field

from tracekit.base.intervals import NO_INTS, Bools, Ints, Rows
from tracekit.trace.reading import exact, native
from tracekit.trace.reading.chunks import SEPARATOR
from tracekit.trace.reading.event_details import (
    COUNTED,
    NOTHING,
    Args,
    CommunicationEvent,
    Event,
    Length,
    Scalar,
    bandwidths,
    category,
    communication_rows,
    counters,
    is_of_backend,
    waits,
)
from tracekit.trace.reading.native import Columns, PlainPieces
from tracekit.trace.schema import EVENTS, LABEL, small, valid, values

# The columns of events while a trace is being read: text as numbers, whose meaning each part defines for itself.
CODED = pa.schema([pa.field(f.name, pa.int32() if f.type == LABEL else f.type) for f in EVENTS])
# Bytes decoded at a time, so that the objects stay in the processor's cache: 2 MiB take twice as long.
PIECE_BYTES = 192 << 10
_EVENTS = msgspec.json.Decoder(list[Event])
_WITH_COMMUNICATION = msgspec.json.Decoder(list[CommunicationEvent])
_LENGTHS = msgspec.json.Decoder(list[Length])
_NO_ARGS = Args()
_INT64 = 1 << 63
_REFUSED = (msgspec.DecodeError, UnicodeError, RecursionError)
# The columns of `ReadRows`, as `native.Columns` has them: first times, then codes, then integers.
_COLUMNS = (
    *("ts_ns", "dur_ns", "cats", "names", "tracks"),
    *("correlation", "external_id", "external_id_2021", "stream", "bytes", "sequence", "fwd_thread"),
    *("python_id", "python_parent_id"),
)
_FIRST_CODES, _FIRST_INTEGERS = 2, 5


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

    def of(self, values: Iterable[Any]) -> Rows:
        """The numbers of these values."""
        return np.array([self[value] for value in values], np.int32)

    def renumber(self, since: int, codes: Rows) -> Rows:
        """Number the values from number `since` on as they first occur in a column; forget those that do not. Returns
        the new number of each."""
        recent = [self.popitem()[0] for _ in range(len(self) - since)][::-1]
        numbers = np.arange(since + len(recent), dtype=np.int32)
        recent_codes, first = np.unique(codes[codes >= since], return_index=True)
        for number in recent_codes[np.argsort(first)].tolist():
            numbers[number] = self[recent[number - since]]
        return numbers


class Names(Codes):
    """Names of events, and which of them are spans of communication backends."""

    def __init__(self) -> None:
        super().__init__()
        self.backends: set[int] = set()

    def __missing__(self, value: Any) -> int:
        code = super().__missing__(value)
        if is_of_backend(value):
            self.backends.add(code)
        return code

    def popitem(self) -> tuple[Any, int]:
        """Forget the last name, and return it with its number."""
        value, code = super().popitem()
        self.backends.discard(code)
        return value, code


class ReadRows(Struct):
    """The duration events of a chunk as Python values, in the order of the file."""

    since: tuple[int, ...]  # how many categories, names and tracks had occurred before
    plain: Columns | None  # the rows of plain pieces, with room for the others between them
    # The JSON of each piece and, if it is damaged, the text of its durations.
    texts: list[tuple[bytes, list[bytes] | None]] = field(default_factory=list)
    copies: list[Event | bytes] = field(default_factory=list)  # those that have a bandwidth, or their text
    # Once all are read: the times of those that are not plain, the order of all in time, where they are not in it, and
    # the new numbers of categories, names and tracks.
    ts_ns: Ints = field(default_factory=lambda: NO_INTS)
    dur_ns: Ints = field(default_factory=lambda: NO_INTS)
    order: Ints | None = None
    numbers: dict[int, Rows] = field(default_factory=dict)
    starts: list[msgspec.Raw] = field(default_factory=list)
    durations: list[int | float | str] = field(default_factory=list)
    cats: list[int] = field(default_factory=list)
    names: list[int] = field(default_factory=list)
    tracks: list[int] = field(default_factory=list)
    correlation: list[Scalar] = field(default_factory=list)
    external_id: list[Scalar] = field(default_factory=list)
    external_id_2021: list[Scalar] = field(default_factory=list)
    stream: list[Scalar] = field(default_factory=list)
    bytes: list[Scalar] = field(default_factory=list)
    sequence: list[Scalar] = field(default_factory=list)
    fwd_thread: list[Scalar] = field(default_factory=list)
    python_id: list[Scalar] = field(default_factory=list)
    python_parent_id: list[Scalar] = field(default_factory=list)


class Decoder(Struct):
    """Turns chunks into columns, each chunk in order of time.

    It remembers the names and tracks that occur, and counts what it could not read.
    """

    categories: Codes = field(default_factory=Codes)
    names: Names = field(default_factory=Names)
    tracks: Codes = field(default_factory=Codes)
    labels: dict[tuple[str, str, str], str] = field(default_factory=dict)  # (what, pid, tid) → process or thread name
    events: int = 0  # of any phase
    lost: int = 0  # pieces of text that cannot be read as events, and events without a valid time
    mended: int = 0  # events that only a lenient reader understood, or whose duration is negative
    spans: list[Span] = field(default_factory=list)  # of each batch
    communications: list[list[Any]] = field(default_factory=list)  # rows about communication
    notes: list[list[Any]] = field(default_factory=list)  # rows about waits and counters
    communicates: bool = False  # whether an event described communication, so that others are expected to
    translate: Callable[[Sequence[Event]], None] | None = None  # into Kineto's words
    closing: int | None = None  # where in the chunk last given the list of events ended, if it did
    plain_pieces: PlainPieces | None = None  # what reads them, where the compiled reader can
    _rooms: tuple[Columns, Columns] = field(default_factory=lambda: (Columns(), Columns()))

    def __post_init__(self) -> None:
        if native.BUILT and self.translate is None:
            self.plain_pieces = PlainPieces(
                *(table.__getitem__ for table in (self.categories, self.names, self.tracks))
            )

    def batch(self, chunk: memoryview | bytes) -> pa.RecordBatch:
        """The duration events of a JSON array of events, in order of time."""
        return self.columns(self.read(chunk))

    def read(self, chunk: memoryview | bytes) -> ReadRows:
        """Read a JSON array of events. The rows of plain pieces are overwritten by the second chunk after this one."""
        running = gc.isenabled()
        gc.disable()  # there are thousands of small objects, none cyclic: collecting would take half the time
        try:
            return self._in_order(self._read(chunk))
        finally:
            if running:
                gc.enable()

    def last(self, tail: bytes) -> tuple[pa.RecordBatch, bytes | None]:
        """The events in the tail of a file, and what follows their closing bracket; None if there is no bracket."""
        rows = self._rows(None)
        events, lengths = self._mended(tail)
        self._take(rows, events, b"[" + tail[1 : self.closing], lengths)
        return self.columns(self._in_order(rows)), tail[self.closing :] if self.closing is not None else None

    def _rows(self, plain: Columns | None) -> ReadRows:
        return ReadRows((len(self.categories), len(self.names), len(self.tracks)), plain)

    def _read(self, chunk: memoryview | bytes) -> ReadRows:
        """The duration events of a chunk: of all of it, where it is plain, else piece by piece."""
        room = None
        if self.plain_pieces is not None:
            self._rooms = self._rooms[::-1]
            room = self._rooms[0]
            room.begin(len(chunk))
        rows, start, stop = self._rows(room), 1, len(chunk) - 1
        if self._scanned(rows, chunk, start, stop):
            return rows
        while (cut := SEPARATOR.search(chunk, start + PIECE_BYTES)) is not None:
            if self._scanned(rows, chunk, start, cut.start() + 1):
                start = cut.end()
                continue
            piece = _listed(chunk[start : cut.start() + 1])
            try:
                self._take(rows, self._decoded(piece), piece)
            except _REFUSED:  # it is damaged, or ends inside an event, whose arguments look like events
                break
            start = cut.end()
        if self._scanned(rows, chunk, start, stop):
            return rows
        rest = _listed(chunk[start:stop])
        try:
            self._take(rows, self._decoded(rest), rest)
        except _REFUSED:
            events, lengths = self._mended(rest)
            self._take(rows, events, rest, lengths)
            if self.closing is not None:  # the last bracket is the chunk's own
                self.closing = self.closing + start - 1 if self.closing < len(rest) else None
        return rows

    def _scanned(self, rows: ReadRows, chunk: memoryview | bytes, start: int, stop: int) -> bool:
        """Read a piece in C; returns whether it is plain."""
        if self.plain_pieces is None or rows.plain is None:
            return False
        scanned = self.plain_pieces.read(chunk, start, stop, rows.plain)
        if scanned is None:
            return False
        self.events += scanned.events
        self.mended += scanned.negative
        special = [(kind, bytes(chunk[begin:end])) for kind, begin, end, _ in scanned.special.tolist()]
        rows.copies += [text for kind, text in special if kind & native.BANDWIDTH]
        described = [(kind, text) for kind, text in special if kind != native.BANDWIDTH]
        events = _WITH_COMMUNICATION.decode(_listed(b",".join(text for _, text in described)))
        of_kind = [(kind, event) for (kind, _), event in zip(described, events, strict=True)]
        for kind, event in of_kind:
            if kind == native.LABEL:
                self._label(event)
        self.communications += communication_rows(event for kind, event in of_kind if kind & native.COMMUNICATION)
        self.notes += waits(event for kind, event in of_kind if kind & native.WAIT)
        if self.categories.get(COUNTED) in rows.plain.arrays[2][scanned.first : rows.plain.rows]:
            self.notes += counters(_listed(chunk[start:stop]))
        return True

    def _decoded(self, piece: bytes) -> Sequence[Event]:
        return _WITH_COMMUNICATION.decode(piece) if self.communicates else _EVENTS.decode(piece)

    def _mended(self, text: bytes) -> tuple[list[Event], list[bytes]]:
        """The events of a damaged text, and the texts of their durations."""
        from tracekit.trace.reading.mend import read_one_by_one

        read = read_one_by_one(text)
        self.lost += read.lost
        self.mended += read.mended
        self.closing = read.closing
        return read.events, read.lengths

    def _take(self, rows: ReadRows, events: Sequence[Event], text: bytes, lengths: list[bytes] | None = None) -> None:
        """Add the duration events among the events of a text; `lengths` are their durations if that is damaged."""
        duration_events = [event for event in events if event.ph == "X"]
        if len(duration_events) < len(events):
            for event in events:
                if event.ph == "M":
                    self._label(event)
        if self.translate is not None:
            self.translate(duration_events)
        names = [self.names[event.name] for event in duration_events]
        # In files of 2019, which have no categories, the process shows what an event is.
        cats = [
            self.categories[category(None, event.pid) if event.cat is None else event.cat] for event in duration_events
        ]
        args = [event.args or _NO_ARGS for event in duration_events]
        backends = self.names.backends
        if [arg.original_stream for arg in args].count(None) < len(args):
            _move_back(duration_events)
        collectives = [arg.collective for arg in args]
        if collectives.count(NOTHING) < len(args) or not backends.isdisjoint(names):
            described: Sequence[Event] = duration_events
            if lengths is None and not self.communicates:
                self.communicates = True
                described = [event for event in _WITH_COMMUNICATION.decode(text) if event.ph == "X"]
                _move_back(described)
            self.communications += communication_rows(
                event
                for event, collective, name in zip(described, collectives, names, strict=True)
                if collective is not NOTHING or name in backends
            )
        if self.categories.get(COUNTED) in cats:
            self.notes += counters(text)
        streams, ids = [arg.wait_stream for arg in args], [arg.wait_correlation for arg in args]
        if streams.count(NOTHING) + ids.count(NOTHING) < 2 * len(args):
            self.notes += waits(duration_events)
        speeds = [arg.bandwidth for arg in args]
        if speeds.count(None) < len(speeds):
            rows.copies += [event for event, speed in zip(duration_events, speeds, strict=True) if speed is not None]
        self.events += len(events)
        if lengths is not None:
            lengths = [length for event, length in zip(events, lengths, strict=True) if event.ph == "X"]
        rows.texts.append((text, lengths))
        if rows.plain is not None:
            rows.plain.leave(len(duration_events))
        rows.starts += [event.ts for event in duration_events]
        rows.durations += [event.dur or 0 for event in duration_events]
        rows.cats += cats
        rows.names += names
        rows.tracks += [
            self.tracks[event.pid, event.tid, arg.context, event.cat is None]
            for event, arg in zip(duration_events, args, strict=True)
        ]
        rows.correlation += [arg.correlation for arg in args]
        rows.external_id += [arg.external_id for arg in args]
        rows.external_id_2021 += [arg.external_id_2021 for arg in args]
        rows.stream += [arg.stream for arg in args]
        rows.bytes += [arg.bytes for arg in args]
        rows.sequence += [arg.sequence for arg in args]
        rows.fwd_thread += [arg.fwd_thread for arg in args]
        rows.python_id += [arg.python_id for arg in args]
        rows.python_parent_id += [arg.python_parent_id for arg in args]

    def _in_order(self, rows: ReadRows) -> ReadRows:
        """The rows, when all of a chunk are read: what orders and numbers them."""
        ts_ns, timed = exact.from_texts(rows.starts)
        rows.ts_ns, rows.dur_ns = ts_ns, self._durations(rows, timed)
        self.lost += sum(bytes(rows.starts[row]) != b"null" for row in np.flatnonzero(~timed).tolist())
        if rows.plain is not None and rows.plain.rows == len(timed):
            rows.plain = None
        if rows.plain is not None:
            ts_ns, timed = rows.plain.starts(ts_ns), rows.plain.timed(timed)
        timed_rows = np.flatnonzero(timed)
        timed_ns = ts_ns[timed_rows]
        if not (timed_ns % 1000).any():
            self.notes += bandwidths(
                event if isinstance(event, Event) else _EVENTS.decode(_listed(event))[0] for event in rows.copies
            )
        ascending = bool((timed_ns[1:] >= timed_ns[:-1]).all())
        if len(timed_ns):
            self.spans.append(Span(int(timed_ns[0]), int(timed_ns[-1]), ascending))
        if not ascending or len(timed_rows) < len(timed):
            rows.order = timed_rows[np.argsort(timed_ns, kind="stable")]
            tables = self.categories, self.names, self.tracks
            for table, (codes, since) in enumerate(zip(tables, rows.since, strict=True)):
                if len(codes) > since:
                    numbers = codes.renumber(since, small(_column(rows, _FIRST_CODES + table)))
                    rows.numbers[table] = numbers
                    if self.plain_pieces is not None:
                        self.plain_pieces.renumber(table, numbers)
        return rows

    @staticmethod
    def columns(rows: ReadRows) -> pa.RecordBatch:
        """The rows as columns, in order of time, without those that have no valid time."""
        columns = [_column(rows, index) for index in range(len(_COLUMNS))]
        correlation, external_id, external_id_2021 = columns[5:8]
        if correlation.null_count < len(correlation):
            ids = values(correlation)
            correlation = pa.array(ids, mask=(ids == 0) | (ids == -1))  # these link nothing
        if external_id.null_count and external_id_2021.null_count < len(external_id_2021):
            is_newer = valid(external_id)
            ids = np.where(is_newer, values(external_id), values(external_id_2021))
            external_id = pa.array(ids, mask=~is_newer & ~valid(external_id_2021))
        columns[5:8] = [correlation, external_id]
        for table, numbers in rows.numbers.items():
            index = _FIRST_CODES + table
            columns[index] = pa.array(numbers[small(columns[index])])
        return pa.RecordBatch.from_arrays(columns, schema=CODED)

    def _durations(self, rows: ReadRows, timed: Bools) -> Ints:
        """Nanoseconds; anything that is not a number counts as 0."""
        if all(lengths is None for _, lengths in rows.texts):
            dur_ns, certain = exact.from_numbers(rows.durations)
            if certain.all():
                self.mended += int((dur_ns[timed] < 0).sum())
                return np.maximum(dur_ns, 0)
        texts: list[bytes] = []
        for text, lengths in rows.texts:
            if lengths is not None:
                texts += lengths
            else:
                texts += [bytes(length.dur) for length in _LENGTHS.decode(text) if length.ph == "X"]
        dur_ns, is_number = exact.from_texts(texts)
        self.mended += int((dur_ns[timed] < 0).sum())
        self.mended += sum(texts[row][:1] == b'"' for row in np.flatnonzero(~is_number).tolist())
        return np.maximum(dur_ns, 0)

    def _label(self, event: Event) -> None:
        if event.name in ("process_name", "thread_name") and event.args is not None and event.args.name is not None:
            tid = "" if event.name == "process_name" else str(event.tid)
            self.labels[str(event.name), str(event.pid), tid] = str(event.args.name)


def _column(rows: ReadRows, index: int) -> pa.Array:
    """A column in order of time, with the numbers that its texts had first."""
    recorded = getattr(rows, _COLUMNS[index])
    if index < _FIRST_CODES:
        column = pa.array(recorded)
    elif index < _FIRST_INTEGERS:
        column = pa.array(np.fromiter(recorded, np.int32, len(recorded)))
    elif recorded.count(None) == len(recorded):
        column = pa.nulls(len(recorded), pa.int64())
    else:
        try:
            column = pa.array(recorded, pa.int64())
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            column = pa.array([_integer(value) for value in recorded], pa.int64())
    if rows.plain is not None:
        return rows.plain.filled(index, column, rows.order)
    if rows.order is None:
        return column
    if column.null_count == len(column):
        return column[: len(rows.order)]
    return pa.array(values(column)[rows.order], mask=~valid(column)[rows.order] if column.null_count else None)


def _listed(text: memoryview | bytes) -> bytes:
    return b"".join((b"[", text, b"]"))


def _move_back(events: Sequence[Event]) -> None:
    """Work of CUDA graphs that an exporter drew on lanes of its own choice is put back on the stream where it ran:
    `graph_lanes="all"` of PyTorch 2.15 (torch/profiler/_chrome_trace_export.py).
    """
    for event in events:
        if event.args is not None and isinstance(stream := event.args.original_stream, int):
            event.args.context = f"{event.args.context!r} on {event.tid!r}"  # the row that the file has it on
            event.tid = event.args.stream = stream


def _integer(value: Scalar) -> int | None:
    """A whole number that fits, also from a string of digits; None for anything else."""
    try:
        integer = int(value) if value is not None else None
    except (ValueError, OverflowError):  # of a NaN, an infinity
        return None
    return integer if integer is not None and -_INT64 <= integer < _INT64 else None
