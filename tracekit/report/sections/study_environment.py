"""On what was the study measured, and was that the same for all cells?"""

from collections import Counter

import pyarrow as pa

from tracekit.report.blocks import Sentences, Table
from tracekit.report.model import Report
from tracekit.report.registry import of_study
from tracekit.report.section import Contents
from tracekit.study import Study
from tracekit.trace.schema import column

ENVIRONMENT = pa.schema(
    [
        column("what", pa.string(), "a version, a device, a setting", role="name"),
        column("value", pa.string(), "its value"),
        column("cells", pa.int64(), "cells measured with it"),
    ]
)
_VARIES = ("cpu_load", "gather_bytes_per_s", "gpus")  # differ from cell to cell by their nature


@of_study("environment", "Environment", rank=90, stage="end")
def environment(_: Report, study: Study) -> Contents | None:
    """A row for each value of each fact; a warning where versions or devices differ within one interpreter."""
    counts: dict[str, Counter[str]] = {}
    for result in study.finished:
        for name, value in (result.run.environment if result.run is not None else {}).items():
            counts.setdefault(name, Counter())[str(value)] += 1
    if not counts:
        return None
    rows = [
        {"what": name, "value": value, "cells": cells}
        for name, values in counts.items()
        for value, cells in values.most_common()
    ]
    table = Table("environment", pa.Table.from_pylist(rows, ENVIRONMENT), detail=True)
    differ = [name for name, values in counts.items() if len(values) > 1 and name not in _VARIES]
    if not differ:
        return Contents((table,))
    said = f"Not all cells were measured in the same environment: {', '.join(differ)} differ."
    return Contents((Sentences((said,), "quiet"), table))
