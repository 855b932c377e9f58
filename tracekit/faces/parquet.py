"""One Parquet file per table, and a page that says what each column means."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tracekit.faces import Options, folder_face
from tracekit.report import Report
from tracekit.report.tables import every_table
from tracekit.tables import Stream
from tracekit.trace.schema import metadata

_ROWS = 1 << 17  # of a row group
SCHEMA_PAGE = "SCHEMA.md"


@folder_face("parquet")
def export(report: Report, folder: Path, options: Options) -> None:
    """Every table of the report."""
    write(every_table(report), folder)


def write(tables: Mapping[str, pa.Table | Stream], folder: Path) -> None:
    """Write `NAME.parquet` for each table, and `SCHEMA.md`."""
    for name, table in tables.items():
        _write(table, folder / f"{name}.parquet")
    (folder / SCHEMA_PAGE).write_text(describe(tables), encoding="utf-8")


def _write(table: pa.Table | Stream, path: Path) -> None:
    """Row group by row group: what is written is no longer in memory."""
    with pq.ParquetWriter(path, table.schema, compression="zstd", compression_level=1) as writer:
        waiting: list[pa.Table] = []
        for piece in table.pieces() if isinstance(table, Stream) else [table]:
            waiting.append(piece)
            if sum(map(len, waiting)) >= _ROWS:
                writer.write_table(_together(waiting), _ROWS)
                waiting = []
        if waiting:
            writer.write_table(_together(waiting), _ROWS)


def _together(pieces: list[pa.Table]) -> pa.Table:
    return pieces[0] if len(pieces) == 1 else pa.concat_tables(pieces).unify_dictionaries()


def describe(tables: Mapping[str, pa.Table | Stream]) -> str:
    """The columns of every table, as Markdown."""
    lines = ["# Tables", "", "Times are integer nanoseconds; `start_ns` and `ts_ns` are on the trace's own clock.", ""]
    for name, table in tables.items():
        lines += [f"## {name}.parquet", "", "| column | type | unit | meaning |", "|---|---|---|---|"]
        for field in table.schema:
            unit, meaning = metadata(field, "unit"), metadata(field, "comment")
            kind = "string" if pa.types.is_dictionary(field.type) else str(field.type)
            lines.append(f"| {field.name} | {kind} | {unit} | {meaning} |")
        lines.append("")
    return "\n".join(lines)
