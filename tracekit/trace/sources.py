"""The formats that a trace may have, and how one is loaded: from the cache, or else by the reader of its format.

A format is one entry here: how its file is recognised, and read. The first entry that recognises a file reads it.
Everything behind `Trace` sees only its tables.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from msgspec import Struct

from tracekit.base import disclosure
from tracekit.base.workspace import workspace_anywhere
from tracekit.trace.model import Trace
from tracekit.trace.reading import kineto, nsys
from tracekit.trace.reading.convert import ReadWatch
from tracekit.trace.reading.source import local
from tracekit.trace.reading.tables import EVENTS_FILE, STORED, Reading
from tracekit.trace.storing import cache

_HEAD = 1 << 10  # bytes
_MAX_WORKERS = 4  # workers, each of which decompresses the whole file
_TABLES = ("tracks", "communications", "notes")  # beside the events
_FACTS = ("meta", "lost", "mended", "cut_short", "in_order", "damage", "header_lost")


# Called with the path and the name of the file in messages, and with `folder` for unfinished work, `tables` for the
# events of a large trace, `workers` and `watch`, of which all but the path may be missing. Raises NotATraceError and
# EmptyTraceError, and what opening the file raises.
Read = Callable[..., Reading]


class TraceSource(Struct, frozen=True):
    """A format: `recognises` looks at the path and the first bytes of a file; a trace in JSON can be read again for
    what is not kept (`rereading`), and be added to."""

    name: str
    recognises: Callable[[Path, bytes], bool]
    read: Read
    is_json: bool = False


SOURCES = {
    source.name: source
    for source in (
        TraceSource("nsys", nsys.recognises, nsys.read),
        TraceSource("kineto", lambda path, head: True, kineto.read, is_json=True),
    )
}


def load(
    path: Path, use_cache: bool | None = None, workers: int | None = None, watch: ReadWatch | None = None
) -> Trace:
    """The trace at a path, an address, or `-` for standard input. Raises a TracekitError that says what to do.

    Without `use_cache`, the environment decides: TRACEKIT_NO_CACHE turns it off.
    """
    if use_cache is None:
        use_cache = cache.is_on()
    if workers is None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        workers = min(cores, _MAX_WORKERS)
    trace, filter_ = _loaded(path, use_cache, workers, watch), disclosure.current()
    return filter_.trace(trace) if filter_ is not None else trace


def _loaded(path: Path, use_cache: bool, workers: int, watch: ReadWatch | None) -> Trace:
    with local(path, cache.home() / "work") as file:
        content = cache.content_of(file) if use_cache else None
        entry = cache.find(content) if content else None
        recalled = _recalled(path, entry, workers) if entry is not None else None
        return recalled or _read(path, file, content, workers, watch)


def _read(path: Path, file: Path, content: str | None, workers: int, watch: ReadWatch | None) -> Trace:
    with workspace_anywhere(cache.home() / "work") as folder:
        tables: Path | None = None
        if folder is not None:
            with suppress(OSError):
                (folder / "tables").mkdir()
                tables = folder / "tables"
        source = source_of(file)
        reading = source.read(file, path, folder=folder, tables=tables, workers=workers, watch=watch)
        facts = {**{name: getattr(reading, name) for name in _FACTS}, "source_name": source.name}
        entry = None
        if (
            content is not None
            and reading.file is not None
            and tables is not None
            and reading.bytes_read >= cache.WORTH_BYTES
        ):
            with suppress(OSError):
                for name in _TABLES:
                    table = getattr(reading, name)
                    with pa.ipc.new_file(str(tables / f"{name}.arrow"), table.schema) as writer:
                        writer.write_table(table)
                about = {"path": str(path), "bytes_read": reading.bytes_read, "events": len(reading.events)}
                entry = cache.publish(tables, content, {**facts, **about})
        beside = {name: getattr(reading, name) for name in _TABLES}
        return Trace(path, lambda: reading.events, entry=entry, **beside, **facts)


def _recalled(path: Path, entry: cache.Entry, workers: int) -> Trace | None:
    """The trace of a cache entry; its events stay on disk until they are needed. None if the entry is unusable."""

    def events() -> pa.Table:
        try:
            return entry.columns(EVENTS_FILE, STORED)
        except (OSError, pa.ArrowInvalid, KeyError):
            entry.drop()
            return _loaded(path, True, workers, None).read_events()

    try:
        facts: dict[str, Any] = {name: entry.facts[name] for name in (*_FACTS, "source_name")}
        beside = {name: entry.table(f"{name}.arrow") for name in _TABLES}
        return Trace(path, events, entry=entry, **beside, **facts)
    except (OSError, pa.ArrowInvalid, KeyError, TypeError):
        entry.drop()
        return None


def source_of(path: Path) -> TraceSource:
    """The format of a file. One that cannot be opened has the last, whose reader says why."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except (OSError, ValueError):  # a name with a null byte is no path
        head = b""
    return next(source for source in SOURCES.values() if source.recognises(path, head))
