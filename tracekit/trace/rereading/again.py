"""Reads a trace file once more, for what the tables of a trace do not hold."""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from tracekit.errors import TracekitError
from tracekit.trace.reading.chunks import Chunks, NoEventsError
from tracekit.trace.reading.source import Source

T = TypeVar("T")


def events_again(path: Path, decoder: msgspec.json.Decoder[list[T]], wanted: Sequence[bytes]) -> Iterator[list[T]]:
    """The events of the file, some at a time, without those of damaged chunks and of chunks that lack all these bytes.

    A file that no longer exists, such as that of a trace read from a pipe, has no events.
    """
    with suppress(NoEventsError, TracekitError), Source(path) as source:
        chunks = Chunks(source)
        for chunk in chunks:
            text = bytes(chunk)
            yield _decoded(decoder, text) if any(each in text for each in wanted) else []
        yield _decoded(decoder, _list_in(chunks.tail))


def _decoded(decoder: msgspec.json.Decoder[list[T]], chunk: bytes) -> list[T]:
    try:
        return decoder.decode(chunk)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return []


def _list_in(tail: bytes) -> bytes:
    """The list of events at the beginning of a file's last bytes, after the bracket or the comma before them."""
    text = "[" + tail.decode("utf-8", "replace")[1:]
    try:
        _, end = json.JSONDecoder(strict=False).raw_decode(text)
    except (ValueError, RecursionError):
        return b""
    return text[:end].encode()
