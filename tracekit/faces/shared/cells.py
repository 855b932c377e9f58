"""One value of a table as text, by the unit and the role of its column; and a table as a grid of such texts: its heads,
its rows, and which of its columns hold figures.
"""

from collections.abc import Callable

import pyarrow as pa
from msgspec import Struct

from tracekit.base.names import sanitize
from tracekit.base.units import bandwidth, count, duration, percent, plain, ratio, size
from tracekit.report.blocks import Table
from tracekit.trace.schema import metadata
from tracekit.vocabulary.kernel_names import between_signs, distinct_short_names

DELTA = "Δ"  # with which the name of a column of differences begins
NOTHING = "·"  # a zero in a column of quantities that add up
_ADD_UP = ("ns", "B", "share")
_BY_UNIT: dict[str, Callable[[float], str]] = {
    "ns": duration,
    "B": size,
    "share": percent,
    "×": ratio,
    "1": plain,
    "GB/s": bandwidth,
}
_NAME_WIDTH = 60
_SETTING_WIDTH = 240  # of names and values, any of which may distinguish two settings
_REASON_WIDTH = 120
_FOLDERS = 2


def unit(field: pa.Field) -> str:
    """The unit that the schema gives a column."""
    return metadata(field, "unit")


def role(field: pa.Field) -> str:
    """How a column is shown to people, according to the schema."""
    return metadata(field, "role")


def meaning(field: pa.Field) -> str:
    """What a column holds."""
    return sanitize(metadata(field, "comment"))


def heading(field: pa.Field) -> str:
    """The column's title, else its name without its unit, which every value carries."""
    plain_name = field.name.removesuffix("_ns").removesuffix("_bytes").replace("_", " ")
    return sanitize(metadata(field, "title") or plain_name)


def cell(value: object, field: pa.Field, width: int | None = _NAME_WIDTH) -> str:
    """A value as people read it: a difference with its sign, nothing as `·`; a missing one is `–`, never 0."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        if not value and unit(field) in _ADD_UP:
            return NOTHING
        if unit(field) == "ns" and field.name.startswith(DELTA):
            return duration(value, signed=True)
        by_unit = _BY_UNIT.get(unit(field))
        if by_unit is not None:
            return by_unit(value)
        return str(value) if role(field) == "identity" else count(value)
    if role(field) == "setting" and width is not None:
        width = max(width, _SETTING_WIDTH)
    return sanitize(str(value), width)


def texts(values: list[object], field: pa.Field, width: int | None = _NAME_WIDTH) -> list[str]:
    """A column's values as people read them; names of kernels are shortened, and still distinguishable."""
    if role(field) == "place":
        return [
            cell(nearby(value) if width is not None and isinstance(value, str) else value, field, width)
            for value in values
        ]
    if role(field) != "kernel":
        named = ((isinstance(value, str) and between_signs(value)) or value for value in values)
        return [cell(value, field, width) for value in named]
    names = [str(value) for value in values if value is not None]
    short = dict(zip(names, distinct_short_names(names), strict=True))
    return [cell(value and short[str(value)], field, width) for value in values]


def nearby(place: str) -> str:
    """A place in source with only the last two folders of its path."""
    return place if place.count("/") < _FOLDERS + 2 else "…/" + "/".join(place.split("/")[-_FOLDERS - 1 :])


def lines(table: pa.Table, fields: list[pa.Field], full: bool = False) -> list[list[str]]:
    """The rows of a table as text, column by column; reasons are whole if everything is requested, and otherwise their
    first sentence."""
    columns = [
        _reasons(table[field.name].to_pylist(), field, full)
        if role(field) == "reason"
        else texts(table[field.name].to_pylist(), field)
        for field in fields
    ]
    return [list(row) for row in zip(*columns, strict=True)] if columns else []


def _reasons(values: list[str | None], field: pa.Field, full: bool) -> list[str]:
    if full:
        return texts([*values], field, None)
    return texts([value and value.partition(". ")[0] for value in values], field, _REASON_WIDTH)


def readable(table: pa.Table, full: bool = True) -> list[pa.Field]:
    """The columns to show to people: no plumbing, no empty ones, and details only if everything is requested."""
    return [
        field
        for field in table.schema
        if role(field) not in ("plumbing", "source")
        and (full or role(field) != "detail")
        and (not table.num_rows or table[field.name].null_count < table.num_rows)
    ]


def is_number(field: pa.Field) -> bool:
    """Whether a column reads better flush right."""
    return bool(pa.types.is_integer(field.type) or pa.types.is_floating(field.type) or role(field) == "figure")


class Grid(Struct, frozen=True):
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
