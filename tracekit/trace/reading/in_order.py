"""Merges batches, each in order of time, into one sequence of events in order of time, some at a time.

Kineto writes thread after thread and buffer after buffer. Because events are later read in blocks of time, they are put
in order here, once: time is cut so that about `ROWS` events start between two cuts; these are gathered and sorted.
"""

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from tracekit.intervals import Ints
from tracekit.trace.columns import values
from tracekit.trace.storing.column_file import Piece

ROWS = 1 << 16  # about this many at a time: 6 MB
_EVERY = 256  # every so many rows one is looked at to find the cuts

Batch = Callable[[int], pa.RecordBatch]  # the batch of that number; its first column holds the starts
Columns = Callable[[int, pa.RecordBatch], list[Piece]]  # the columns to write for rows of that batch


def in_order(batch: Batch, columns: Columns, count: int, rows: int = ROWS) -> Iterator[list[Piece]]:
    """The columns of all events, in order of their starts; of equal starts in order of the batches."""
    lows, cuts = _looked_at(batch, count, rows)
    coming = np.argsort(lows, kind="stable").tolist()[::-1]
    opened: dict[int, tuple[pa.RecordBatch, int]] = {}  # batches in use, and how many of their rows have been given
    for cut in [*cuts.tolist(), None]:
        while coming and (cut is None or lows[coming[-1]] < cut):
            number = coming.pop()
            opened[number] = (batch(number), 0)
        taken = []
        for number in sorted(opened):
            rest, at = opened.pop(number)
            end = len(rest) if cut is None else int(np.searchsorted(_starts(rest), cut))
            if end > at:
                taken.append(columns(number, rest.slice(at, end - at)))
            if end < len(rest):
                opened[number] = (rest, end)
        if taken:
            yield _sorted(joined(taken))


def joined(parts: list[list[Piece]]) -> list[Piece]:
    """Pieces of the same columns, one after the other."""
    if len(parts) == 1:
        return parts[0]
    return [_joined(list(column)) for column in zip(*parts, strict=True)]


def _looked_at(batch: Batch, count: int, rows: int) -> tuple[Ints, Ints]:
    """The first start of every batch, and the moments at which to cut time."""
    lows, seen = np.zeros(count, np.int64), []
    every = min(_EVERY, rows)
    for number in range(count):
        starts = _starts(batch(number))
        lows[number] = starts[0] if len(starts) else 0
        seen.append(starts[::every].copy())
    moments = np.sort(np.concatenate(seen)) if seen else np.zeros(0, np.int64)
    apart = max(rows // every, 1)
    return lows, np.unique(moments[apart::apart])


def _starts(batch: pa.RecordBatch) -> Ints:
    return values(batch.column(0))


def _joined(pieces: list[Piece]) -> Piece:
    values = np.concatenate([piece.values for piece in pieces])
    if all(piece.valid is None for piece in pieces):
        return Piece(values)
    known = [np.ones(len(piece.values), bool) if piece.valid is None else piece.valid for piece in pieces]
    return Piece(values, np.concatenate(known))


def _sorted(pieces: list[Piece]) -> list[Piece]:
    starts = pieces[0].values
    if (starts[1:] >= starts[:-1]).all():
        return pieces
    order = np.argsort(starts, kind="stable")
    return [Piece(piece.values[order], None if piece.valid is None else piece.valid[order]) for piece in pieces]
