"""The words that faces share."""

from math import ceil, floor

from tracekit.report.blocks import Note
from tracekit.report.breakdown import TOTAL, Breakdown
from tracekit.units import percent, thousandths

NOISE = "~ noise"


def interval(numbers: Breakdown, key: str, name: str) -> str:
    """The interval of a difference in the breakdown's unit; `–` if none can be given, empty if all of it is 0.

    Its ends are rounded outwards, because the difference, which is rounded so that the cells add up, could otherwise
    lie outside of it.
    """
    difference = numbers.differences.get(name)
    bounds = difference and (difference.intervals[key] if key != TOTAL else difference.delta_interval)
    if not bounds:
        return "–"
    low, high = (rounded(end * 1000 / numbers.scale_ns) for rounded, end in zip((floor, ceil), bounds, strict=True))
    return f"{thousandths(low, signed=True)} … {thousandths(high, signed=True)}" if low or high else ""


def is_noise(numbers: Breakdown, key: str, name: str) -> bool:
    """Whether a difference that is shown is within noise."""
    difference = numbers.differences.get(name)
    if difference is None or interval(numbers, key, name) in ("–", ""):
        return False
    return difference.is_noise(key if key != TOTAL else None)


def uncertainty(numbers: Breakdown, key: str, name: str) -> str:
    """The interval, and whether the difference is within noise."""
    shown = interval(numbers, key, name)
    return f"{shown} {NOISE}" if is_noise(numbers, key, name) else shown


def label(numbers: Breakdown, key: str) -> str:
    """The label of a row of the breakdown."""
    part = numbers.part(key)
    return part.label if part is not None else "total"


def share(numbers: Breakdown, key: str, name: str) -> str:
    """Its share of the whole, before rounding; empty if it is nothing, or everything."""
    if key == TOTAL or not numbers.cells[key][name]:
        return ""
    parts = numbers.means[name]
    return percent(parts[key] / sum(parts.values()))


def note_text(note: Note) -> str:
    """A note without its kind: the variants and the text."""
    return f"{', '.join(note.variants)}: {note.text}" if note.variants else note.text
