"""Parses one by one the events that the fast path refuses; damage is repaired or counted."""

import json
import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec
from msgspec import Struct, field

from tracekit.trace.reading import exact
from tracekit.trace.reading.chunks import SEPARATOR
from tracekit.trace.reading.event_details import NOTHING, Args, CommunicationEvent, Event, Length, Scalar

_EVENT = msgspec.json.Decoder(CommunicationEvent)
_LENGTH = msgspec.json.Decoder(Length)
_SCALARS = [(field.name, field.encode_name) for field in msgspec.structs.fields(Args) if field.default is None]
_BROKEN = (msgspec.DecodeError, UnicodeError, ValueError, RecursionError)
_BOUNDARY = re.compile(SEPARATOR.pattern.decode())
_CLOSES = re.compile(r"\}\s*(?=\])")
# What is before and after the text of a name: Kineto before 2.14 does not escape quotes in it.
_NAME_OPENS = re.compile(r'"name":\s*"')
_NAME_CLOSES = re.compile(r'"\s*,\s*"(?:pid|ph|cat|ts|tid|args|id)"\s*:')
_BARE_QUOTE = re.compile(r'(?<!\\)"')
_LAST_COMMA = re.compile(r",\s*([}\]])")
_NO_VALUE = re.compile(r'(":)\s*+(?:(?:-?(?:inf|nan)|N/A)\s*+)?([,}])', re.IGNORECASE)
_OPENERS, _CLOSERS = ("{", "[", ",", ":", "\\"), (",", ":", "}", "]")
_LONGEST_MENDED_EVENT = 1 << 16  # characters of a broken event that are worth mending
_SPACE = " \t\r\n,"
_WINDOW = 1 << 12  # characters of a text that are parsed first
_NEAR_ITS_END = 16  # characters: an error there may be because a window ends
_CLOSINGS = 20  # brackets tried, at the end of a file, for the one that closes the list of events


def _exactly(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent of twenty digits
        return Decimal("NaN")


_LENIENT = json.JSONDecoder(strict=False, parse_float=_exactly)


class LenientResult(Struct):
    """What a text held: the events, the text of their durations, and where their list ended, if it did."""

    events: list[Event] = field(default_factory=list)
    lengths: list[bytes] = field(default_factory=list)
    lost: int = 0
    mended: int = 0
    closing: int | None = None  # byte after the bracket

    def take(self, objects: Sequence[Any]) -> None:
        """Events from parsed JSON; anything of the wrong kind counts as absent."""
        for item in objects:
            if isinstance(item, dict):
                args, start = item.get("args"), _number(item.get("ts"))
                arguments = Args()
                for name, key in _SCALARS:
                    setattr(arguments, name, _scalar(args.get(key)) if isinstance(args, dict) else None)
                ph, cat, label, pid, tid = (_scalar(item.get(key)) for key in ("ph", "cat", "name", "pid", "tid"))
                ts = msgspec.Raw(_digits(start)) if start is not None else NOTHING
                self.events.append(Event(ph, cat, label, pid, tid, ts=ts, args=arguments))
                self.lengths.append(str(_number(item.get("dur"))).encode())
                self.mended += _has_wrong_kind(item)
            else:
                self.lost += 1


def read_one_by_one(chunk: bytes) -> LenientResult:
    """The events of a JSON array whose first byte is a bracket or a comma, and which may end anywhere."""
    text = chunk.decode("utf-8", "surrogateescape")
    read = LenientResult()
    position = _skip(text, 1)
    boundary = _BOUNDARY.search(text, position)
    while position < len(text):
        if text[position] == "]":
            read.closing = len(text[: position + 1].encode("utf-8", "surrogateescape"))
            break
        while boundary is not None and boundary.start() < position:
            boundary = _BOUNDARY.search(text, boundary.end())
        end = boundary.start() + 1 if boundary is not None else None
        position = _skip(text, _read_one(read, text, position, end))
    return read


def _read_one(read: LenientResult, text: str, start: int, end: int | None) -> int:
    """Read the event at a position; `end` is where it should end by its boundary. Returns the position after it."""
    if end is not None and _typed(read, text[start:end]):
        return end
    if (parsed := _parsed(text, start)) is not None:
        item, after = parsed
        following = _skip(text, after)
        if following == len(text) or text[after:following].count(",") or text[following] == "]":
            if not _typed(read, text[start:after]):  # the typed reader preserves more of the arguments
                read.take([item])
                read.mended += not _strict(text[start:after])
            return after
    if end is not None:
        return _mended(read, text, start, end) or _lost_up_to(read, end)
    for attempt, bracket in enumerate(_CLOSES.finditer(text, start)):
        after = _mended(read, text, start, bracket.start() + 1)
        if after or attempt == _CLOSINGS:
            return after or _lost_up_to(read, len(text))
    return _mended(read, text, start, len(text)) or _lost_up_to(read, len(text))


def _parsed(text: str, start: int) -> tuple[Any, int] | None:
    """The value at a position, and the position after it; None if none is there.

    Python's parser counts the lines up to an error, so it is given no more of the text than it needs.
    """
    size = _WINDOW
    while True:
        window = text[start : start + size]
        try:
            item, length = _LENIENT.raw_decode(window)
        except json.JSONDecodeError as error:
            is_cut = error.pos > len(window) - _NEAR_ITS_END or error.msg.startswith("Unterminated")
            if not is_cut or start + size >= len(text):
                return None
        except (ValueError, RecursionError):
            return None
        else:
            return item, start + length
        size *= 16


def _typed(read: LenientResult, piece: str) -> bool:
    try:
        raw = piece.encode("utf-8", "surrogateescape")  # the bytes of the file, which `decode` reads in whole chunks
        event, length = _EVENT.decode(raw), _LENGTH.decode(raw)
    except _BROKEN:
        return False
    read.events.append(event)
    read.lengths.append(bytes(length.dur))
    return True


def _strict(piece: str) -> bool:
    try:
        msgspec.json.decode(piece.encode())
    except _BROKEN:
        return False
    return True


def _mended(read: LenientResult, text: str, start: int, end: int) -> int:
    """Read a damaged piece, repaired in one way after another; 0 if nothing helps."""
    if end - start > _LONGEST_MENDED_EVENT:
        return 0
    piece = text[start:end]
    escaped = piece
    if (opens := _NAME_OPENS.search(piece)) and (closes := _NAME_CLOSES.search(piece, opens.end())):
        name = _BARE_QUOTE.sub(r"\\\"", piece[opens.end() : closes.start()])
        escaped = piece[: opens.end()] + name + piece[closes.start() :]
    for attempt in (escaped, _valued(escaped), _valued(_quoted(piece))):
        try:
            item, after = _LENIENT.raw_decode(attempt)
        except (ValueError, RecursionError):
            continue
        if not attempt[after:].strip(_SPACE) and isinstance(item, dict):
            read.take([item])
            read.mended += not _has_wrong_kind(item)
            return end
    return 0


def _valued(piece: str) -> str:
    """Repair commas with nothing after them and values that are not JSON: `inf`, `N/A`, or none at all."""
    return _NO_VALUE.sub(r"\1 null\2", _LAST_COMMA.sub(r"\1", piece))


def _quoted(piece: str) -> str:
    """The text with every quote escaped that neither opens nor closes a string: it has no bracket, colon or comma
    beside it."""
    characters = []
    for index, character in enumerate(piece):
        if (
            character == '"'
            and piece[max(index - 64, 0) : index].rstrip()[-1:] not in _OPENERS
            and piece[index + 1 : index + 65].lstrip()[:1] not in _CLOSERS
        ):
            characters.append("\\")
        characters.append(character)
    return "".join(characters)


def _lost_up_to(read: LenientResult, end: int) -> int:
    """Counts what stands before `end` as lost; reading goes on there."""
    read.lost += 1
    return end


def _has_wrong_kind(item: dict[str, Any]) -> bool:
    """Whether a value of the event is of the wrong kind, so that the event is read without it."""
    args, length = item.get("args"), item.get("dur")
    values = (value for key in ("cat", "name", "pid", "tid") if (value := item.get(key)) is not None)
    wrong = (args is not None and not isinstance(args, dict)) or (length is not None and _number(length) is None)
    return item.get("ph") == "X" and (wrong or any(_scalar(value) is None for value in values))


def _scalar(value: object) -> Scalar:
    """A value of a column; of a text, bytes that are not UTF-8 and halves of surrogate pairs are replaced."""
    if isinstance(value, str):
        try:
            return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        except UnicodeEncodeError:
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, Decimal):
        return float(value)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _number(value: Any) -> int | float | Decimal | str | None:
    if isinstance(value, str):
        return value if exact.NUMBER.fullmatch(value) else None
    return value if isinstance(value, int | float | Decimal) and not isinstance(value, bool) else None


def _digits(number: int | float | Decimal | str) -> bytes:
    try:
        return str(number).encode()
    except ValueError:  # an integer of thousands of digits
        return b"overlong"


def _skip(text: str, position: int) -> int:
    while position < len(text) and text[position] in _SPACE:
        position += 1
    return position
