"""A stream of JSON bytes, cut at event boundaries into chunks that each are a JSON array of events.

This does not rely on how a writer breaks lines. Events are separated by `}` `,` `{` and a key that events begin with,
with any white space between them, which cannot occur inside a JSON string. `events_again` is for what only a few
questions need, and is not kept.
"""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from tracekit.errors import TracekitError
from tracekit.trace.reading.source import Source

_Item = TypeVar("_Item")
CHUNK_BYTES = 2 << 20  # so that what is decoded stays in the processor's cache: 16 MiB take 1.4 times as long
EVENT_BYTES = 64 << 20  # a longer event is skipped, and counted as lost
_BYTES_KEPT_OF_TEXT = 16 << 20  # bytes of the text before and after the events that are stored
_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
_OVERLAP = 4096  # a separator with more white space than this is not recognised
_KEY = rb'\{\s*"(?:ph|name|cat|pid|tid|ts|dur|args|s|bp)"\s*:'
SEPARATOR = re.compile(rb"\}[ \t\r\n]*,[ \t\r\n]*(?=" + _KEY + rb")")
_OPENS = re.compile(_KEY)
_SPACE = b" \t\r\n"
_BOM = b"\xef\xbb\xbf"
_LENIENT = json.JSONDecoder(strict=False)
_PATIENCE = 8  # chunks that are read without finding a whole event
_LOOKED_AT = 1 << 20  # bytes of one event that are parsed to see whether it is one
_TRIES = 400  # braces looked at, from the last one back, for a boundary with a whole event before it


def after_bracket(text: bytes | bytearray) -> int | None:
    """Where the first event begins, right after the bracket that opens the list; None if no list has begun."""
    bare = text[:64].lstrip(_SPACE + _BOM)
    if bare[:1] == b"[":
        return text.index(b"[") + 1
    opened = _EVENTS.search(text)
    return opened.end() if opened else None


class NoEventsError(Exception):
    """The stream holds no list of events."""


class Chunks:
    """Iterates over memoryviews, each a JSON array that is valid until the next one is requested.

    `header` holds the text before the events; `tail`, at the end, holds the last events and what follows them. The cuts
    depend only on the bytes: two processes that read the same file cut it alike.
    """

    def __init__(self, source: Source, chunk_bytes: int = CHUNK_BYTES) -> None:
        self._source = source
        self._chunk_bytes = chunk_bytes
        self._buffer = bytearray()  # of a small file, most would never be used
        self._fill = 0
        self.header = b""
        self.tail = b""
        self.bytes_read = 0
        self.lost = 0  # events that are too long
        self.header_lost = False  # whether the header is too long

    def __iter__(self) -> Iterator[memoryview]:
        """Cut the stream. Raises NoEventsError if it holds no list of events."""
        self._open_list()
        while True:
            ended = self._more()
            comma = self._last_boundary(self._fill >= self._chunk_bytes * _PATIENCE)
            if comma is None:
                if ended:
                    break
                if self._fill >= EVENT_BYTES:
                    self._skip_event()
                continue
            buffer = self._buffer
            buffer[0:1], buffer[comma : comma + 1] = b"[", b"]"
            yield memoryview(buffer)[: comma + 1]
            # The comma stays as the first byte, and becomes the bracket of the next chunk.
            rest = buffer[comma : self._fill]
            rest[0:1] = b","
            self._put(rest)
            if ended:
                break
        self.tail = bytes(memoryview(self._buffer)[: self._fill])

    def _put(self, content: bytes | bytearray) -> None:
        """Replace the content of the buffer."""
        if len(self._buffer) < len(content):
            self._buffer = bytearray(len(content))
        self._buffer[: len(content)] = content
        self._fill = len(content)

    def _more(self) -> bool:
        """Read another chunk; returns whether the stream has ended."""
        chunk_bytes = self._chunk_bytes
        if len(self._buffer) < self._fill + chunk_bytes:
            room = self._fill + max(chunk_bytes, self._fill)
            grown = bytearray(max(room, 2 * len(self._buffer)))  # decoded values may refer to the old one
            grown[: self._fill] = memoryview(self._buffer)[: self._fill]
            self._buffer = grown
        count = self._source.readinto(memoryview(self._buffer)[self._fill : self._fill + chunk_bytes])
        self._fill += count
        self.bytes_read += count
        return count < chunk_bytes

    def _open_list(self) -> None:
        """Read up to the first event, so that the buffer begins with the `[` of the events."""
        searched = 0
        while True:
            ended = self._more()
            start = self._buffer[:64].lstrip(_SPACE + _BOM)[:1]
            if not self.header_lost and start == b"[":
                self._put(self._buffer[self._buffer.index(b"[") : self._fill])
                return
            events = _EVENTS.search(self._buffer, searched, self._fill)
            if events:
                self.header = bytes(memoryview(self._buffer)[: events.end() - 1])
                self._put(self._buffer[events.end() - 1 : self._fill])
                return
            if ended or (not self.header_lost and bytes(start) not in (b"", b"{")):
                self.header = bytes(self._buffer[: min(self._fill, _BYTES_KEPT_OF_TEXT)])
                raise NoEventsError
            if self._fill > _BYTES_KEPT_OF_TEXT * 2:
                self.header_lost = True
                self._put(b" " + self._buffer[self._fill - _OVERLAP : self._fill])
            searched = max(self._fill - _OVERLAP, 0)

    def _last_boundary(self, any_will_do: bool) -> int | None:
        """The position of the last comma between two events: one after a whole event, if there is any.

        Objects inside an event's args may look like events, but only a whole event has a phase and is followed by a
        comma.
        """
        last: int | None = None
        buffer, brace = self._buffer, self._fill
        for _ in range(_TRIES):
            brace = buffer.rfind(b"{", 1, brace)
            if brace < 0:
                break
            if _OPENS.match(buffer, brace, self._fill) is None:
                continue
            comma = _position_before(buffer, brace - 1, b",")
            if comma is not None and _position_before(buffer, comma - 1, b"}") is not None:
                last = comma if last is None else last
                if (after := _after_event(buffer, comma + 1, self._fill)) is not None:
                    return after
        if last is not None and (after := _after_event(buffer, 1, self._fill)) is not None:
            return after
        return last if any_will_do else None

    def _skip_event(self) -> None:
        """Skip an event that is too long, and continue after the next boundary."""
        self.lost += 1
        while True:
            self._put(self._buffer[self._fill - _OVERLAP : self._fill])
            ended = self._more()
            separator = SEPARATOR.search(self._buffer, 0, self._fill)
            if separator:
                self._put(b"," + self._buffer[separator.end() : self._fill])
                return
            if ended:
                self._put(b"[")
                return


def _after_event(buffer: bytearray, start: int, end: int) -> int | None:
    """The position of the comma after the event that starts there; None if no whole event starts there."""
    end = min(end, start + _LOOKED_AT)
    text = bytes(memoryview(buffer)[start:end]).decode("utf-8", "surrogateescape")
    try:
        event, after = _LENIENT.raw_decode(text, len(text) - len(text.lstrip()))
    except (ValueError, RecursionError):
        return None
    rest = text[after:].lstrip()
    if not isinstance(event, dict) or "ph" not in event or rest[:1] != ",":
        return None
    return end - len(rest.encode("utf-8", "surrogateescape"))


def _position_before(buffer: bytearray, position: int, character: bytes) -> int | None:
    """The position of a character: at `position`, or before it with only white space between."""
    lowest = max(position - _OVERLAP, 0)
    while position > lowest and buffer[position] in _SPACE:
        position -= 1
    return position if position >= 0 and buffer[position] == character[0] else None


def events_again(
    path: Path,
    decoder: msgspec.json.Decoder[list[_Item]],
    markers: Sequence[bytes] = (b"",),
    *,
    of_cut_file: bool = False,
) -> Iterator[list[_Item]]:
    """The events of a file, some at a time, without those of damaged chunks and of chunks that lack all these bytes.

    With `of_cut_file`, the last events of a file that was cut count, too, up to the last that has another behind it. A
    file that no longer exists, such as that of a trace read from a pipe, has no events.
    """
    with suppress(NoEventsError, TracekitError), Source(path) as source:
        chunks = Chunks(source)
        for chunk in chunks:
            text = bytes(chunk)
            yield _decoded(decoder, text) if any(marker in text for marker in markers) else []
        yield _decoded(decoder, _list_in(chunks.tail, of_cut_file))


def _decoded(decoder: msgspec.json.Decoder[list[_Item]], chunk: bytes) -> list[_Item]:
    try:
        return decoder.decode(chunk)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return []


def _list_in(tail: bytes, of_cut_file: bool) -> bytes:
    """The list of events at the beginning of a file's last bytes, after the bracket or the comma before them."""
    text = "[" + tail.decode("utf-8", "replace")[1:]
    with suppress(ValueError, RecursionError):
        return text[: _LENIENT.raw_decode(text)[1]].encode()
    if not of_cut_file:
        return b""
    end = max((boundary.start() + 1 for boundary in SEPARATOR.finditer(tail)), default=1)
    return b"[" + tail[1:end] + b"]"
