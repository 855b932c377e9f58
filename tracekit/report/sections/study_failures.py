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

_SAID = 5  # reasons with a sentence of their own
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
    every = reasons(study)
    if not every:
        return None
    rows = [
        {
            "outcome": each.outcome,
            "cells": len(each.results),
            "where": each.where or None,
            "reason": each.error,
            "change": each.change,
        }
        for each in every
    ]
    table = Table("failure_reasons", pa.Table.from_pylist(rows, REASONS), detail=True)
    return Contents((Sentences(tuple(map(sanitize, _sentences(study, every)))), table))


def _sentences(study: Study, every: list[Reason]) -> Iterator[str]:
    failed, cells = sum(len(each.results) for each in every), many(len(study.results), "cell")
    which = f"All {cells}" if failed == len(study.results) else f"{failed} of {cells}"
    yield f"{which} failed, for {many(len(every), 'reason')}."
    for each in every[:_SAID]:
        where = f" ({each.where})" if each.where else ""
        reason = each.error if len(each.error) <= _WIDTH else f"{each.error[:_WIDTH]}…"
        end = "" if reason.endswith((".", "?", "!")) else "."
        yield f"{many(len(each.results), 'cell')}{where} {ENDINGS[each.outcome]}: {reason}{end} {each.change}."
    if len(every) > _SAID:
        yield f"The table failure_reasons has the other {len(every) - _SAID}."
    again = shlex.join(["tracekit", "sweep", study.manifest.sweep, "-o", str(study.folder), "--retry", "failed"])
    yield f"Then run them again: {again}"
