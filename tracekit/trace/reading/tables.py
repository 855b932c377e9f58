"""What reading a file yields, whatever its format: tables, facts about the file, and where the events are stored."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct

from tracekit.trace.schema import EVENTS, TRACKS
from tracekit.trace.storing import cache
from tracekit.trace.storing.column_file import ColumnFile, Piece, in_memory

# As a trace is stored: beside the columns of its events the row of the file on which each stands, as written: events of
# equal `pid`, `tid` and `args.context` have equal numbers, of which those of events without a category are complements
# (~number).
STORED = EVENTS.append(pa.field("file_row", pa.int32()))
EVENTS_FILE = "events.columns"
_ROWS_KEPT_IN_MEMORY = 1 << 14  # rows that are not worth a file: 1.5 MB
_Names = Mapping[tuple[str, str], str]  # by pid and tid


class Reading(Struct, frozen=True):
    """What a file held: its tables, its other top-level keys, and what could not be read."""

    events: pa.Table
    tracks: pa.Table
    communications: pa.Table
    notes: pa.Table
    meta: dict[str, Any]
    bytes_read: int
    file: Path | None  # the events as an Arrow file, if they are stored as one
    lost: int = 0
    mended: int = 0
    cut_short: str | None = None  # why the file ends before its events do
    in_order: bool = True  # whether a file that was cut holds its events in order of time
    header_lost: bool = False  # whether the keys before the events were too long
    damage: str | None = None  # what is wrong with the archive it is packed in


def stored(
    pieces: Callable[[], Iterator[list[Piece]]],
    dictionaries: list[pa.Array],
    rows: int,
    bytes_read: int,
    folder: Path | None,
) -> tuple[pa.Table, Path | None]:
    """The events; in a file, if they are many or worth keeping and there is a folder for it.

    `pieces` yields their columns some rows at a time, in order of time, and starts anew at each call.
    """
    if not rows:  # only events of other kinds
        return STORED.empty_table(), None
    if folder is not None and (rows > _ROWS_KEPT_IN_MEMORY or bytes_read >= cache.WORTH_BYTES):
        file = folder / EVENTS_FILE
        try:
            columns = ColumnFile(file, STORED, rows)
            for piece in pieces():
                columns.add(piece)
            return columns.close(dictionaries), file
        except OSError:  # a disk that is full
            pass
    return in_memory(joined(list(pieces())), STORED, dictionaries), None


def tracks_table(numbers: Mapping[tuple[str, str], int], processes: _Names, threads: _Names) -> pa.Table:
    """One row per thread or stream, distinguished by the text of pid and tid. The tid of a process is empty."""
    names = [(pid, tid, processes.get((pid, "")), threads.get((pid, tid))) for pid, tid in numbers]
    columns = [[*numbers.values()], *([row[index] for row in names] for index in range(4))]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, TRACKS, strict=True)]
    return pa.Table.from_arrays(arrays, schema=TRACKS)


def joined(parts: list[list[Piece]]) -> list[Piece]:
    """Pieces of the same columns, one after the other."""
    if len(parts) == 1:
        return parts[0]
    columns = []
    for pieces in zip(*parts, strict=True):
        is_valid = None
        if any(piece.valid is not None for piece in pieces):
            masks = (np.ones(len(piece.values), bool) if piece.valid is None else piece.valid for piece in pieces)
            is_valid = np.concatenate([*masks])
        columns.append(Piece(np.concatenate([piece.values for piece in pieces]), is_valid))
    return columns
