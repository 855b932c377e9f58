"""The words and signs that faces share: how sure a figure is, the margin beside a line of source, and a series as a
line of small bars, in which steps that compile are marked, so that they do not dwarf the others.
"""

import re

from tracekit.base.units import count, duration, percent, size, thousandths
from tracekit.faces.shared.cells import NOTHING
from tracekit.report.blocks import Excerpt, Line, Note
from tracekit.report.breakdown import TOTAL, Breakdown

# The space between a number and its unit.
UNIT = re.compile(r"(?<=\d) (?=(?:[nµm]?s|min|h|%|×|[KMGT]?i?B)(?!\w))")
NOISE = "~ noise"
OUTSIDE = "≠"
_ONE_TRACE = "one trace"
COMPILES, UNKNOWN = "C", "?"
_HEIGHTS = "▁▂▃▄▅▆▇█"


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


def glyphs(line: Line, width: int) -> str:
    """One cell for each step or group of steps: the longest step in it, `C` if any compiles, `?` if unknown."""
    top = max(line.usual, default=0)
    cells = []
    for group in line.groups(width):
        values = [value for value in line.values[group] if value is not None]
        if "compiles" in line.marks[group]:
            cells.append(COMPILES)
        elif not values:
            cells.append(UNKNOWN)
        else:
            height = int(max(values) / max(top, 1) * len(_HEIGHTS))
            cells.append(_HEIGHTS[min(max(height, 0), len(_HEIGHTS) - 1)])
    return "".join(cells)


def legend(line: Line, marked: bool = True) -> str:
    """Which steps these are, how long they take, and how many compile or are unknown, each with its mark."""
    compiles, unknown_mark = (f"{COMPILES} = ", f"{UNKNOWN} = ") if marked else ("", "")
    if not line.steps:
        return "no steps"
    steps_text = f"steps {line.steps[0]}–{line.steps[-1]}" if len(line.steps) > 1 else f"step {line.steps[0]}"
    steps_text = line.span or steps_text
    usual = line.usual
    parts = []
    if usual:
        low, high = value_text(line, min(usual)), value_text(line, max(usual))
        parts.append(high if len(usual) == 1 else f"{low} to {high}")
    compiling = [
        (n, v)
        for n, v, mark in zip(line.steps, line.values, line.marks, strict=True)
        if mark == "compiles" and v is not None
    ]
    if len(compiling) == 1:
        parts.append(f"{compiles}step {compiling[0][0]} compiles, {duration(compiling[0][1])}")
    elif compiling:
        longest = duration(max(value for _, value in compiling))
        parts.append(f"{compiles}{count(len(compiling))} steps compile, up to {longest}")
    if unknown := line.values.count(None):
        parts.append(f"{unknown_mark}{count(unknown)} unknown")
    return f"{steps_text}: {'; '.join(parts)}"


def value_text(line: Line, value: int) -> str:
    """A value of the line as people read it."""
    return size(value) if line.unit == "B" else duration(value)


def margins(block: Excerpt, number: int) -> list[str]:
    """For each variant, `65.4 ms`, `+ 31.5 ms` in kernels shared with other lines, both, or nothing."""
    texts = []
    for name, line_costs in block.costs.items():
        alone, fused = line_costs.get(number), block.fused.get(name, {}).get(number)
        parts = (duration(alone) if alone is not None else "", f"+ {duration(fused)}" if fused is not None else "")
        texts.append(" ".join(filter(None, parts)))
    return texts
