"""The drawings of the page: stacked bars and steps as SVG, with a description in words."""

import html

from tracekit.faces.shared.prose import UNIT
from tracekit.faces.shared.sparks import value_text
from tracekit.faces.shared.wording import share
from tracekit.names import short
from tracekit.report.blocks import Line
from tracekit.report.breakdown import TOTAL, Breakdown
from tracekit.sanitize import sanitize
from tracekit.units import thousandths

_WIDTH, _HEIGHT = 1000, 22  # of a bar, in units of its own
_STEPS = 500  # bars of a series; if there are more steps, the longest of each group of them is drawn
_BARS_X, _SPAN, _FIGURE, _ROW, _LABEL = 130, 220, 70, 20, 18  # of a waterfall: units, and letters


def escape(text: str) -> str:
    """Text that is shown as it is."""
    return html.escape(sanitize(text))


def prose(text: str) -> str:
    """Sentences, of which no line ends between a number and its unit."""
    return UNIT.sub("\N{NO-BREAK SPACE}", escape(text))


def stacked_bar(block: Breakdown, name: str, longest: int) -> str:
    """A stacked bar; the table also has the parts that are too thin to be seen."""
    x = 0.0
    pieces = []
    for part in block.parts:
        value = block.cells[part.key][name]
        wide = value / longest * _WIDTH
        if value:
            hint = f"{part.label}: {thousandths(value)} {block.unit} {share(block, part.key, name)}"
            pieces.append(
                f'<rect x="{x:.2f}" width="{wide:.2f}" height="{_HEIGHT}" fill="{part.colour}">'
                f"<title>{escape(hint)}</title></rect>"
            )
        x += wide
    return _drawing(name, pieces)


def pace_bar(name: str, part: float) -> str:
    """A bar of that part of the longest."""
    return _drawing(name, [f'<rect class="step" x="0" width="{part * _WIDTH:.2f}" height="{_HEIGHT}"/>'])


def waterfall(block: Breakdown, name: str) -> str:
    """A waterfall from the baseline's total to the variant's: one line with a bar for each bucket that differs."""
    base = block.baselines[name]
    called = short([base, name], _LABEL)
    begun, ends = block.cells[TOTAL][base], block.cells[TOTAL][name]
    changed_parts = [part for part in block.parts if block.deltas[part.key][name]]
    rows = [(called[0], 0, begun, "ink", "")]
    level = begun
    for part in changed_parts:
        delta = block.deltas[part.key][name]
        rows.append((part.label, min(level, level + delta), abs(delta), "", part.colour))
        level += delta
    rows.append((called[1], 0, ends, "ink", ""))
    figures = [begun, *(block.deltas[part.key][name] for part in changed_parts), ends]
    widest = max(*(low + wide for _, low, wide, _, _ in rows), 1)
    pieces = []
    for k, ((text, low, wide, kind, colour), figure) in enumerate(zip(rows, figures, strict=True)):
        x, length, top = _BARS_X + low / widest * _SPAN, wide / widest * _SPAN, k * _ROW
        look = f'class="{kind}"' if kind else f'fill="{colour}"'
        value = thousandths(figure, signed=not kind)
        pieces.append(
            f'<text x="{_BARS_X - 8}" y="{top + 13}" text-anchor="end">{escape(sanitize(text, _LABEL))}</text>'
            f'<rect {look} x="{x:.2f}" y="{top + 2}" width="{max(length, 1):.2f}" height="{_ROW - 5}"/>'
            f'<text x="{x + length + 5:.2f}" y="{top + 13}">{value}</text>'
        )
    description = escape(f"from {base} to {name}, in {block.unit}")
    size = f"{_BARS_X + _SPAN + _FIGURE} {len(rows) * _ROW}"
    return f'<svg class="waterfall" viewBox="0 0 {size}" role="img" aria-label="{description}">{"".join(pieces)}</svg>'


def step_bars(line: Line) -> str:
    """A bar for each step, scaled to the longest steady one; those that compile are marked, and cut at the top."""
    groups = line.groups(_STEPS)
    top, wide = max(line.usual, default=1) or 1, _WIDTH / max(len(groups), 20)
    pieces = []
    for k, group in enumerate(groups):
        values = [value for value in line.values[group] if value is not None]
        mark = "compiles" if "compiles" in line.marks[group] else "step" if values else "unknown"
        high = _HEIGHT if mark != "step" else max(max(values) / top * _HEIGHT, 0.5)
        hint = (
            f"{line.span or f'step {line.steps[group][0]}'}: {value_text(line, max(values)) if values else 'unknown'}"
        )
        pieces.append(
            f'<rect class="{mark}" x="{k * wide:.2f}" y="{_HEIGHT - high:.2f}" width="{wide * 0.85:.2f}" '
            f'height="{high:.2f}"><title>{escape(hint)}</title></rect>'
        )
    return _drawing(line.name, pieces)


def _drawing(label: str, pieces: list[str]) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" height="{_HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(label)}">{"".join(pieces)}</svg>'
    )
