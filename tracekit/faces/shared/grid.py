"""A table as a grid of texts: its heads, its rows, and which of its columns hold figures."""

from dataclasses import dataclass

from tracekit.faces.shared.cells import heading, is_number, lines, readable, role, texts
from tracekit.report.blocks import Table


@dataclass(frozen=True)
class Grid:
    """Each row has an entry for each head, and so have `figures` and `keys`; the grid has `shown_rows` of the
    table's `total_rows`."""

    heads: list[str]
    figures: list[bool]
    keys: list[bool]  # which columns tell rows apart: texts, and figures that identify something
    rows: list[list[str]]
    shown_rows: int
    total_rows: int


def grid(block: Table, rows: int | None, full: bool) -> Grid:
    """The first rows of a table. Records are transposed: every row becomes a column, headed by its name."""
    if block.layout == "records":
        first, *other_fields = readable(block.rows, full)
        names = texts(block.rows[first.name].to_pylist(), first)
        records = [[heading(field), *texts(block.rows[field.name].to_pylist(), field)] for field in other_fields]
        figures = [False, *(True for _ in names)]
        return Grid(
            ["", *names], figures, [not is_figure for is_figure in figures], records, len(block.rows), len(block.rows)
        )
    visible_rows = block.rows.slice(0, rows)
    fields = readable(visible_rows, full)
    figures = [is_number(field) for field in fields]
    keys = [not figure or role(field) == "identity" for figure, field in zip(figures, fields, strict=True)]
    heads = [heading(field) for field in fields]
    return Grid(heads, figures, keys, lines(visible_rows, fields, full), len(visible_rows), len(block.rows))
