"""The report as CSV, a file for each table: exact numbers, for programs and spreadsheets."""

import csv
import json
from pathlib import Path
from typing import TextIO

import pyarrow as pa

from tracekit.base.names import sanitize
from tracekit.faces import Options, folder_face
from tracekit.faces.shared.flat_tables import flat_tables
from tracekit.report import Report

# A spreadsheet would take a text that begins with one of these for a formula, and run it.
_FORMULA = ("=", "+", "-", "@", "|", "%")
_ROWS = 1 << 14  # written at a time


@folder_face("csv")
def export(report: Report, folder: Path, options: Options) -> None:
    """`NAME.csv` in UTF-8 for each table of the report; times are in ns."""
    for name, table in flat_tables(report).items():
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            write_rows(table.rows, file)


def write_rows(rows: pa.Table, file: TextIO) -> None:
    """One table as CSV, with a line of column names, written to a file that must not translate line ends."""
    writer = csv.writer(file)
    writer.writerow([inert(name) for name in rows.column_names])
    for batch in rows.to_batches(_ROWS):
        columns = ([_plain(value) for value in column.to_pylist()] for column in batch.columns)
        writer.writerows(zip(*columns, strict=True))


def _plain(value: object) -> object:
    """The value as text: numbers exact, text inert, empty if unknown."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return inert(value)
    if isinstance(value, list | dict):
        return inert(json.dumps(value, default=str))
    return value


def inert(text: str) -> str:
    """Text that a spreadsheet shows as it is: an apostrophe precedes what would be a formula."""
    sanitized = sanitize(text)
    return f"'{sanitized}" if sanitized.startswith(_FORMULA) else sanitized
