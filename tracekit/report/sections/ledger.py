"""What did the compiler do, entry by entry, as a table for programs?"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from tracekit.report.model import Report
from tracekit.report.section import Contents, of_run
from tracekit.trace.schema import column

LEDGER = pa.schema(
    [
        column("variant", pa.string(), "name of the variant", role="name"),
        column(
            "entry", pa.string(), "compile, break (of a graph), limit (of recompilations) or skip (of a CUDA graph)"
        ),
        column("id", pa.string(), "frame/attempt of the compilation, or of the one that a break or a skip belongs to"),
        column("kind", pa.string(), "first, recompile, backward, cudagraph or autotune"),
        column("span", pa.string(), "the compiler's name for it"),
        column("name", pa.string(), "the function that a limit is about"),
        column("code", pa.string(), "the user's function that is compiled: file:line name", role="place"),
        column("file", pa.string(), "file of a break, a limit or a skip", role="source"),
        column("line", pa.int64(), "line number in the file", role="identity"),
        column("reason", pa.string(), "reason, in the compiler's own words", role="reason"),
        column("guard", pa.string(), "the guard that failed", role="reason"),
        column("start_ns", pa.int64(), "start, unix time", "ns"),
        column("dur_ns", pa.int64(), "duration", "ns"),
        column("guard_ns", pa.int64(), "one evaluation of its guards, as Dynamo timed it", "ns"),
        column("step", pa.int64(), "the N of ProfilerStep#N", role="identity"),
        column("pass", pa.string(), "window of the capture, or warmup: cold, warmup, steady or detail"),
        column("failed", pa.string(), "why it produced no code"),
    ]
)


@of_run("ledger", "The compiler's ledger", rank=90, stage="end")
def ledger(report: Report) -> Contents | None:
    """A row for each entry of each variant's ledger; people read the compilations and the graph breaks."""
    if not any(member.variant for member in report.members):
        return None
    return Contents((), tables={"ledger": lambda: pa.Table.from_pylist([*_rows(report)], schema=LEDGER)})


def _rows(report: Report) -> Iterator[dict[str, Any]]:
    names = set(LEDGER.names)
    for member in report.members:
        if member.variant is None:
            continue
        entries = member.variant.ledger
        of_kind: dict[str, Sequence[msgspec.Struct]] = {
            "compile": entries.compiles,
            "break": entries.breaks,
            "limit": entries.limits,
            "skip": entries.skips,
        }
        for kind, listed in of_kind.items():
            for ledger_entry in listed:
                fields = msgspec.structs.asdict(ledger_entry)
                row = {name: value for name, value in fields.items() if name in names}
                row |= {"variant": member.name, "entry": kind, "id": fields.get("id") or fields.get("compile")}
                row |= {"start_ns": fields.get("start_ns", fields.get("t_ns")), "pass": fields.get("during") or None}
                if "end_ns" in fields:
                    row["dur_ns"] = fields["end_ns"] - fields["start_ns"]
                yield row
