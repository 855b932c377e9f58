"""One Parquet file per table, and a page that explains each column."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from tracekit.faces import Options, folder_face
from tracekit.report import Report
from tracekit.report.tables import Stream, every_table
from tracekit.trace.schema import metadata

SCHEMA = "tracekit.tables/1"  # columns may be added; none is renamed or removed without a new number
_NO_RUN = "__HIVE_DEFAULT_PARTITION__"
_ROWS = 1 << 17  # of a row group
SCHEMA_PAGE = "SCHEMA.md"


@folder_face("parquet")
def export(report: Report, folder: Path, options: Options) -> None:
    """Every table of the report. Those of several runs are partitioned by run, except in a study: its cells are
    rows."""
    tables = every_table(report)
    runs = {member.name: member.run_name for member in report.subject.members}
    by_run = len(report.subject.runs) > 1 and report.subject.study is None
    for name, table in tables.items():
        if not by_run or not {"variant", "run"} & {*table.schema.names}:
            write_table(name, table, folder / f"{name}.parquet")
            continue
        schema = _schema(name, _without_run(table.schema.empty_table()).schema)
        for run in dict.fromkeys(runs.values()):  # NAME/run=RUN/part.parquet, as in Hive
            path = folder / name / f"run={quote(run, safe=' ') if run else _NO_RUN}" / "part.parquet"
            path.parent.mkdir(parents=True)
            _write(schema, (_of_run(piece, run, runs) for piece in table.pieces()), path)
    (folder / SCHEMA_PAGE).write_text(describe(tables), encoding="utf-8")


def write_table(name: str, table: pa.Table | Stream, path: Path) -> None:
    """Write row group by row group, so that only one is in memory at a time."""
    _write(_schema(name, table.schema), table.pieces() if isinstance(table, Stream) else [table], path)


def _of_run(piece: pa.Table, run: str, runs: Mapping[str, str]) -> pa.Table:
    """The rows of one run: those of its variants, or else those that name it."""
    variant_names = piece["variant"].to_pylist() if "variant" in piece.schema.names else [None] * len(piece)
    run_names = piece["run"].to_pylist() if "run" in piece.schema.names else variant_names
    in_run = [
        (runs.get(name, "") if name is not None else run_name or "") == run
        for name, run_name in zip(variant_names, run_names, strict=True)
    ]
    return _without_run(piece.filter(pa.array(in_run, pa.bool_())))


def _without_run(piece: pa.Table) -> pa.Table:
    """Without the column `run`, because the folder names the run."""
    return piece.drop_columns(["run"]) if "run" in piece.schema.names else piece


def _schema(name: str, schema: pa.Schema) -> pa.Schema:
    """The columns, with metadata that names the table and the data set."""
    return schema.with_metadata({"tracekit.schema": SCHEMA, "tracekit.table": name})


def _write(schema: pa.Schema, pieces: Iterable[pa.Table], path: Path) -> None:
    with pq.ParquetWriter(path, schema, compression="zstd", compression_level=1) as writer:
        waiting: list[pa.Table] = []
        for piece in pieces:
            waiting.append(piece.replace_schema_metadata(schema.metadata))
            if sum(map(len, waiting)) >= _ROWS:
                writer.write_table(_together(waiting), _ROWS)
                waiting = []
        if waiting:
            writer.write_table(_together(waiting), _ROWS)


def _together(pieces: list[pa.Table]) -> pa.Table:
    return pieces[0] if len(pieces) == 1 else pa.concat_tables(pieces).unify_dictionaries()


def describe(tables: Mapping[str, pa.Table | Stream]) -> str:
    """The columns of every table, as Markdown."""
    lines = [
        f"# Tables: {SCHEMA}",
        "",
        "Times are nanoseconds; `start_ns` and `ts_ns` are on the trace's own clock (in `ledger`: unix time). Each",
        "file names its table and this schema in its metadata. Columns may be added; none is renamed or removed",
        "without a new schema number. Several runs exported together are partitioned as in Hive, as",
        "`NAME/run=RUN/part.parquet`. *Counted* steps are those that means are taken over: all steps whose time the",
        "trace can answer, except those that compile or belong to a declared warm-up (unless there are no others).",
        "",
    ]
    for name, table in tables.items():
        lines += [f"## {name}.parquet", "", "| column | type | unit | meaning |", "|---|---|---|---|"]
        for field in table.schema:
            unit, meaning = metadata(field, "unit"), metadata(field, "comment")
            kind = "string" if pa.types.is_dictionary(field.type) else str(field.type)
            lines.append(f"| {field.name} | {kind} | {unit} | {meaning} |")
        lines.append("")
    return "\n".join(lines)
