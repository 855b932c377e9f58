"""Tables of the page. Cells hold the exact value as well as its text, so that the page can sort by it."""

from collections.abc import Iterable, Iterator

import pyarrow as pa

from tracekit.faces.shared.cells import cell, heading, is_number, meaning, readable, role, texts
from tracekit.faces.shared.html_drawings import escape, prose
from tracekit.report.blocks import Table
from tracekit.units import many

_MAX_ROWS = 200  # rows on the page; all others are in the exports
_HEADS = 4  # columns that are named where a table is folded
_CELL = 120  # letters of a text in a table


def table(block: Table, opened: int | None, full: bool) -> Iterator[str]:
    """The table; rows after the first `opened` are shown after a click."""
    if block.layout == "records":
        records = _records(block, full)
        yield from folded(f"{len(block.rows.schema)} columns", records) if block.detail else records
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
    fields = _places_first(readable(rows, full))
    columns = [_column(rows[field.name].to_pylist(), field) for field in fields]
    yield '<div class="scroll"><table class="sortable">'
    yield head([(heading(field), is_number(field), meaning(field)) for field in fields])
    yield "<tbody>"
    for index, row in enumerate(zip(*columns, strict=True)):
        yield f"<tr{' class=rest' if index >= opened else ''}>{''.join(row)}</tr>"
    yield "</tbody></table></div>"


def _places_first(fields: list[pa.Field]) -> list[pa.Field]:
    """The columns, with places in source before the first figure: behind the last one, a window may hide them."""
    first = next((k for k, field in enumerate(fields) if is_number(field) and role(field) != "identity"), len(fields))
    late = [field for field in fields[first:] if role(field) == "place"]
    return [*fields[:first], *late, *(field for field in fields[first:] if field not in late)]


def _column(values: list[object], field: pa.Field) -> list[str]:
    """The cells of a column; a shortened name is shown in full when the pointer rests on it."""
    cells = texts(values, field, _CELL)
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


def _records(block: Table, full: bool) -> Iterator[str]:
    first, *fields = readable(block.rows, full or block.detail)
    yield '<div class="scroll"><table>'
    yield head([("", False, ""), *((name, True, "") for name in texts(block.rows[first.name].to_pylist(), first))])
    for field in fields:
        cells = "".join(_column(block.rows[field.name].to_pylist(), field)).replace('class="text"', 'class="number"')
        yield f'<tr><td title="{escape(meaning(field))}">{escape(heading(field))}</td>{cells}</tr>'
    yield "</table></div>"
