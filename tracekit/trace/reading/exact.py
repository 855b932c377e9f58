"""Microseconds with decimals, as text or as float64, to integer nanoseconds: exactly, half to even."""

import re
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tracekit.base.intervals import NO_INTS, Bools, Ints

_LIMIT_NS = 1 << 61  # sums of two still fit an int64
_DIGITS = 19  # this many fit an int64, unless the first is a 9
_EXACTLY = Context(prec=80, rounding=ROUND_HALF_EVEN)
_THOUSAND, _ONE = Decimal(1000), Decimal(1)
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")  # as JSON writes it
_QUOTE = ord('"')


def from_text(text: bytes) -> int | None:
    """Nanoseconds of a JSON number of microseconds, in quotes or not; None if it is not a time (`null`, NaN, beyond
    int64)."""
    if text[:1] == b'"':
        text = unquoted(text)
    if text[-4:-3] == b"." and text[-3:].isdigit():  # what Kineto writes: three decimals
        try:
            ns = int(text[:-4] + text[-3:])
            return ns if -_LIMIT_NS < ns < _LIMIT_NS else None
        except ValueError:
            pass
    try:  # any other spelling, by decimal arithmetic
        us = Decimal(text.decode("ascii", "replace"))
        if not us.is_finite() or us.adjusted() > 20:
            return None
        ns = int((us * _THOUSAND).quantize(_ONE, context=_EXACTLY)) if us.adjusted() > -20 else 0
    except (InvalidOperation, ValueError):
        return None
    return ns if -_LIMIT_NS < ns < _LIMIT_NS else None


def unquoted(text: bytes) -> bytes:
    """The number that a JSON string holds, as Ascend's profiler writes its times; `null` if it holds anything else."""
    try:
        number = msgspec.json.decode(text, type=str)
    except (msgspec.DecodeError, UnicodeError):
        return b"null"
    return number.encode() if NUMBER.fullmatch(number) else b"null"


def from_texts(texts: Sequence[Any]) -> tuple[Ints, Bools]:
    """Nanoseconds of many JSON numbers, given as objects that hold bytes, and which of them are times.

    Texts of equal length with the decimal point in the same place are read together, digit by digit: 30 ns each instead
    of 700.
    """
    together = np.frombuffer(b",".join([*texts, b""]), np.uint8)
    if len(texts) and len(together) % len(texts) == 0:  # nearly always: all have the same length
        ns, valid = _alike(together.reshape(len(texts), -1))
        if valid.all():
            return ns, valid
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    ns, valid = np.zeros(len(texts), np.int64), np.zeros(len(texts), bool)
    starts = np.cumsum(lengths + 1) - lengths - 1
    if (together[starts] == _QUOTE).any():
        return from_texts([unquoted(text) if text[:1] == b'"' else text for text in map(bytes, texts)])
    for length in np.flatnonzero(np.bincount(lengths)).tolist():
        if 0 < length <= _DIGITS + 1:
            rows = np.flatnonzero(lengths == length)
            ns[rows], valid[rows] = _alike(together[starts[rows, None] + np.arange(length + 1)])
    for row in np.flatnonzero(~valid).tolist():
        exactly = from_text(bytes(texts[row]))
        ns[row], valid[row] = exactly or 0, exactly is not None
    return ns, valid


def _alike(texts: NDArray[np.uint8]) -> tuple[Ints, Bools]:
    """The texts, each a row that ends in a comma, that are digits with the point where the first row has it and at most
    three decimals."""
    characters = np.ascontiguousarray(texts.T)  # the first of each text, the second of each text …
    end = len(characters) - 1
    points = np.flatnonzero(texts[0] == ord("."))
    point = int(points[0]) if len(points) else end
    decimals = max(end - point - 1, 0)
    scaled = point + 3
    ns = np.zeros(len(texts), np.int64)
    if decimals > 3 or point == 0 or len(points) > 1 or scaled > _DIGITS:
        return ns, np.zeros(len(texts), bool)
    valid = characters[end] == ord(",")
    if point < end:
        valid &= characters[point] == ord(".")
    digits = characters - np.uint8(ord("0"))  # anything but a digit wraps to more than 9
    for place in (place for place in range(end) if place != point):
        valid &= digits[place] <= 9
        ns *= 10
        ns += digits[place]
    ns *= 10 ** (3 - decimals)
    if scaled == _DIGITS:
        valid &= digits[0] < 9
    return ns, valid & (ns < _LIMIT_NS)


def from_numbers(numbers: Sequence[int | float | str]) -> tuple[Ints, Bools]:
    """Nanoseconds of decoded numbers, and which of them are certain to be what the text said; none is if one was in
    quotes.

    A float64 lies within half a unit in the last place of its text; where that could move the result to the next
    nanosecond, the text itself has to be read.
    """
    column = np.array(numbers) if len(numbers) else NO_INTS
    if column.dtype == np.int64:
        safe = np.abs(column) < _LIMIT_NS // 1000
        return np.where(safe, column, 0) * 1000, safe
    if column.dtype != np.float64:
        return np.zeros(len(numbers), np.int64), np.zeros(len(numbers), bool)
    sized = np.isfinite(column) & (np.abs(column) < _LIMIT_NS // 1000)
    column = np.where(sized, column, 0.0)
    whole_us = np.floor(column)
    rest_ns = (column - whole_us) * 1000  # the difference is exact
    rounded = np.rint(rest_ns)
    error_ns = np.spacing(np.abs(column)) * 500 + np.spacing(1000.0)
    certain = np.abs(np.abs(rest_ns - rounded) - 0.5) > error_ns
    return whole_us.astype(np.int64) * 1000 + rounded.astype(np.int64), certain & sized
