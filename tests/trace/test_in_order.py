"""Batches in any order of time become one table in order of time, the same wherever they are cut."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracekit.trace.reading.kineto import in_order
from tracekit.trace.reading.tables import joined
from tracekit.trace.schema import valid, values
from tracekit.trace.storing.column_file import ColumnFile, Piece, in_memory, mapped

SCHEMA = pa.schema([pa.field("ts_ns", pa.int64()), pa.field("label", pa.dictionary(pa.int32(), pa.string()))])
LABELS = pa.array(["a", "b", "c"])
BATCHES = st.lists(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 2), st.booleans()), max_size=9).map(
        lambda rows: sorted(rows, key=lambda row: row[0])
    ),
    max_size=6,
)


def batch(rows: list[tuple[int, int, bool]]) -> pa.RecordBatch:
    starts, labels = pa.array([row[0] for row in rows], pa.int64()), [row[1] if row[2] else None for row in rows]
    return pa.RecordBatch.from_arrays([starts, pa.array(labels, pa.int32())], names=["ts_ns", "label"])


def columns(_: int, rows: pa.RecordBatch) -> list[Piece]:
    return [Piece(values(column), valid(column) if column.null_count else None) for column in rows.columns]


def expected(batches: list[list[tuple[int, int, bool]]]) -> list[dict[str, object]]:
    rows = sorted((row for each in batches for row in each), key=lambda row: row[0])
    return [{"ts_ns": start, "label": "abc"[label] if known else None} for start, label, known in rows]


@given(BATCHES, st.integers(1, 20))
def test_any_batches_come_in_order(batches: list[list[tuple[int, int, bool]]], rows: int) -> None:
    made = [batch(each) for each in batches]
    pieces = list(in_order(made.__getitem__, columns, len(made), rows))
    whole = joined(pieces) if pieces else [Piece(np.zeros(0, np.int64)), Piece(np.zeros(0, np.int32))]
    assert in_memory(whole, SCHEMA, [LABELS]).to_pylist() == expected(batches)


@given(BATCHES, st.integers(1, 20))
def test_a_file_holds_what_memory_would(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[tuple[int, int, bool]]], rows: int
) -> None:
    made = [batch(each) for each in batches]
    path = tmp_path_factory.mktemp("columns") / "events.columns"
    file = ColumnFile(path, SCHEMA, sum(map(len, made)))
    for piece in in_order(made.__getitem__, columns, len(made), rows):
        file.add(piece)
    table = file.close([LABELS])
    assert table.to_pylist() == expected(batches)
    assert table["label"].num_chunks == 1
    assert table.equals(mapped(path, SCHEMA, len(table)))


def test_a_file_of_another_length_is_refused(tmp_path: Path) -> None:
    file = ColumnFile(tmp_path / "events.columns", SCHEMA, 3)
    file.add(columns(0, batch([(1, 0, True), (2, 1, False), (3, 2, True)])))
    file.close([LABELS])
    with pytest.raises(pa.ArrowInvalid):
        mapped(tmp_path / "events.columns", SCHEMA, 300)
