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

_REAL, _WHOLE = pa.float64(), pa.int64()
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
            _WHOLE,
            "held at the peak of the timed steps, beyond what was held before the first",
            "B",
        ),
        column("against_baseline", _REAL, "above_start_bytes divided by the baseline's", "×"),
        *(column(name, _WHOLE, meaning, "B") for name, meaning in _MEASURES.items()),
        column("alloc_retries", _WHOLE, "how often the allocator had to empty its cache"),
        column("with_graphs", pa.bool_(), "whether CUDA graphs hold memory that the allocator counts as free"),
    ]
)


@of_study("study_memory", "Memory", rank=8)
def memory(_: Report, study: Study) -> Contents | None:
    """A row for each setting and variant that was measured; the highest of all seeds."""
    made = [row for setting in settings(study) for row in _rows(setting)]
    return Contents((Table("peaks", pa.Table.from_pylist(made, MEMORY), detail=True),)) if made else None


def _rows(setting: Setting) -> Iterator[dict[str, Any]]:
    base = _above(setting.groups[0])
    for group in setting.groups:
        if not group.measured:
            continue
        above = _above(group)
        yield {
            "setting": setting.name,
            "workload": setting.axes["workload"],
            "variant": group.variant,
            "above_start_bytes": above,
            "against_baseline": above / base if above is not None and base and group is not setting.groups[0] else None,
            **{name: _most(group, name) for name in (*_MEASURES, "alloc_retries")},
            "with_graphs": any(records_graphs(each) for each in group.variants),
        }


def _above(group: Group) -> int | None:
    return _most(group, "above_start_bytes")


def _most(group: Group, name: str) -> int | None:
    known = [getattr(each.memory, name) for each in group.variants if each.memory != Memory()]
    return max((each for each in known if each is not None), default=None)
