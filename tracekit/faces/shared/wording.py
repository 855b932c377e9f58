"""The words that faces share."""

from tracekit.faces.shared.cells import NOTHING
from tracekit.report.blocks import Note
from tracekit.report.breakdown import TOTAL, Breakdown
from tracekit.units import percent, thousandths

NOISE = "~ noise"
OUTSIDE = "≠"
_ONE_TRACE = "one trace"


def rests_on(numbers: Breakdown, name: str) -> str:
    """What heads what is said of differences: `5 pairs` of traces, or `one trace` each, which claims
    nothing about other traces."""
    difference = numbers.differences.get(name)
    return f"{difference.pairs} pairs" if difference is not None and difference.pairs else _ONE_TRACE


def certainty(numbers: Breakdown, key: str, name: str) -> str:
    """What stands beside a difference: what speaks against it or, where it rests on pairs, its interval."""
    difference = numbers.differences.get(name)
    doubt_text = doubt(numbers, key, name)
    if doubt_text not in {"", OUTSIDE} or difference is None or not difference.pairs or not numbers.deltas[key][name]:
        return doubt_text
    ends = difference.interval_of(key or None)
    if ends is None:
        return ""
    interval = " … ".join(thousandths(round(end * 1000 / numbers.scale_ns), signed=True) for end in ends)
    return f"{doubt_text} {interval}".strip()


def is_noise(numbers: Breakdown, key: str, name: str) -> bool:
    """Whether the scatter of pairs, or of the steps, alone explains a difference that is shown."""
    difference = numbers.differences.get(name)
    bounds = difference and difference.interval_of(key or None)
    return bool(bounds and any(bounds) and bounds[0] <= 0 <= bounds[1])


def doubt(numbers: Breakdown, key: str, name: str) -> str:
    """What speaks against a difference besides its being from one trace each: the scatter of pairs or of steps, that
    the pairs show another one or, for the whole, the unprofiled passes."""
    if key == TOTAL and name in numbers.contradicted:
        return f"unprofiled: {numbers.contradicted[name]}"
    if is_noise(numbers, key, name):
        return NOISE
    difference = numbers.differences.get(name) if numbers.deltas[key][name] else None
    return OUTSIDE if difference is not None and difference.is_outside(key or None) else ""


def mark(numbers: Breakdown, key: str, name: str) -> str:
    """The sign of a doubt where there is no room for words: `≠` where other measurements show another difference, `~`
    where they show that there may be none."""
    doubt_text = doubt(numbers, key, name)
    if key == TOTAL and numbers.contradicted.get(name) in {"slower", "faster", "smaller", "larger"}:
        return OUTSIDE
    return doubt_text[:1] if doubt_text in {"", OUTSIDE} else "~"


def taken(numbers: Breakdown, key: str, name: str) -> str:
    """What a part takes, `0.869`; `·` for a part of nothing."""
    return _or_nothing(numbers.cells[key][name], key, signed=False)


def change(numbers: Breakdown, key: str, name: str) -> str:
    """Its difference from the baseline, `+0.054`; `·` where a part does not differ."""
    return _or_nothing(numbers.deltas[key][name], key, signed=True)


def _or_nothing(value: int, key: str, signed: bool) -> str:
    return thousandths(value, signed) if value or key == TOTAL else NOTHING


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
