"""What was swept, how much of it ended well, and how long did it take?"""

from collections import Counter
from collections.abc import Iterator

import pyarrow as pa

from tracekit.report.blocks import Table
from tracekit.report.model import Report
from tracekit.report.registry import of_study
from tracekit.report.section import Contents
from tracekit.study import Study
from tracekit.study.cell import values_of
from tracekit.study.pivot import variants_of
from tracekit.study.settings import settings
from tracekit.trace.schema import column
from tracekit.units import count, duration, percent

OVERVIEW = pa.schema(
    [
        column("fact", pa.string(), "a fact about the study", role="name"),
        column("value", pa.string(), "its value", role="setting"),
    ]
)


@of_study("overview", "Overview", rank=0, stage="lead")
def overview(_: Report, study: Study) -> Contents:
    """A line for each fact."""
    rows = [{"fact": fact, "value": value} for fact, value in _facts(study)]
    return Contents((Table("overview", pa.Table.from_pylist(rows, OVERVIEW), detail=True),))


def _facts(study: Study) -> Iterator[tuple[str, str]]:
    manifest, all_settings = study.manifest, settings(study)
    counts = Counter(result.outcome for result in study.results)
    seconds = sum(result.record.seconds for result in study.finished if result.record is not None)
    yield "sweep", manifest.sweep
    yield "begun", manifest.created
    yield "tracekit", manifest.tracekit
    yield "device", manifest.device
    yield "cells", count(len(study.results))
    yield "succeeded", f"{count(counts['ok'])} ({percent(counts['ok'] / max(len(study.results), 1))})"
    yield from ((outcome, count(number)) for outcome, number in counts.most_common() if outcome != "ok")
    yield "settings", count(len(all_settings))
    yield "variants", ", ".join(variants_of(all_settings))
    for axis, values in values_of(study.cells).items():
        if len(values) > 1 and axis not in ("variant", "mode"):
            yield axis, ", ".join(values)
    yield "profiled steps of a cell", count(manifest.options.steps)
    yield "unprofiled passes of a cell, at most", count(manifest.options.passes)
    if manifest.options.threads:
        yield "threads of PyTorch's operators", count(manifest.options.threads)
    if manifest.options.epochs:
        yield "epochs of a training", count(manifest.options.epochs)
    yield "time of all cells", duration(seconds * 1e9)
