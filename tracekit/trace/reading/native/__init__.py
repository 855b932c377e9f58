"""Plain pieces of a trace, read in C; README.md says how. Without it, the general decoder reads all pieces."""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tracekit.base.intervals import Bools, Ints, Rows
from tracekit.trace.reading.event_details import Scalar, category, is_of_backend
from tracekit.trace.schema import valid, values

try:
    from tracekit.trace.reading.native import _scan

    BUILT = True
except ImportError:
    BUILT = False

LABEL, COMMUNICATION, WAIT, BANDWIDTH = 1, 2, 4, 8  # why the typed decoder has to read an event besides
INTEGERS = 9  # columns of integers: `correlation` to `python_parent_id`
_TIMES, _TABLES = 2, 3
_KINDS = (*(np.int64,) * _TIMES, *(np.int32,) * _TABLES, *(np.int64,) * INTEGERS, *(np.uint8,) * INTEGERS)
_LEAST_BYTES = 8  # of an event: as many fit into a chunk
_TEXT = msgspec.json.Decoder(str)
_SCALAR: msgspec.json.Decoder[Scalar] = msgspec.json.Decoder(Scalar)
_REFUSED = (msgspec.DecodeError, UnicodeError)
Number = Callable[[Any], int]  # of a value


class Scanned(NamedTuple):
    """What a piece held besides its rows; `special` has kind, start and end in the chunk, and row of some events."""

    events: int
    first: int  # row
    negative: int  # durations
    special: NDArray[np.uint32]


class Columns:
    """Room for the rows of one chunk after the other; rows of pieces that are not plain are left free."""

    def __init__(self) -> None:
        self.arrays: list[NDArray[Any]] = []
        self.begin(0)

    def begin(self, size: int) -> None:
        """A chunk of so many bytes comes next."""
        if not self.arrays or size // _LEAST_BYTES > len(self.arrays[0]):
            self.arrays = [np.empty(size // _LEAST_BYTES, kind) for kind in _KINDS]
        self.rows = 0
        self.occurring = np.zeros(INTEGERS, bool)
        self.free: list[slice] = []

    def leave(self, rows: int) -> None:
        """Leave so many rows free."""
        self.free.append(slice(self.rows, self.rows + rows))
        self.rows += rows

    def filled(self, index: int, others: pa.Array, order: Ints | None) -> pa.Array:
        """A column, with the values of other rows in the places that were left free for them; perhaps only some rows,
        in another order."""
        first, integers = _TIMES + _TABLES, index - _TIMES - _TABLES
        count = self.rows if order is None else len(order)
        if integers >= 0 and not self.occurring[integers] and others.null_count == len(others):
            return pa.nulls(count, pa.int64())
        column = self._with_free(index, values(others), order)
        if integers < 0:
            return pa.array(column)
        is_there = self._with_free(first + INTEGERS + integers, valid(others), order).view(bool)
        return pa.array(column, mask=None if is_there.all() else ~is_there)

    def starts(self, others: Ints) -> Ints:
        """When each row starts: those of plain pieces, and of the others then, ns."""
        return self._with_free(0, others, None)

    def timed(self, others: Bools) -> Bools:
        """Which rows have a time: those of plain pieces, and of the others these."""
        is_timed = np.ones(self.rows, bool)
        is_timed[self._is_free] = others
        return is_timed

    def _with_free(self, index: int, others: NDArray[Any], order: Ints | None) -> NDArray[Any]:
        column = self.arrays[index][: self.rows]
        if len(others):
            column[self._is_free] = others
        return column.copy() if order is None else column[order]

    @property
    def _is_free(self) -> Bools:
        is_free = np.zeros(self.rows, bool)
        for rows in self.free:
            is_free[rows] = True
        return is_free


class _Numbers:
    """The general decoder's numbers of texts, by those of the scanner."""

    def __init__(self) -> None:
        self.of_scanner, self._count = np.zeros(1024, np.int32), 0

    def add(self, numbers: list[int]) -> None:
        end = self._count + len(numbers)
        if end > len(self.of_scanner):
            self.of_scanner = np.concatenate((self.of_scanner, np.zeros(end, np.int32)))
        self.of_scanner[self._count : end] = numbers
        self._count = end

    def renumber(self, numbers: Rows) -> None:
        known = self.of_scanner[: self._count]
        known[:] = numbers[known]


class PlainPieces:
    """Reads the pieces of one file, and numbers categories, names and tracks as the general decoder does."""

    def __init__(self, categories: Number, names: Number, tracks: Number) -> None:
        self._scanner = _scan.Scanner()
        self._number = categories, names, tracks
        self._numbers = [_Numbers() for _ in range(_TABLES)]

    def read(self, chunk: memoryview | bytes, start: int, stop: int, columns: Columns) -> Scanned | None:
        """Read the events in a part of a chunk; None if something in it is not plain."""
        first = columns.rows
        scanned = self._scanner.scan(chunk, start, stop, columns.arrays, first)
        if scanned is None:
            return None
        events, rows, negative, occurring, special, *texts = scanned
        try:
            values = [[*map(read, of_table)] for read, of_table in zip(_READ, texts, strict=True)]
        except _REFUSED:
            values = []
        # A name that shows only when it is decoded that it is a backend's was not looked at as such.
        if not values or any(
            is_of_backend(name) and b"\\" in text for name, text in zip(values[1], texts[1], strict=True)
        ):
            self._scanner.forget()
            return None
        self._scanner.keep()
        for table, numbers in enumerate(self._numbers):
            numbers.add([*map(self._number[table], values[table])])
            column = columns.arrays[_TIMES + table][first:rows]
            column[:] = numbers.of_scanner[column]
        columns.rows = rows
        columns.occurring |= np.frombuffer(occurring, np.uint8).astype(bool)
        return Scanned(events, first, negative, np.frombuffer(special, np.uint32).reshape(-1, 4))

    def renumber(self, table: int, numbers: Rows) -> None:
        """The general decoder has given its categories, names or tracks other numbers."""
        self._numbers[table].renumber(numbers)


def _category(text: bytes) -> Scalar:
    """Of an event without one, the text is the process, which shows what it is."""
    return category(None, _SCALAR.decode(text[1:])) if text[:1] == b"\n" else _SCALAR.decode(text)


def _track(text: bytes) -> tuple[Scalar, Scalar, Scalar, bool]:
    pid, tid, context, bare, _ = text.split(b"\n")
    return _SCALAR.decode(pid), _SCALAR.decode(tid), _SCALAR.decode(context) if context else None, bool(bare)


def _name(text: bytes) -> str:
    return _TEXT.decode(b'"' + text + b'"')


_READ: tuple[Callable[[bytes], Any], ...] = (_category, _name, _track)
