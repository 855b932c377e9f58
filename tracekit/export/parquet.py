"""One Parquet file per table, and a page that says what each column means."""

import os
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tracekit.errors import OutputError

SCHEMA_PAGE = "SCHEMA.md"


def write(tables: dict[str, pa.Table], folder: Path) -> list[Path]:
    """Write `NAME.parquet` for each table and `SCHEMA.md`; returns the paths. An existing file is replaced whole."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        written = []
        for name, table in tables.items():
            path = folder / f"{name}.parquet"
            with _replacing(path) as part:
                pq.write_table(table, part, compression="zstd", compression_level=1)
            written.append(path)
        page = folder / SCHEMA_PAGE
        with _replacing(page) as part:
            Path(part).write_text(describe(tables), encoding="utf-8")
    except OSError as error:
        raise OutputError(folder, error.strerror or str(error)) from None
    return [*written, page]


def describe(tables: dict[str, pa.Table]) -> str:
    """The columns of every table, as Markdown."""
    lines = ["# Tables", "", "Times are integer nanoseconds; `start_ns` and `ts_ns` are on the trace's own clock.", ""]
    for name, table in tables.items():
        lines += [f"## {name}.parquet", "", "| column | type | unit | meaning |", "|---|---|---|---|"]
        for field in table.schema:
            metadata = field.metadata or {}
            unit, meaning = (metadata.get(key, b"").decode() for key in (b"unit", b"comment"))
            kind = "string" if pa.types.is_dictionary(field.type) else str(field.type)
            lines.append(f"| {field.name} | {kind} | {unit} | {meaning} |")
        lines.append("")
    return "\n".join(lines)


class _replacing:  # noqa: N801 - reads as a verb where it is used
    """A temporary file beside `path` that takes its place only when everything was written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        handle, self._part = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        os.close(handle)

    def __enter__(self) -> str:
        return self._part

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(self._part, 0o666 & ~mask)
            os.replace(self._part, self._path)
        else:
            os.unlink(self._part)
