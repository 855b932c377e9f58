"""On what was the study measured, and was that the same for all cells?"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

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
_MAX_FACTS = 6  # facts that a sentence can carry


def _facts(environment: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Name and value; packages and environment variables one by one, as `package numpy`."""
    for name, value in environment.items():
        if not isinstance(value, Mapping):
            yield name, str(value)
            continue
        for inner, of_inner in value.items():
            yield f"{name.removesuffix('s')} {inner}", str(of_inner)


@of_study("environment", "Environment", rank=90, stage="end")
def environment(_: Report, study: Study) -> Contents | None:
    """A row for each value of each fact; a warning where versions or devices differ within one interpreter."""
    counts: dict[str, Counter[str]] = {}
    for result in study.finished:
        for name, value in _facts(result.run.environment if result.run is not None else {}):
            counts.setdefault(name, Counter())[value] += 1
    if not counts:
        return None
    rows = [
        {"what": name, "value": value, "cells": cells}
        for name, values in counts.items()
        for value, cells in values.most_common()
    ]
    table = Table("environment", pa.Table.from_pylist(rows, ENVIRONMENT), detail=True)
    cells = sum(result.run is not None for result in study.finished)
    differ = [
        name
        for name, values in counts.items()
        if name not in _VARIES and (len(values) > 1 or (" " in name and values.total() < cells))
    ]
    if not differ:
        return Contents((table,))
    names_text = (
        f"{', '.join(differ[:_MAX_FACTS])}{f' and {len(differ) - _MAX_FACTS} more' if len(differ) > _MAX_FACTS else ''}"
    )
    sentence = f"Not all cells were measured in the same environment: {names_text} differ."
    return Contents((Sentences((sentence,), "quiet"), table))
