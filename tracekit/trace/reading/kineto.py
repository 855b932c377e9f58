"""Reads Kineto's JSON into Arrow as a stream: bounded memory, exact times, damage left out and counted.

Kineto writes thread after thread and buffer after buffer. Because events are later read in blocks of time, they are put
in order here, once, from batches that each are: time is cut so that about `ROWS` events start between two cuts; these
are gathered and sorted.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tracekit.base.intervals import NO_INTS, Ints, distinct
from tracekit.errors.reading import EmptyTraceError, NotATraceError
from tracekit.trace.reading import ascend, foreign
from tracekit.trace.reading.convert import Converted, ReadWatch, convert
from tracekit.trace.reading.decode import Codes
from tracekit.trace.reading.event_details import COMMUNICATIONS, NOTES, category, table_in_order
from tracekit.trace.reading.tables import Reading, joined, stored, tracks_table
from tracekit.trace.schema import valid, values
from tracekit.trace.storing.column_file import Piece

ROWS = 1 << 16  # about this many at a time: 6 MB
_EVERY = 256  # every so many rows one is looked at to find the cuts
Batch = Callable[[int], pa.RecordBatch]  # the batch of that number; its first column holds the starts
Columns = Callable[[int, pa.RecordBatch], list[Piece]]  # the columns to write for rows of that batch


def read(
    path: Path,
    display_path: object = None,
    *,
    folder: Path | None = None,
    tables: Path | None = None,
    workers: int = 1,
    watch: ReadWatch | None = None,
) -> Reading:
    """Read a trace. Raises NotATraceError and EmptyTraceError, and what opening the file raises.

    Unfinished work goes into `folder`, and the events of a large trace into `tables`, if these are given;
    `display_path` is the name of the file in messages.
    """
    display_path = display_path if display_path is not None else path
    converted = convert(path, folder, workers, watch)
    processes = {pid: name for (pid, _), name in _labels(converted, "process_name").items()}
    if ascend.HARDWARE in processes.values():
        converted = convert(path, folder, workers, watch, ascend.Translation(path, processes))
    events_read = sum(part.events for part in converted.parts)
    if converted.no_list or (not events_read and (converted.rest is None or converted.lost)):
        if (shape := foreign.shape_of(path)) is not None:
            raise NotATraceError(display_path, shape.what, shape.next_step)
        why_not = "it has no traceEvents" if converted.bytes_read else "the file is empty"
        if not converted.no_list:
            why_not = "its events cannot be read"
        raise NotATraceError(display_path, converted.damage or why_not)
    if not events_read:
        raise EmptyTraceError(display_path)
    meta = _meta(converted.header, converted.rest or b"") if not converted.header_lost else {}
    categories = {category(cat, None) for part in converted.parts for cat in part.categories}
    if (writer := foreign.other_writer(meta, categories)) is not None:
        raise NotATraceError(display_path, f"{writer} wrote it")
    cut_short = None
    if converted.rest is None:
        cut_short = converted.damage or "the text ends inside the list of events"
    numbers, dictionaries, pieces = _joined(converted)
    rows = sum(len(converted.batch(k)) for k in range(len(converted.order)))
    events, file = stored(pieces, dictionaries, rows, converted.bytes_read, tables)
    return Reading(
        events=events,
        tracks=tracks_table(numbers, _labels(converted, "process_name"), _labels(converted, "thread_name")),
        communications=table_in_order(COMMUNICATIONS, [row for part in converted.parts for row in part.communications]),
        notes=table_in_order(NOTES, [row for part in converted.parts for row in part.notes]),
        meta=meta,
        bytes_read=converted.bytes_read,
        file=file,
        lost=converted.lost,
        mended=sum(part.mended for part in converted.parts),
        cut_short=cut_short,
        in_order=cut_short is None or _in_order(converted),
        header_lost=converted.header_lost,
        damage=converted.damage,
    )


def _joined(converted: Converted) -> tuple[Codes, list[pa.Array], Callable[[], Iterator[list[Piece]]]]:
    """The numbers of tracks by pid and tid, the labels behind numbers, and what yields the events in order of time."""
    cats, names, tracks, file_rows = Codes(), Codes(), Codes(), Codes()
    maps = [
        (
            cats.of([category(cat, None) for cat in part.categories]),
            names.of(["" if name is None else _text(name) for name in part.names]),
            tracks.of([(_text(pid), _text(tid)) for pid, tid, *_ in part.tracks]),
            file_rows.of([tuple(row) for *row, _ in part.tracks])
            ^ -np.array([row[-1] for row in part.tracks], np.int32),
        )
        for part in converted.parts
    ]
    dictionaries = [pa.array(list(labels), pa.string()) for labels in (cats, names)]

    def columns(index: int, rows: pa.RecordBatch) -> list[Piece]:
        owner, _ = converted.order[index]
        pieces = [Piece(values(column), valid(column) if column.null_count else None) for column in rows.columns]
        pieces.append(pieces[4])
        for column_index, numbers in zip((2, 3, 4, -1), maps[owner], strict=True):
            codes = pieces[column_index].values
            pieces[column_index] = Piece(numbers[codes] if len(numbers) else codes)
        return pieces

    return tracks, dictionaries, lambda: in_order(converted.batch, columns, len(converted.order))


def _in_order(converted: Converted) -> bool:
    """Whether the file itself is in order of time."""
    reached, numbers = None, [0] * len(converted.parts)
    for index, (owner, _) in enumerate(converted.order):
        if not len(converted.batch(index)):
            continue
        first, last, ascending = converted.parts[owner].spans[numbers[owner]]
        numbers[owner] += 1
        if not ascending or (reached is not None and first < reached):
            return False
        reached = last
    return True


def _labels(converted: Converted, kind: str) -> dict[tuple[str, str], str]:
    """The names of processes or threads, by pid and tid."""
    labels = (label for part in converted.parts for label in part.labels)
    return {(pid, tid): name for label_kind, pid, tid, name in labels if label_kind == kind}


def _text(value: object) -> str:
    if value is None:
        return ""
    try:
        return str(value)
    except ValueError:  # an integer of thousands of digits
        return "overlong"


def _meta(header: bytes, rest: bytes) -> dict[str, Any]:
    """The top-level keys before and after the events, without damaged ones."""
    opening = header.decode("utf-8", "replace").strip().removeprefix("\ufeff")
    opening = re.sub(r',?\s*"traceEvents"\s*:\s*$', "", opening) + "}" if opening else "{}"
    closing = "{" + rest.decode("utf-8", "replace").strip().lstrip(",").strip()
    meta: dict[str, Any] = {}
    for text in (opening, closing):
        try:
            parsed = json.loads(text, strict=False)
        except (ValueError, RecursionError):  # a quote left bare in some value: plain numbers can still be read
            parsed = {key: int(value) for key, value in re.findall(r'"(\w+)"\s*:\s*(\d{1,19})\b', text)}
        if isinstance(parsed, dict):
            meta.update(parsed)
    return meta


def in_order(batch: Batch, columns: Columns, count: int, rows: int = ROWS) -> Iterator[list[Piece]]:
    """The columns of all events, in order of their starts; of equal starts in order of the batches."""
    # The first start of every batch, and the moments at which to cut time.
    lows, samples = np.zeros(count, np.int64), [NO_INTS]
    stride = min(_EVERY, rows)
    for number in range(count):
        starts = _starts(batch(number))
        lows[number] = starts[0] if len(starts) else 0
        samples.append(starts[::stride].copy())
    apart = max(rows // stride, 1)
    cuts = distinct(np.sort(np.concatenate(samples))[apart::apart])
    coming = np.argsort(lows, kind="stable").tolist()[::-1]
    opened: dict[int, tuple[pa.RecordBatch, int]] = {}  # batches in use, and how many of their rows have been given
    for cut in [*cuts.tolist(), None]:
        while coming and (cut is None or lows[coming[-1]] < cut):
            number = coming.pop()
            opened[number] = (batch(number), 0)
        parts = []
        for number in sorted(opened):
            rest, first = opened.pop(number)
            end = len(rest) if cut is None else int(np.searchsorted(_starts(rest), cut))
            if end > first:
                parts.append(columns(number, rest.slice(first, end - first)))
            if end < len(rest):
                opened[number] = (rest, end)
        if not parts:
            continue
        pieces = joined(parts)
        starts = pieces[0].values
        if not (starts[1:] >= starts[:-1]).all():
            order = np.argsort(starts, kind="stable")
            pieces = [
                Piece(piece.values[order], None if piece.valid is None else piece.valid[order]) for piece in pieces
            ]
        yield pieces


def _starts(batch: pa.RecordBatch) -> Ints:
    return values(batch.column(0))
