"""A series as a line of small bars; steps that compile are marked, so that they do not dwarf the others."""

from tracekit.report.blocks import Line
from tracekit.units import count, duration, size

COMPILES, UNKNOWN = "C", "?"
_HEIGHTS = "▁▂▃▄▅▆▇█"


def glyphs(line: Line, width: int) -> str:
    """One cell for each step or group of steps: the longest step in it, `C` if any compiles, `?` if unknown."""
    top = max(line.usual, default=0)
    return "".join(_glyph(line, group, top) for group in line.groups(width))


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


def _glyph(line: Line, group: slice, top: int) -> str:
    if "compiles" in line.marks[group]:
        return COMPILES
    values = [value for value in line.values[group] if value is not None]
    if not values:
        return UNKNOWN
    return _HEIGHTS[min(max(int(max(values) / max(top, 1) * len(_HEIGHTS)), 0), len(_HEIGHTS) - 1)]
