"""What the page shows of numbers: tables whose cells hold the exact value as well as its text, so that the page can
sort by it; stacked bars, waterfalls and steps as SVG, with a description in words; and the breakdown made of both.
"""

import html
from collections.abc import Iterable, Iterator

import pyarrow as pa

from tracekit.base.names import HEAD, sanitize, short
from tracekit.base.units import many, thousandths
from tracekit.faces.shared.cells import cell, heading, is_number, meaning, readable, role, texts
from tracekit.faces.shared.flat_tables import bucket_row
from tracekit.faces.shared.wording import UNIT, certainty, change, doubt, label, rests_on, share, taken, value_text
from tracekit.report.blocks import Line, Table
from tracekit.report.breakdown import TOTAL, Breakdown

_WIDTH, _HEIGHT = 1000, 22  # of a bar, in units of its own
_STEPS = 500  # bars of a series; if there are more steps, the longest of each group of them is drawn
_BARS_X, _SPAN, _FIGURE, _ROW, _LABEL = 130, 220, 70, 20, 18  # of a waterfall: units, and letters
_MAX_ROWS = 200  # rows on the page; all others are in the exports
_HEADS = 4  # columns that are named where a table is folded
_CELL = 120  # letters of a text in a table
_MAX_OPEN = 4  # waterfalls: more are folded


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


def table(block: Table, opened: int | None, full: bool) -> Iterator[str]:
    """The table; rows after the first `opened` are shown after a click."""
    if block.layout == "records":
        first, *fields = readable(block.rows, full or block.detail)
        names = texts(block.rows[first.name].to_pylist(), first)
        lines = ['<div class="scroll"><table>', head([("", False, ""), *((name, True, "") for name in names)])]
        for field in fields:
            cells = "".join(_column(block.rows[field.name].to_pylist(), field))
            cells = cells.replace('class="text"', 'class="number"')
            lines.append(f'<tr><td title="{escape(meaning(field))}">{escape(heading(field))}</td>{cells}</tr>')
        lines.append("</table></div>")
        yield from folded(f"{len(block.rows.schema)} columns", lines) if block.detail else lines
        return
    visible_rows = block.rows.slice(0, None if full else max(_MAX_ROWS, opened or 0))
    if not len(visible_rows):
        return
    if (block.detail and not full) or opened == 0:
        heads = [heading(field) for field in readable(visible_rows, full)]
        column_names = ", ".join(heads[:_HEADS]) + ", …" * (len(heads) > _HEADS)
        yield from folded(
            f"{many(len(visible_rows), 'row')}: {column_names}", _rows(visible_rows, len(visible_rows), full)
        )
    else:
        yield from _rows(visible_rows, len(visible_rows) if opened is None else opened, full)
    if len(visible_rows) < block.rows.num_rows:
        yield f'<p class="more">{len(visible_rows):,} of {block.rows.num_rows:,} rows; exports have them all.</p>'


def folded(title: str, content: Iterable[str]) -> Iterator[str]:
    """Content that is shown after a click."""
    yield f"<details><summary>{escape(title)}</summary>"
    yield from content
    yield "</details>"


def head(columns: Iterable[tuple[str, bool, str]]) -> str:
    """The row of headings: for each, its text, whether it is flush right, and its meaning."""
    cells = [
        f'<th class="{"number" if right else "text"}" title="{escape(hint)}">{escape(text)}</th>'
        for text, right, hint in columns
    ]
    return f"<thead><tr>{''.join(cells)}</tr></thead>"


def number(text: str, value: float | None, marks: str = "") -> str:
    """A cell with a figure; `data-v` is the exact value."""
    exact = f' data-v="{value!r}"' if value is not None else ""
    return f'<td class="number{marks}"{exact}>{prose(text)}</td>'


def _rows(rows: pa.Table, opened: int, full: bool) -> Iterator[str]:
    fields = readable(rows, full)
    first = next((k for k, field in enumerate(fields) if is_number(field) and role(field) != "identity"), len(fields))
    # Places in source come before the first figure: behind the last one, a window may hide them.
    fields[first:] = sorted(fields[first:], key=lambda field: role(field) != "place")
    columns = [_column(rows[field.name].to_pylist(), field) for field in fields]
    yield '<div class="scroll"><table class="sortable">'
    yield head([(heading(field), is_number(field), meaning(field)) for field in fields])
    yield "<tbody>"
    for index, row in enumerate(zip(*columns, strict=True)):
        yield f"<tr{' class=rest' if index >= opened else ''}>{''.join(row)}</tr>"
    yield "</tbody></table></div>"


def _column(values: list[object], field: pa.Field) -> list[str]:
    """The cells of a column; a shortened name is shown in full when the pointer rests on it."""
    cells = texts(values, field, 4 * _CELL if role(field) == "reason" else _CELL)
    if is_number(field):
        exact = [value if isinstance(value, int | float) else None for value in values]
        return [number(text, value) for text, value in zip(cells, exact, strict=True)]
    if role(field) == "kernel":
        full_names = [cell(value, field, 4 * _CELL) for value in values]
        return [
            f'<td class="kernel" title="{escape(name)}">{escape(text)}</td>'
            for name, text in zip(full_names, cells, strict=True)
        ]
    return [f'<td class="text">{prose(text)}</td>' for text in cells]


def breakdown(block: Breakdown) -> Iterator[str]:
    """Bars on one scale, followed by figures."""
    yield "<figure>"
    longest = max(*block.cells[TOTAL].values(), 1)
    for name in block.variants:
        total = f"{thousandths(block.cells[TOTAL][name])} {block.unit}"
        bar = stacked_bar(block, name, longest)
        yield f'<div class="bar"><span>{escape(name)}</span>{bar}<span>{prose(total)}</span></div>'
    for name, reason in block.unanswered.items():
        yield f'<p class="quiet">{escape(name)}: cannot be answered: {prose(reason)}</p>'
    yield "</figure>"
    yield '<div class="scroll"><table class="parts">'
    called = dict(zip(block.variants, short(block.variants, HEAD), strict=True))
    heads = [(f"bucket ({block.unit})", False, "")]
    for name in block.variants:
        heads += [(called[name], True, name), ("", True, "part of the step")]
    for name in block.compared:
        against = f"{name} against {block.baselines[name]}"
        heads += [
            (f"Δ {called[name]}", True, against),
            (rests_on(block, name), False, "what the difference rests on, and its interval or what speaks against it"),
        ]
    yield head(heads)
    for key in block.keys:
        cells = [f"<td>{escape(label(block, key))}</td>"]
        if (part := block.part(key)) is not None:
            chip = f'<svg width="10" height="10"><rect width="10" height="10" fill="{part.colour}"/></svg>'
            cells = [f'<td title="{escape(part.meaning)}">{chip}{escape(part.label)}</td>']
        for name in block.variants:
            cells.append(number(taken(block, key, name), bucket_row(block, name, key)["mean_ns"]))
            cells.append(f'<td class="number quiet">{prose(share(block, key, name))}</td>')
        for name in block.compared:
            marks = " noise" if doubt(block, key, name) else ""
            cells.append(number(change(block, key, name), bucket_row(block, name, key).get("delta_ns"), marks))
            cells.append(f'<td class="quiet">{escape(certainty(block, key, name))}</td>')
        yield f"<tr{' class=total' if key == TOTAL else ''}>{''.join(cells)}</tr>"
    yield "</table></div>"
    if block.compared:
        steps = ['<div class="waterfalls">']
        for name in block.compared:
            caption = f"{escape(block.baselines[name])} → {escape(name)}"
            steps += [f"<figure>{waterfall(block, name)}", f"<figcaption>{caption}</figcaption></figure>"]
        steps.append("</div>")
        is_folded = len(block.compared) > _MAX_OPEN
        yield from folded(f"From the baseline, {len(block.compared)} waterfalls", steps) if is_folded else steps
