"""Why did cells fail, and what would change that?"""

import shlex
from collections.abc import Iterator

import pyarrow as pa

from tracekit.report.blocks import Sentences, Table
from tracekit.report.model import Report
from tracekit.report.registry import of_study
from tracekit.report.section import Contents
from tracekit.sanitize import sanitize
from tracekit.study import Study
from tracekit.study.failures import ENDINGS, Reason, reasons
from tracekit.trace.schema import column
from tracekit.units import many

_MAX_REASONS = 5  # reasons with a sentence of their own
_WIDTH = 200  # letters of an error
REASONS = pa.schema(
    [
        column("outcome", pa.string(), "oom, timeout, crash, error, skipped or interrupted", role="name"),
        column("cells", pa.int64(), "cells that ended for this reason"),
        column("where", pa.string(), "what these cells have in common, and others do not; null if nothing"),
        column("reason", pa.string(), "error of the first of them, in one line", role="name"),
        column("change", pa.string(), "what to change"),
    ]
)


@of_study("failure_reasons", "Why cells failed", rank=6, stage="lead")
def failure_reasons(_: Report, study: Study) -> Contents | None:
    """A sentence for each of the most frequent reasons; all of them in a table."""
    all_reasons = reasons(study)
    if not all_reasons:
        return None
    rows = [
        {
            "outcome": reason.outcome,
            "cells": len(reason.results),
            "where": reason.where or None,
            "reason": reason.error,
            "change": reason.change,
        }
        for reason in all_reasons
    ]
    table = Table("failure_reasons", pa.Table.from_pylist(rows, REASONS), detail=True)
    return Contents((Sentences(tuple(map(sanitize, _sentences(study, all_reasons)))), table))


def _sentences(study: Study, all_reasons: list[Reason]) -> Iterator[str]:
    failed, cells = sum(len(reason.results) for reason in all_reasons), many(len(study.results), "cell")
    failed_cells = f"All {cells}" if failed == len(study.results) else f"{failed} of {cells}"
    yield f"{failed_cells} failed, for {many(len(all_reasons), 'reason')}."
    for reason in all_reasons[:_MAX_REASONS]:
        place = f" ({reason.where})" if reason.where else ""
        error = reason.error if len(reason.error) <= _WIDTH else f"{reason.error[:_WIDTH]}…"
        end = "" if error.endswith((".", "?", "!")) else "."
        yield f"{many(len(reason.results), 'cell')}{place} {ENDINGS[reason.outcome]}: {error}{end} {reason.change}."
    if len(all_reasons) > _MAX_REASONS:
        yield f"The table failure_reasons has the other {len(all_reasons) - _MAX_REASONS}."
    again = shlex.join(["tracekit", "sweep", study.manifest.sweep, "-o", str(study.folder), "--retry", "failed"])
    yield f"Then run them again: {again}"
