"""The report as a workbook: a sheet for each table, with exact numbers, and a chart of where the time goes."""

import json
import re
from io import BytesIO
from typing import Any

import pyarrow as pa

from tracekit.base.names import sanitize
from tracekit.errors.asking import NeedsPackageError
from tracekit.faces import Options, face
from tracekit.faces.shared.cells import heading, is_number, meaning, role, unit
from tracekit.faces.shared.flat_tables import FlatTable, bucket_row, flat_tables
from tracekit.faces.shared.output_files import unused_name
from tracekit.faces.shared.wording import label
from tracekit.report import Report
from tracekit.report.breakdown import TOTAL, Breakdown

_ROWS = 1 << 20  # of a sheet, including the head
_TEXT = 32_000  # letters of a cell: Excel takes 32,767
_NAME = 31  # letters of a sheet's name
_FORBIDDEN = re.compile(r"[\[\]:*?/\\']")
_WIDTHS = (8, 60)  # letters of a column, at least and at most
_WRAPPED = 90  # letters of a sentence in a line
# Two commas divide what is shown by a million: the cell holds ns, but shows ms.
_FORMATS = {"ns": '#,##0.000,,"\u2009ms"', "B": '#,##0.0,,"\u2009MB"', "share": "0.0%"}
_FORMATS |= {"×": '0.00"\u2009×"', "1": "0.0000"}


@face("xlsx", on_terminal=False)
def render(report: Report, options: Options) -> bytes:
    """The report as an Excel workbook."""
    try:
        import xlsxwriter
    except ImportError:
        raise NeedsPackageError("--format xlsx", "xlsxwriter", "excel") from None
    content = BytesIO()
    book = xlsxwriter.Workbook(content, {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False})
    formats = _Formats(book)
    names: set[str] = set()
    for name, table in flat_tables(report).items():
        # A name that Excel accepts: short, without some signs, and unique.
        plain_name = _FORBIDDEN.sub("_", sanitize(name))[:_NAME] or "_"
        sheet = book.add_worksheet(unused_name(plain_name, names, _NAME - 4))
        if isinstance(table.block, Breakdown):
            _write_breakdown(book, sheet, table.block, formats)
        else:
            _write_table(sheet, table, formats)
    book.close()
    return content.getvalue()


class _Formats:
    """The formats of cells, each made once."""

    def __init__(self, book: Any) -> None:
        self._book = book
        self._made: dict[tuple[Any, ...], Any] = {}

    def with_properties(self, **properties: Any) -> Any:
        key = tuple(sorted(properties.items()))
        if key not in self._made:
            self._made[key] = self._book.add_format(properties)
        return self._made[key]

    @property
    def head(self) -> Any:
        return self.with_properties(bold=True, bottom=1, text_wrap=True, valign="top")

    def column(self, field: pa.Field) -> Any:
        """The format of a column's cells."""
        if not is_number(field):
            return self.with_properties(valign="top")
        integer_format = "0" if role(field) == "identity" else "#,##0"
        plain = integer_format if pa.types.is_integer(field.type) else "#,##0.###"
        return self.with_properties(num_format=_FORMATS.get(unit(field), plain), valign="top")


def _write_table(sheet: Any, table: FlatTable, formats: _Formats) -> None:
    rows = table.rows.slice(0, _ROWS - 1)
    for column, field in enumerate(rows.schema):
        sheet.write_string(0, column, heading(field) or "fact", formats.head)
        if meaning(field):
            sheet.write_comment(0, column, meaning(field))
        values = rows[field.name].to_pylist()
        shape = formats.column(field)
        longest = len(heading(field))
        for row, value in enumerate(values, 1):
            longest = max(longest, _write(sheet, row, column, value, shape))
        sheet.set_column(column, column, min(max(longest + 1, _WIDTHS[0]), _WRAPPED if column == 2 else _WIDTHS[1]))
    sheet.freeze_panes(1, 0)
    if len(rows) and len(rows.schema):
        sheet.autofilter(0, 0, len(rows), len(rows.schema) - 1)


def _write(sheet: Any, row: int, column: int, value: object, shape: Any) -> int:
    """Write one cell; returns its approximate width. Text is written as text, whatever it looks like."""
    if value is None:
        return 0
    if isinstance(value, bool):
        sheet.write_boolean(row, column, value, shape)
        return 5
    if isinstance(value, int | float):
        sheet.write_number(row, column, value, shape)
        return 12
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    cell_text = sanitize(text, _TEXT)
    sheet.write_string(row, column, cell_text, shape)
    return len(cell_text)


def _write_breakdown(book: Any, sheet: Any, block: Breakdown, formats: _Formats) -> None:
    """A row for each bucket, a column for each variant and each difference, and the variants as stacked bars."""
    heads = ["bucket", *block.variants]
    for name in block.compared:
        heads += [
            f"Δ {name} against {block.baselines[name]}",
            f"Δ {name}, 95 % over the steps of one trace: from",
            "to",
        ]
    sheet.write_row(0, 0, [sanitize(head, _TEXT) for head in heads], formats.head)
    for row, key in enumerate(block.keys, 1):
        total = {"bold": True, "top": 1} if key == TOTAL else {}
        sheet.write_string(row, 0, label(block, key), formats.with_properties(**total))
        shape = formats.with_properties(num_format=_FORMATS["ns"], **total)
        values = [bucket_row(block, name, key)["mean_ns"] for name in block.variants]
        for name in block.compared:
            bucket = bucket_row(block, name, key)
            values += (bucket.get(column) for column in ("delta_ns", "delta_low_ns", "delta_high_ns"))
        for column, value in enumerate(values, 1):
            _write(sheet, row, column, value, shape)
    sheet.set_column(0, 0, 18)
    sheet.set_column(1, len(heads) - 1, 16)
    sheet.freeze_panes(1, 1)
    if not block.parts:  # steps that take no time have no parts, and Excel has no chart of nothing
        return
    chart = book.add_chart({"type": "bar", "subtype": "stacked"})
    last = len(block.variants)
    for row, part in enumerate(block.parts, 1):
        chart.add_series(
            {
                "name": [sheet.name, row, 0],
                "categories": [sheet.name, 0, 1, 0, last],
                "values": [sheet.name, row, 1, row, last],
                "fill": {"color": part.colour},
                "gap": 40,
            }
        )
    chart.set_title({"name": block.title, "name_font": {"size": 12}})
    chart.set_x_axis({"num_format": '#,##0.0,,"\u2009ms"'})
    chart.set_y_axis({"reverse": True})
    chart.set_size({"width": 900, "height": 120 + 40 * last})
    sheet.insert_chart(len(block.keys) + 3, 0, chart)
