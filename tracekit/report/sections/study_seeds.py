"""How much do the seeds of one setting and variant differ?"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from tracekit.report.blocks import Table
from tracekit.report.model import Report
from tracekit.report.registry import of_study
from tracekit.report.section import Contents
from tracekit.report.study_columns import SETTING, VARIANT
from tracekit.study import Study
from tracekit.study.settings import Setting, settings
from tracekit.trace.schema import column

_REAL = pa.float64()
SEEDS = pa.schema(
    [
        SETTING,
        VARIANT,
        column("seeds", pa.int64(), "seeds that were measured"),
        column("step_ns", _REAL, "a step, unprofiled; geometric mean over the seeds", "ns"),
        column("least_ns", _REAL, "step time of the fastest seed", "ns"),
        column("most_ns", _REAL, "step time of the slowest seed", "ns"),
        column("between_seeds", _REAL, "standard deviation of log step time between seeds", "share"),
    ]
)


@of_study("seeds", "Between seeds", rank=14)
def seeds(_: Report, study: Study) -> Contents | None:
    """A row for each setting and variant that was measured with several seeds."""
    table_rows = [row for setting in settings(study) for row in _rows(setting)]
    return Contents((Table("seeds", pa.Table.from_pylist(table_rows, SEEDS), detail=True),)) if table_rows else None


def _rows(setting: Setting) -> Iterator[dict[str, Any]]:
    for group in setting.groups:
        times = [measured.step_ns for measured in group.measured.values()]
        if len(times) > 1:
            yield {
                "setting": setting.name,
                "variant": group.variant,
                "seeds": len(times),
                "step_ns": group.step_ns,
                "least_ns": min(times),
                "most_ns": max(times),
                "between_seeds": group.spread,
            }
