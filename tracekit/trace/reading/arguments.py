"""What the profiler wrote of some events beside their times: the shapes of inputs, how full the GPU was.

It is read apart from all else, and for the events that somebody asks for: few questions need it, and of few events.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec
import numpy as np

from tracekit.errors import TracekitError
from tracekit.intervals import Ints
from tracekit.trace.model import Trace
from tracekit.trace.reading import exact
from tracekit.trace.reading.chunks import Chunks, NoEventsError
from tracekit.trace.reading.source import Source

_NOTHING = msgspec.Raw(b"null")
Inputs = list[tuple[int, ...]]  # the dimensions of each input; () for what is no tensor, or has none

BYTES_OF_TYPE = {
    **dict.fromkeys(("double", "long", "long int", "int64_t", "c10::complex<float>"), 8),
    **dict.fromkeys(("float", "int"), 4),
    **dict.fromkeys(("c10::BFloat16", "c10::Half", "short", "short int"), 2),
    **dict.fromkeys(("bool", "unsigned char", "signed char", "c10::Float8_e4m3fn", "c10::Float8_e5m2"), 1),
}


class Arguments(msgspec.Struct, gc=False):
    """Of one event, as written; what was not recorded is null."""

    dims: msgspec.Raw = msgspec.field(default=_NOTHING, name="Input Dims")
    kinds: msgspec.Raw = msgspec.field(default=_NOTHING, name="Input type")
    steps: msgspec.Raw = msgspec.field(default=_NOTHING, name="Input Strides")
    occupied: msgspec.Raw = msgspec.field(default=_NOTHING, name="est. achieved occupancy %")
    blocks: msgspec.Raw = msgspec.field(default=_NOTHING, name="blocks per SM")

    @property
    def inputs(self) -> Inputs | None:
        """The dimensions of the inputs of an operator, those of lists of tensors one by one; None without a record."""
        found = _read(self.dims)
        return [*_flat(found)] if isinstance(found, list) else None

    @property
    def strides(self) -> Inputs | None:
        """As `inputs`: by how many numbers each dimension steps."""
        found = _read(self.steps)
        return [*_flat(found)] if isinstance(found, list) else None

    @property
    def types(self) -> list[str]:
        """Of which type each input is: `float`, `c10::BFloat16`, `ScalarList`, ""."""
        found = _read(self.kinds)
        return [str(each) for each in found] if isinstance(found, list) else []

    @property
    def occupancy(self) -> float | None:
        """The part of the GPU's warps that a kernel keeps occupied, as the profiler estimates it from the launch."""
        found = _read(self.occupied)
        return found / 100 if isinstance(found, int | float) else None

    @property
    def blocks_per_sm(self) -> float | None:
        """How many blocks of a kernel each multiprocessor gets; below 1 some get none."""
        found = _read(self.blocks)
        return float(found) if isinstance(found, int | float) else None


class _Event(msgspec.Struct, gc=False):
    name: msgspec.Raw = _NOTHING
    ts: msgspec.Raw = _NOTHING
    args: Arguments | None = None


_EVENTS = msgspec.json.Decoder(list[_Event])


def arguments(trace: Trace, rows: Ints) -> dict[int, Arguments]:
    """By row what was recorded of these events; those of which nothing was are left out. One pass over the file.

    Nothing is known of a trace whose file is not there any more, as that of one that came through a pipe.
    """
    asked = {(int(trace.ts_ns[row]), trace.names[trace.name_codes[row]]): row for row in np.unique(rows).tolist()}
    times = np.unique(trace.ts_ns[rows])
    known: dict[int, Arguments] = {}
    left = len(asked)
    for events in _chunks(trace, _beginnings(times)):
        starts, is_time = exact.from_texts([each.ts for each in events])
        for k in np.flatnonzero(is_time & np.isin(starts, times)).tolist():
            row = asked.pop((int(starts[k]), str(_read(events[k].name))), None)
            if row is not None and (args := events[k].args) is not None:
                known[row] = args
        if len(asked) == 0 < left:
            break
    return known


def _beginnings(times: Ints) -> list[bytes]:
    """What the text of a start begins with, in a few variants; a chunk that holds none of them need not be decoded."""
    if not len(times) or times[0] < 1000:
        return [b""]
    first, last = int(times[0]) // 1000 - 1, int(times[-1]) // 1000 + 1  # whole µs, as they are written
    dropped = len(str(last - first))
    if len(str(first)) != len(str(last)) or len(str(first)) <= dropped:
        return [b""]
    return [str(each).encode() for each in range(first // 10**dropped, last // 10**dropped + 1)]


def _chunks(trace: Trace, beginnings: list[bytes]) -> Iterator[list[_Event]]:
    """The events of the file, some at a time; of a chunk that is damaged, or need not be decoded, there are none."""
    with suppress(NoEventsError, TracekitError), Source(trace.path) as source:
        chunks = Chunks(source)
        for chunk in chunks:
            text = bytes(chunk)
            yield _decoded(text) if any(each in text for each in beginnings) else []
        yield _decoded(_list_in(chunks.tail))


def _decoded(chunk: bytes) -> list[_Event]:
    try:
        return _EVENTS.decode(chunk)
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


def _read(raw: msgspec.Raw) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def _flat(found: list[Any]) -> Iterator[tuple[int, ...]]:
    for each in found:
        if isinstance(each, list) and any(isinstance(inner, list) for inner in each):
            yield from _flat(each)
        elif isinstance(each, list) and all(isinstance(length, int) for length in each):
            yield tuple(each)
        else:
            yield ()
