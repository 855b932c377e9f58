"""Perfetto, asked in SQL: a timeline to look at, without a breakdown of its own; this is what people sum by hand."""

from pathlib import Path
from typing import Any

from tests.compare.peer import Breakdown, Peer, main

_GPU = ("kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset")
_BY_CATEGORY = "select category, count(*) as events, sum(dur) as ns from slice where dur > 0 group by 1 order by 3 desc"
_SPAN = f"select min(ts) as first, max(ts + dur) as last from slice where category in {_GPU}"

PEER = Peer(
    "perfetto",
    "Perfetto",
    "perfetto",
    ("perfetto==0.59.1",),
    absent="Its package downloads the trace processor itself, a program of its own, at the first query; that could "
    "not be downloaded.",
    probe="from perfetto.trace_processor.platform import PlatformDelegate as P; P().get_shell_path(None)",
)


def first_table(files: list[Path]) -> None:
    """The time of all events of each category."""
    for file in files:
        with _opened(file) as trace:
            for row in trace.query(_BY_CATEGORY):
                print(row.category, row.events, row.ns)


def breakdowns(file: Path) -> list[Breakdown]:
    """Sums of events, each counted as often as others contain or overlap it; none says why the GPU idles."""
    with _opened(file) as trace:
        parts = {str(row.category): float(row.ns) for row in trace.query(_BY_CATEGORY)}
        (span,) = trace.query(_SPAN)
    return [Breakdown(parts, [name for name in parts if name in _GPU], {}, [[span.first, span.last]])]


def _opened(file: Path) -> Any:
    from perfetto.trace_processor import TraceProcessor

    return TraceProcessor(trace=str(file))


if __name__ == "__main__":
    main(breakdowns, first_table)
