"""The table `lines`, for programs: what each owner costs in each bucket."""

from collections.abc import Callable

import pyarrow as pa

from tracekit.lines.means import OwnerMeans
from tracekit.lines.owners import Group, functions_of
from tracekit.trace.schema import LABEL, column

LINES = pa.schema(
    [
        column("variant", LABEL, "name of the variant", role="name"),
        column("file", LABEL, "your file; null for groups, and for time without a line of yours", role="place"),
        column(
            "line",
            pa.int64(),
            "line number in the file; null where only the function is known, and for groups",
            role="place",
        ),
        column("lines", pa.list_(pa.string()), "the lines as FILE:LINE: one, or those that were fused", role="place"),
        column("function", LABEL, "your function", role="place"),
        column("library", LABEL, "the library that the line calls", role="name"),
        column("module", LABEL, "enclosing modules, outermost first", role="name"),
        column("phase", LABEL, "data, forward, backward, optimizer, eval or other", role="name"),
        column("view", LABEL, "wall or host", role="name"),
        column("bucket", LABEL, "bucket that the time belongs to", role="name"),
        column("row", LABEL, "the lines of the row that it belongs to where variants are compared", role="name"),
        column("step_ns", pa.float64(), "mean per counted step; the rows add up to the bucket", "ns"),
        column(
            "divided_ns", pa.float64(), "of this, estimated: time between two operators that several lines share", "ns"
        ),
    ]
)


def lines_table(variants: dict[str, OwnerMeans], row_of: Callable[[Group], Group]) -> pa.Table:
    """A row for each variant, view, owner and bucket; within each variant the most expensive first."""
    rows = [row for name, means in variants.items() for row in _rows(name, means, row_of)]
    columns = {field.name: [row[field.name] for row in rows] for field in LINES}
    return pa.Table.from_arrays([_array(columns[field.name], field.type) for field in LINES], schema=LINES)


def _rows(variant: str, means: OwnerMeans, row_of: Callable[[Group], Group]) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for mean in sorted(
        means.means, key=lambda owner_mean: (owner_mean.view != "wall", -owner_mean.step_ns, owner_mean.owner)
    ):
        lines, library, module, phase = means.owners[mean.owner]
        single = lines[0] if len(lines) == 1 else None
        rows.append(
            {
                "variant": variant,
                "file": single.file if single else None,
                "line": single.line if single and not single.whole else None,
                "lines": [line.text for line in lines],
                "function": functions_of(lines),
                "library": library or None,
                "module": " · ".join(module) or None,
                "phase": phase,
                "view": mean.view,
                "bucket": mean.bucket,
                "row": ", ".join(line.text for line in row_of(lines)) or None,
                "step_ns": mean.step_ns,
                "divided_ns": mean.divided_ns,
            }
        )
    return rows


def _array(values: list[object], kind: pa.DataType) -> pa.Array:
    return pa.array(values, pa.string()).dictionary_encode() if kind == LABEL else pa.array(values, kind)
