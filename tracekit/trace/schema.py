"""The columns of tables: what each says of itself, and Arrow columns as NumPy arrays and back (`pyarrow.compute` could
do that too, but takes 80 ms to import); and the tables of a trace that are exported, a comment for each column.

Times are int64 nanoseconds on the trace's own clock (`ts_ns`), exact to the decimal text of the file.
"""

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from tracekit.base.intervals import NO_INTS, Bools, Ints, Rows

Role = Literal[
    "",
    "identity",
    "place",
    "kernel",
    "name",
    "figure",
    "plumbing",
    "detail",
    "source",
    "setting",
    "reason",
    "code",
    "bar",
]
LABEL = pa.dictionary(pa.int32(), pa.string())  # text that repeats: names, categories, buckets
Column: TypeAlias = Any  # pa.Array or pa.ChunkedArray
# Where NumPy has another name. Arrow's `to_pandas_dtype` needs pandas in many versions, which reports do without.
_KINDS = {pa.float64(): "float64", pa.float32(): "float32"}


def column(name: str, kind: pa.DataType, comment: str, unit: str = "", *, role: Role = "", title: str = "") -> pa.Field:
    """A field whose meaning, unit and role travel with it, into Parquet too.

    The role says how the column is shown to people: an `identity` is a number that identifies a thing; a `place` is
    in source code; a `kernel` or a `name` may be long and is shortened; a `setting` is several words that all
    matter; a `reason` is in the words of somebody else, which are whole if everything is shown; a `figure` is text
    that reads as a number; `code` is a line of source; a `bar` is drawn with letters; `plumbing` ties rows to other
    tables or to a clock and is for programs only; so is a `source`, instead of which people read the `place` beside it;
    a `detail` is shown only if everything is. The title is shown above the column in place of its name.
    """
    optional = {"role": role, "title": title}
    given_metadata = {"comment": comment, "unit": unit, **{key: text for key, text in optional.items() if text}}
    return pa.field(name, kind, metadata=given_metadata)


def metadata(field: pa.Field, key: str) -> str:
    """The comment, unit, role or title that `column` was given; empty if it was not given."""
    return str((field.metadata or {}).get(key.encode(), b"").decode())


EVENTS = pa.schema(
    [
        column("ts_ns", pa.int64(), "start", "ns"),
        column("dur_ns", pa.int64(), "duration; a missing or negative one is 0", "ns"),
        column("cat", LABEL, "category in today's spelling: cpu_op, cuda_runtime, kernel, …"),
        column("name", LABEL, "name as written"),
        column("track", pa.int32(), "row of the tracks table: the thread or the stream it ran on"),
        column("correlation", pa.int64(), "links a runtime call with its GPU activities; null where it links nothing"),
        column("external_id", pa.int64(), "the profiler's id of the operator an event belongs to"),
        column("stream", pa.int64(), "GPU stream, from the args of the event"),
        column("bytes", pa.int64(), "bytes moved by a copy or a memset", "B"),
        column(
            "sequence",
            pa.int64(),
            "autograd sequence number, which links a forward operator with its backward operator",
        ),
        column(
            "fwd_thread",
            pa.int64(),
            "for a backward operator, the profiler's number of the thread that ran its forward operator",
        ),
        column("python_id", pa.int64(), "id of a Python frame"),
        column("python_parent_id", pa.int64(), "id of the frame that called it"),
    ]
)
TRACKS = pa.schema(
    [
        column("track", pa.int32(), "row number"),
        column("pid", pa.string(), "process, or device on GPU rows, as text"),
        column("tid", pa.string(), "thread, or stream on GPU rows, as text"),
        column("process", pa.string(), "process name, where the trace names it"),
        column("thread", pa.string(), "thread name, where the trace names it"),
    ]
)


def values(column: Column, null: int = 0) -> Ints:
    """The integers of a column, with `null` in place of missing ones."""
    return _of_chunks(_chunks(column), null)


def codes(column: Column) -> Rows:
    """The numbers behind a column of labels, whose chunks share one dictionary."""
    numbers: Rows = _of_chunks([chunk.indices for chunk in _chunks(column)], -1).astype(np.int32, copy=False)
    return numbers


def small(column: Column) -> Rows:
    """The integers of a column of 32 bits."""
    return values(column).astype(np.int32, copy=False)


def held(column: Column) -> Ints:
    """The integers of a column of events, which has 0 in place of missing values, so that nothing is copied."""
    chunks = _chunks(column)
    return _data(chunks[0]) if len(chunks) == 1 else values(column)


def labels(column: Column) -> list[str]:
    """The labels that the numbers stand for."""
    chunks = _chunks(column)
    texts: list[str] = chunks[0].dictionary.to_pylist() if chunks else []
    return texts


def valid(array: pa.Array) -> Bools:
    """Where an array has a value."""
    bitmap = array.buffers()[0]
    if bitmap is None or not array.null_count:
        return np.ones(len(array), bool)
    bits = np.unpackbits(np.frombuffer(bitmap, np.uint8), count=array.offset + len(array), bitorder="little")
    is_valid: Bools = bits[array.offset :].astype(bool)
    return is_valid


def joined(schema: pa.Schema, pieces: Iterable[pa.Table]) -> pa.Table:
    """Pieces of a table of that schema as a whole; without any, a table with no rows."""
    return pa.concat_tables([schema.empty_table(), *pieces]).unify_dictionaries()


def _chunks(column: Column) -> list[pa.Array]:
    chunks: list[pa.Array] = [column] if isinstance(column, pa.Array) else column.chunks
    return chunks


def _of_chunks(chunks: list[pa.Array], null: int) -> Ints:
    parts = [np.where(valid(chunk), _data(chunk), null) if chunk.null_count else _data(chunk) for chunk in chunks]
    return parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else NO_INTS


def _data(array: pa.Array) -> Ints:
    if not len(array):
        return NO_INTS
    kind = _KINDS.get(array.type, str(array.type))
    data: Ints = np.frombuffer(array.buffers()[1], kind, count=array.offset + len(array))[array.offset :]
    return data
