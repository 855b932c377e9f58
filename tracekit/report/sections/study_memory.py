"""How much memory does each variant take at its peak, in training and in inference, beside its baseline?"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from tracekit.report.blocks import Table
from tracekit.report.model import Report
from tracekit.report.registry import of_study
from tracekit.report.section import Contents
from tracekit.report.study_columns import SETTING, VARIANT, WORKLOAD
from tracekit.run import Memory
from tracekit.run_facts import records_graphs
from tracekit.study import Study
from tracekit.study.settings import Group, Setting, settings
from tracekit.trace.schema import column

_REAL, _INTEGER = pa.float64(), pa.int64()
_MEASURES = {
    "peak_allocated_bytes": "GPU memory allocated at the peak of the timed steps",
    "peak_reserved_bytes": "GPU memory reserved by the allocator",
    "split_peak_bytes": "GPU memory in unused parts of split blocks, at the peak",
    "step_peak_rss_bytes": "host memory resident at the peak of the timed steps",
    "host_peak_rss_bytes": "host memory resident at the peak of the process, compilation included",
}
MEMORY = pa.schema(
    [
        SETTING,
        WORKLOAD,
        VARIANT,
        column(
            "above_start_bytes",
            _INTEGER,
            "held at the peak of the timed steps, beyond what was held before the first",
            "B",
        ),
        column("against_baseline", _REAL, "above_start_bytes divided by the baseline's", "×"),
        *(column(name, _INTEGER, meaning, "B") for name, meaning in _MEASURES.items()),
        column("alloc_retries", _INTEGER, "how often the allocator had to empty its cache"),
        column("with_graphs", pa.bool_(), "whether CUDA graphs hold memory that the allocator counts as free"),
    ]
)


@of_study("study_memory", "Memory", rank=8)
def memory(_: Report, study: Study) -> Contents | None:
    """A row for each setting and variant that was measured; the highest of all seeds."""
    table_rows = [row for setting in settings(study) for row in _rows(setting)]
    return Contents((Table("peaks", pa.Table.from_pylist(table_rows, MEMORY), detail=True),)) if table_rows else None


def _rows(setting: Setting) -> Iterator[dict[str, Any]]:
    base = _above_start_bytes(setting.groups[0])
    for group in setting.groups:
        if not group.measured:
            continue
        above_bytes = _above_start_bytes(group)
        yield {
            "setting": setting.name,
            "workload": setting.axes["workload"],
            "variant": group.variant,
            "above_start_bytes": above_bytes,
            "against_baseline": above_bytes / base
            if above_bytes is not None and base and group is not setting.groups[0]
            else None,
            **{name: _max_over_seeds(group, name) for name in (*_MEASURES, "alloc_retries")},
            "with_graphs": any(records_graphs(variant) for variant in group.variants),
        }


def _above_start_bytes(group: Group) -> int | None:
    return _max_over_seeds(group, "above_start_bytes")


def _max_over_seeds(group: Group, name: str) -> int | None:
    peaks = [getattr(variant.memory, name) for variant in group.variants if variant.memory != Memory()]
    return max((peak for peak in peaks if peak is not None), default=None)
