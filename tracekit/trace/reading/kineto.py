"""Kineto's JSON → Arrow, as a stream: bounded memory, exact times, damage kept out and counted."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tracekit.errors import EmptyTraceError, NotATraceError
from tracekit.intervals import Ints
from tracekit.trace.columns import values
from tracekit.trace.reading.convert import Converted, Watch, convert
from tracekit.trace.schema import EVENTS, TRACKS, category

_ROWS = 1 << 18  # of one batch on disk: 22 MB


@dataclass(frozen=True)
class Reading:
    """What a file held: its tables, its other top-level keys, and what could not be read."""

    events: pa.Table
    tracks: pa.Table
    meta: dict[str, Any]
    bytes_read: int
    lost: int
    mended: int
    cut_short: str | None  # why the file ends before its events do
    header_lost: bool  # the keys before the events were too long to keep
    damage: str | None  # what is wrong with the archive it is packed in
    file: Path | None  # where the events lie as an Arrow file, if they do


def read(
    path: Path,
    shown: object = None,
    *,
    folder: Path | None = None,
    tables: Path | None = None,
    workers: int = 1,
    watch: Watch | None = None,
) -> Reading:
    """Read a trace. Raises NotATraceError and EmptyTraceError, and what opening the file raises.

    Unfinished work goes into `folder`, and the events of a large one into `tables`, where those are given; `shown` is
    how messages call the file.
    """
    shown = shown if shown is not None else path
    converted = convert(path, folder, workers, watch)
    found = sum(part.events for part in converted.parts)
    if converted.no_list:
        raise NotATraceError(shown, _why_not(converted))
    if not found:
        if converted.rest is None or converted.lost:
            raise NotATraceError(shown, converted.damage or "its events cannot be read")
        raise EmptyTraceError(shown)
    cut_short = None
    if converted.rest is None:
        cut_short = converted.damage or "the text ends inside the list of events"
    tracks, joined = _joined(converted)
    events, file = _kept(joined, converted, tables)
    return Reading(
        events=events,
        tracks=tracks,
        meta=_meta(converted.header, converted.rest or b"") if not converted.header_lost else {},
        bytes_read=converted.bytes_read,
        lost=converted.lost,
        mended=sum(part.mended for part in converted.parts),
        cut_short=cut_short,
        header_lost=converted.header_lost,
        damage=converted.damage,
        file=file,
    )


def _why_not(converted: Converted) -> str:
    if converted.damage:
        return converted.damage
    return "it has no traceEvents" if converted.bytes_read else "the file is empty"


class _Numbering:
    """One numbering for what the parts number each for itself."""

    def __init__(self) -> None:
        self.rows: dict[Any, int] = {}

    def of(self, keys: list[Any]) -> Ints:
        return np.array([self.rows.setdefault(key, len(self.rows)) for key in keys], np.int32)


def _joined(converted: Converted) -> tuple[pa.Table, "Iterator[pa.RecordBatch]"]:
    """The tracks, and the batches of events with text for their codes."""
    cats, names, tracks = _Numbering(), _Numbering(), _Numbering()
    maps = [
        (
            cats.of([category(cat, None) for cat in part.categories]),
            names.of(["" if name is None else _text(name) for name in part.names]),
            tracks.of([(_text(pid), _text(tid)) for pid, tid in part.tracks]),
        )
        for part in converted.parts
    ]
    dictionaries = [pa.array(list(numbering.rows), pa.string()) for numbering in (cats, names)]
    return _tracks(converted, tracks), _batches(converted, maps, dictionaries)


def _batches(
    converted: Converted, maps: list[tuple[Ints, Ints, Ints]], dictionaries: list[pa.Array]
) -> Iterator[pa.RecordBatch]:
    gathered: list[list[pa.Array]] = []
    rows = 0
    for place, (owner, _) in enumerate(converted.order):
        batch = converted.batch(place)
        columns = list(batch.columns)
        for where, numbers in zip((2, 3, 4), maps[owner], strict=True):
            columns[where] = pa.array(numbers[values(columns[where])] if len(numbers) else values(columns[where]))
        gathered.append(columns)
        rows += len(batch)
        if rows >= _ROWS or place == len(converted.order) - 1:
            whole = [pa.concat_arrays(list(parts)) for parts in zip(*gathered, strict=True)]
            for where, dictionary in zip((2, 3), dictionaries, strict=True):
                whole[where] = pa.DictionaryArray.from_arrays(whole[where], dictionary)
            yield pa.RecordBatch.from_arrays(whole, schema=EVENTS)
            gathered, rows = [], 0


def _kept(batches: Iterator[pa.RecordBatch], converted: Converted, folder: Path | None) -> tuple[pa.Table, Path | None]:
    """The events, in a file where there is a folder for it and they are many."""
    if folder is not None and len(converted.order) > 1:
        file = folder / "events.arrow"
        try:
            with pa.ipc.new_file(str(file), EVENTS) as writer:
                for batch in batches:
                    writer.write_batch(batch)
            return pa.ipc.open_file(pa.memory_map(str(file))).read_all(), file
        except OSError:  # a disk that is full
            return pa.Table.from_batches(_joined(converted)[1], EVENTS).combine_chunks(), None
    return pa.Table.from_batches(batches, EVENTS), None


def _tracks(converted: Converted, numbering: _Numbering) -> pa.Table:
    """One row per thread or stream, told apart by text."""
    named = {(what, pid, tid): label for part in converted.parts for what, pid, tid, label in part.labels}
    rows = [
        {
            "track": row,
            "pid": pid,
            "tid": tid,
            "process": named.get(("process_name", pid, "")),
            "thread": named.get(("thread_name", pid, tid)),
        }
        for (pid, tid), row in numbering.rows.items()
    ]
    return pa.Table.from_pylist(rows, schema=TRACKS)


def _text(value: object) -> str:
    if value is None:
        return ""
    try:
        return str(value)
    except ValueError:  # an integer of thousands of digits
        return "overlong"


def _meta(header: bytes, rest: bytes) -> dict[str, Any]:
    """The top-level keys before and after the events; what is broken there is left out."""
    opening = header.decode("utf-8", "replace").strip().removeprefix("\ufeff")
    opening = re.sub(r',?\s*"traceEvents"\s*:\s*$', "", opening) + "}" if opening else "{}"
    closing = "{" + rest.decode("utf-8", "replace").strip().lstrip(",").strip()
    meta: dict[str, Any] = {}
    for text in (opening, closing):
        try:
            parsed = json.loads(text, strict=False)
        except (ValueError, RecursionError):
            parsed = _numbers_of(text)
        if isinstance(parsed, dict):
            meta.update(parsed)
    return meta


def _numbers_of(text: str) -> dict[str, Any]:
    """Of a header that is no JSON (a quote left bare in some value), the plain numbers that stand in it."""
    return {key: int(value) for key, value in re.findall(r'"(\w+)"\s*:\s*(\d{1,19})\b', text)}
