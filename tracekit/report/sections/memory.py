"""How much memory did each variant take at its peak, as a table for programs?"""

import pyarrow as pa

from tracekit.report.model import Report
from tracekit.report.registry import of_run
from tracekit.report.section import Contents
from tracekit.run_facts import records_graphs
from tracekit.trace.schema import column

MEMORY = pa.schema(
    [
        column("variant", pa.string(), "name of the variant", role="name"),
        column(
            "what",
            pa.string(),
            "allocated or reserved on the GPU; resident on the host; above start: more than before the first step",
        ),
        column("peak_bytes", pa.int64(), "memory at the peak of the unprofiled pass", "B"),
        column("with_graphs", pa.bool_(), "whether CUDA graphs hold memory that the allocator counts as free"),
    ]
)


@of_run("memory", "Memory", rank=91, stage="end")
def memory(report: Report) -> Contents | None:
    """A row for each peak that was measured; people read them among the facts of the run."""
    rows = []
    for member in report.members:
        measured = member.variant.memory if member.variant is not None else None
        if measured is None:
            continue
        peaks = {
            "allocated": measured.peak_allocated_bytes,
            "reserved": measured.peak_reserved_bytes,
            "resident": measured.host_peak_rss_bytes,
            "above start": measured.above_start_bytes,
        }
        graphs = records_graphs(member.variant)
        rows += [
            {"variant": member.name, "what": kind, "peak_bytes": peak, "with_graphs": graphs}
            for kind, peak in peaks.items()
            if peak is not None
        ]
    if not rows:
        return None
    return Contents((), tables={"memory": lambda: pa.Table.from_pylist(rows, schema=MEMORY)})
