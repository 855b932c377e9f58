"""The shapes of operators' inputs, read apart from all else: few traces have them, and few questions need them."""

import json
from contextlib import suppress
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa

from tracekit.intervals import Ints
from tracekit.trace.model import Trace
from tracekit.trace.reading import exact
from tracekit.trace.reading.chunks import Chunks, NoEventsError
from tracekit.trace.reading.source import Source

_NOTHING = msgspec.Raw(b"null")


class _Args(msgspec.Struct, gc=False):
    dims: msgspec.Raw = msgspec.field(default=_NOTHING, name="Input Dims")


class _Event(msgspec.Struct, gc=False):
    name: str | None = None
    ts: msgspec.Raw = _NOTHING
    args: _Args | None = None


_EVENTS = msgspec.json.Decoder(list[_Event])


def input_dims(trace: Trace) -> pa.Array:
    """For each event its `Input Dims` as JSON, `[[8, 16], [16, 4]]`; null where it has none, or cannot be read so."""
    if not len(trace.ts_ns):
        return pa.array([], pa.string())
    times, names, texts = _read(trace.path)
    codes = {name: code for code, name in enumerate(trace.names)}
    width, low = len(trace.names) + 1, int(trace.ts_ns[0])
    keys = (trace.ts_ns - low) * width + trace.name_codes
    order = np.argsort(keys, kind="stable")
    asked = (times - low) * width + np.array([codes.get(name, len(codes)) for name in names], np.int64)
    place = np.minimum(np.searchsorted(keys[order], asked), len(keys) - 1)
    row = order[place]
    same = keys[row] == asked
    which = np.full(len(keys), -1, np.int64)
    which[row[same]] = np.flatnonzero(same)
    return pa.array(texts, pa.string()).take(pa.array(which, mask=which < 0))


def _read(path: Path) -> tuple[Ints, list[str], list[str]]:
    """Start, name and dimensions of every event that has any. Of a chunk that is damaged there are none."""
    events: list[_Event] = []
    with Source(path) as source:
        chunks = Chunks(source)
        with suppress(NoEventsError):
            for chunk in chunks:
                events += _shaped(bytes(chunk))
            events += _shaped(_list_in(chunks.tail))
    times, known = exact.from_texts([each.ts for each in events])
    shaped = [each for each, good in zip(events, known.tolist(), strict=True) if good]
    texts = [bytes(each.args.dims).decode("utf-8", "replace") for each in shaped if each.args is not None]
    return times[known], [each.name or "" for each in shaped], texts


def _shaped(chunk: bytes) -> list[_Event]:
    try:
        return [each for each in _EVENTS.decode(chunk) if each.args is not None and bytes(each.args.dims) != b"null"]
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return []


def _list_in(tail: bytes) -> bytes:
    """The list of events that the last bytes of a file begin with, after the bracket or the comma before them."""
    text = "[" + tail.decode("utf-8", "replace")[1:]
    try:
        _, end = json.JSONDecoder(strict=False).raw_decode(text)
    except (ValueError, RecursionError):
        return b""
    return text[:end].encode()
