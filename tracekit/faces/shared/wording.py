"""The words that faces share."""

from tracekit.report.blocks import Note
from tracekit.report.breakdown import TOTAL, Breakdown
from tracekit.units import percent

NOISE = "~ noise"
ONE_TRACE = "one trace"  # heads what is said of differences, which claims nothing about other traces


def is_noise(numbers: Breakdown, key: str, name: str) -> bool:
    """Whether the scatter of the steps alone explains a difference that is shown."""
    difference = numbers.differences.get(name)
    bounds = difference and (difference.intervals[key] if key != TOTAL else difference.delta_interval)
    return bool(bounds and any(bounds) and bounds[0] <= 0 <= bounds[1])


def doubt(numbers: Breakdown, key: str, name: str) -> str:
    """What speaks against a difference besides its being from one trace each: the scatter of the steps, or, for the
    whole, the unprofiled passes."""
    if key == TOTAL and name in numbers.contradicted:
        return f"unprofiled: {numbers.contradicted[name]}"
    return NOISE if is_noise(numbers, key, name) else ""


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
