"""A piece of a trace as the reader in C scans it, by itself: it gives up, or finds what the general decoder finds."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import msgspec

from tests.fuzz import seeds as known
from tests.fuzz.seeds import WORDS
from tests.fuzz.targets import changed_json, written
from tracekit.trace.reading.native import BUILT, Columns, PlainPieces

_STRICT = msgspec.json.Decoder()


def seeds() -> Iterator[bytes]:
    for document in known.traces():
        yield written(document["traceEvents"])


def change(data: bytes, random: Random) -> bytes:
    return changed_json(data, random, WORDS)


def take(data: bytes, folder: Path) -> None:
    assert BUILT, "the reader in C is not built"
    numbers: dict[object, int] = {}

    def number(value: object) -> int:
        return numbers.setdefault(value, len(numbers))

    pieces, columns = PlainPieces(number, number, number), Columns()
    columns.begin(len(data))
    # All of it, what is within the brackets, and then the same again, whose names are known by now.
    for start in (0, 1, 1):
        scanned = pieces.read(data, start, len(data) - 1, columns) if start < len(data) else None
        if scanned is None:
            continue
        # As the general decoder does, the scanner passes over texts that nobody reads, whatever they are made of.
        text = data[start:-1].decode("utf-8", "replace").encode()
        events = [event for event in _STRICT.decode(b"[" + text + b"]") if event.get("ph") == "X"]
        rows = slice(scanned.first, columns.rows)
        assert len(events) == columns.rows - scanned.first
        names = {number: name for name, number in numbers.items()}
        assert [names[code] for code in columns.arrays[3][rows].tolist()] == [event["name"] for event in events]
        columns.begin(len(data))
