"""One table by itself, in the formats available for the answer to a query."""

import json
import sys
from io import BytesIO, StringIO
from typing import TextIO

import pyarrow as pa
import pyarrow.parquet as pq

from tracekit.faces import Options
from tracekit.faces.csv import write_rows
from tracekit.faces.text import draw_blocks
from tracekit.report.blocks import Table
from tracekit.trace.schema import column


def drawn(rows: pa.Table, form: str, stream: TextIO | None = None) -> str | bytes:
    """The table as `text`, `csv`, `json` (a list of objects) or `parquet`."""
    if form == "csv":
        text = StringIO(newline="")
        write_rows(rows, text)
        return text.getvalue()
    if form == "json":
        return json.dumps(rows.to_pylist(), indent=1, default=str).replace("\x7f", "\\u007f") + "\n"
    if form == "parquet":
        content = BytesIO()
        pq.write_table(rows, content, compression="zstd")
        return content.getvalue()
    fields = []  # names and values are shown as the query made them: whole, and with every digit
    for field in rows.schema:
        is_number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        fields.append(column(field.name, field.type, "", role="identity" if is_number else "reason", title=field.name))
    block = Table("answer", rows.cast(pa.schema(fields)))
    return draw_blocks([block], Options(rows=sys.maxsize, full=True, stream=stream))
