"""Arrow columns as NumPy arrays and back. (`pyarrow.compute` could do it too, but takes 80 ms to import.)"""

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from tracekit.intervals import Bools, Ints, Rows

Column: TypeAlias = Any  # pa.Array or pa.ChunkedArray

# Where NumPy has another name. Arrow's `to_pandas_dtype` needs pandas in many versions, which reports do without.
_KINDS = {pa.float64(): "float64", pa.float32(): "float32"}


def values(column: Column, null: int = 0) -> Ints:
    """The integers of a column, with `null` in place of missing ones."""
    chunks = [column] if isinstance(column, pa.Array) else column.chunks
    if not chunks:
        return np.zeros(0, np.int64)
    parts = [_values(chunk, null) for chunk in chunks]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def joined(schema: pa.Schema, pieces: Iterable[pa.Table]) -> pa.Table:
    """Pieces of a table of that schema as a whole; without any, a table with no rows."""
    return pa.concat_tables([schema.empty_table(), *pieces]).unify_dictionaries()


def held(column: Column) -> Ints:
    """The integers of a column of events, which has 0 in place of missing values, so that nothing is copied."""
    chunks = [column] if isinstance(column, pa.Array) else column.chunks
    return _data(chunks[0]) if len(chunks) == 1 else values(column)


def valid(array: pa.Array) -> Bools:
    """Where an array has a value."""
    bitmap = array.buffers()[0]
    if bitmap is None or not array.null_count:
        return np.ones(len(array), bool)
    bits = np.unpackbits(np.frombuffer(bitmap, np.uint8), count=array.offset + len(array), bitorder="little")
    is_valid: Bools = bits[array.offset :].astype(bool)
    return is_valid


def _values(array: pa.Array, null: int) -> Ints:
    if not len(array):
        return np.zeros(0, np.int64)
    data = _data(array)
    return np.where(valid(array), data, null) if array.null_count else data


def _data(array: pa.Array) -> Ints:
    if not len(array):
        return np.zeros(0, np.int64)
    kind = _KINDS.get(array.type, str(array.type))
    data: Ints = np.frombuffer(array.buffers()[1], kind, count=array.offset + len(array))[array.offset :]
    return data


def small(column: Column) -> Rows:
    """The integers of a column of 32 bits."""
    return values(column).astype(np.int32, copy=False)


def codes(column: Column) -> Rows:
    """The numbers behind a column of labels, whose chunks share one dictionary."""
    chunks = [column] if isinstance(column, pa.Array) else column.chunks
    parts = [_values(chunk.indices, -1) for chunk in chunks]
    if not parts:
        return np.zeros(0, np.int32)
    numbers: Rows = (parts[0] if len(parts) == 1 else np.concatenate(parts)).astype(np.int32, copy=False)
    return numbers


def labels(column: Column) -> list[str]:
    """The labels that the numbers stand for."""
    chunks = [column] if isinstance(column, pa.Array) else column.chunks
    texts: list[str] = chunks[0].dictionary.to_pylist() if chunks else []
    return texts
