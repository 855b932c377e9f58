"""What did the compiler do at each setting: graphs, recompilations, breaks, and what it gave up on?"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from tracekit.report.blocks import Table
from tracekit.report.model import Report
from tracekit.report.registry import of_study
from tracekit.report.section import Contents
from tracekit.report.study_columns import SETTING, VARIANT
from tracekit.run import Variant
from tracekit.study import Study
from tracekit.study.settings import Group, Setting, settings
from tracekit.trace.schema import column

_INTEGER = pa.int64()
GRAPHS = pa.schema(
    [
        SETTING,
        VARIANT,
        column("graphs", _INTEGER, "graphs compiled in the profiled pass, first ones and recompilations"),
        column("recompiles", _INTEGER, "recompilations in the profiled pass, including those that failed"),
        column("graph_breaks", _INTEGER, "places where a graph breaks", title="graph break places"),
        column("reason", pa.string(), "why the first of them breaks, in the compiler's own words", role="reason"),
        column("gave_up", _INTEGER, "functions that reached the recompile limit and have run eagerly since"),
        column("mode", pa.string(), "the mode that was in effect"),
        column("ran_eagerly", pa.string(), "why nothing was compiled although that was requested"),
    ]
)


@of_study("graphs", "Graphs, recompilations and breaks", rank=10)
def graphs(_: Report, study: Study) -> Contents | None:
    """A row for each setting and variant that was compiled; the most of all seeds."""
    table_rows = [row for setting in settings(study) for row in _rows(setting)]
    return Contents((Table("graphs", pa.Table.from_pylist(table_rows, GRAPHS), detail=True),)) if table_rows else None


def _rows(setting: Setting) -> Iterator[dict[str, Any]]:
    for group in setting.groups:
        compiled = [variant for variant in group.variants if variant.requested.compile]
        if not compiled:
            continue
        yield {
            "setting": setting.name,
            "variant": group.variant,
            "graphs": max(variant.ledger.graphs for variant in compiled),
            "recompiles": recompiles(group),
            "graph_breaks": graph_breaks(group),
            "reason": _reason(compiled),
            "gave_up": max(len(variant.ledger.limits) for variant in compiled),
            "mode": ", ".join(dict.fromkeys(variant.effective.mode or "" for variant in compiled)) or None,
            "ran_eagerly": group.ran_eagerly,
        }


def graph_breaks(group: Group) -> int | None:
    """Places where a graph breaks: the most of all seeds; None where nothing was captured."""
    return max((variant.ledger.break_places for variant in group.variants), default=None)


def recompiles(group: Group) -> int | None:
    """Recompilations in the profiled pass: the most of all seeds; None where nothing was captured."""
    return max((variant.ledger.recompiles for variant in group.variants), default=None)


def _reason(compiled: list[Variant]) -> str | None:
    return next((variant.ledger.breaks[0].reason for variant in compiled if variant.ledger.breaks), None)
