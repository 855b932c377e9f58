"""A table as one file of plain columns, mapped into memory: each column is contiguous, however long the table.

Arrow's own files hold batches, and a column in pieces has to be copied together before numpy can use it as a whole. The
labels that the numbers stand for are in an ordinary Arrow file beside it.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct
from numpy.typing import NDArray

from tracekit.base.intervals import Bools

_ALIGNED = 64  # bytes, as Arrow wants it


class Piece(Struct, frozen=True):
    """Some rows of one column: the values (0 if missing), and which rows have one (None: all of them)."""

    values: NDArray[Any]
    valid: Bools | None = None


class _Layout(Struct, frozen=True):
    """Where each column begins in the file: its values, and the bits that say which of them are present."""

    values: list[int]
    valid: list[int]
    size: int

    @staticmethod
    def of(schema: pa.Schema, rows: int) -> "_Layout":
        values, valid, offset = [], [], 0
        for field in schema:
            values.append(offset)
            offset = _aligned(offset + rows * _stored(field.type).bit_width // 8)
            valid.append(offset)
            offset = _aligned(offset + -(-rows // 8))
        return _Layout(values, valid, max(offset, 1))


class ColumnFile:
    """Takes a table of a known length, some rows at a time."""

    def __init__(self, path: Path, schema: pa.Schema, rows: int) -> None:
        self._path, self._schema, self._rows = path, schema, rows
        self._layout = _Layout.of(schema, rows)
        self._filled = 0
        self._waiting = [np.zeros(0, bool) for _ in schema]  # which values are present, until they fill a byte
        self._file = path.open("wb", buffering=0)
        self._file.truncate(self._layout.size)

    def add(self, pieces: Sequence[Piece]) -> None:
        """Write the next rows. Raises OSError if the disk is full."""
        for index, piece in enumerate(pieces):
            kind = _stored(self._schema.field(index).type)
            self._put(self._layout.values[index] + self._filled * kind.bit_width // 8, piece.values)
            is_valid = piece.valid if piece.valid is not None else np.ones(len(piece.values), bool)
            valid = np.concatenate((self._waiting[index], is_valid))
            filled = self._filled + len(is_valid)
            aligned_count = len(valid) if filled == self._rows else len(valid) // 8 * 8
            offset = self._layout.valid[index] + (filled - len(valid)) // 8
            self._put(offset, np.packbits(valid[:aligned_count], bitorder="little"))
            self._waiting[index] = valid[aligned_count:]
        self._filled += len(pieces[0].values)

    def close(self, dictionaries: Sequence[pa.Array]) -> pa.Table:
        """Finish the file; returns the table, mapped into memory."""
        self._file.close()
        labelled = [field.name for field in self._schema if pa.types.is_dictionary(field.type)]
        lists = [
            pa.ListArray.from_arrays(pa.array([0, len(dictionary)], pa.int32()), dictionary)
            for dictionary in dictionaries
        ]
        beside = pa.table(dict(zip(labelled, lists, strict=True)))
        with pa.ipc.new_file(str(labels_of(self._path)), beside.schema) as writer:
            writer.write_table(beside)
        return mapped(self._path, self._schema, self._rows)

    def _put(self, offset: int, values: NDArray[Any]) -> None:
        rest = memoryview(np.ascontiguousarray(values).view(np.uint8).data)
        while rest:
            written = os.pwrite(self._file.fileno(), rest, offset)
            rest, offset = rest[written:], offset + written


def mapped(path: Path, schema: pa.Schema, rows: int) -> pa.Table:
    """The table in such a file, with that number of rows. Raises OSError or pa.ArrowInvalid if it does not match."""
    layout = _Layout.of(schema, rows)
    with pa.memory_map(str(path)) as file:
        if file.size() != layout.size:
            raise pa.ArrowInvalid(f"{path.name} does not hold {rows} rows")
        content = file.read_buffer(layout.size)
    beside = pa.ipc.open_file(pa.memory_map(str(labels_of(path)))).read_all()
    columns = []
    for index, field in enumerate(schema):
        kind = _stored(field.type)
        values = content.slice(layout.values[index], rows * kind.bit_width // 8)
        valid = content.slice(layout.valid[index], -(-rows // 8))
        column = pa.Array.from_buffers(kind, rows, [valid, values])
        if pa.types.is_dictionary(field.type):
            column = pa.DictionaryArray.from_arrays(column, beside[field.name].chunk(0).values)
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=schema)


def in_memory(pieces: Sequence[Piece], schema: pa.Schema, dictionaries: Sequence[pa.Array]) -> pa.Table:
    """The same table of contiguous columns in memory, for tables too small to be worth a file."""
    labels = iter(dictionaries)
    columns = []
    for field, piece in zip(schema, pieces, strict=True):
        bits = None if piece.valid is None else pa.py_buffer(np.packbits(piece.valid, bitorder="little"))
        values = pa.py_buffer(np.ascontiguousarray(piece.values))
        column = pa.Array.from_buffers(_stored(field.type), len(piece.values), [bits, values])
        if pa.types.is_dictionary(field.type):
            column = pa.DictionaryArray.from_arrays(column, next(labels))
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=schema)


def _stored(kind: pa.DataType) -> pa.DataType:
    return pa.int32() if pa.types.is_dictionary(kind) else kind


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGNED) * _ALIGNED


def labels_of(path: Path) -> Path:
    """The file beside it that has the labels behind the numbers."""
    return path.with_suffix(".labels.arrow")
