"""Which cells failed, how, and along which axes?"""

from collections import Counter

import pyarrow as pa

from tracekit.report.blocks import Block, Sentences, Table
from tracekit.report.model import Report
from tracekit.report.registry import of_study
from tracekit.report.section import Contents
from tracekit.report.study_columns import VARIANT, WORKLOAD
from tracekit.study import CellResult, Study
from tracekit.trace.schema import column

OUTCOMES = pa.schema(
    [
        column("axis", pa.string(), "an axis of the sweep", role="name"),
        column("value", pa.string(), "a value of the axis"),
        column("cells", pa.int64(), "cells with that value"),
        column("ok", pa.int64(), "of these, those that succeeded"),
        column("failures", pa.string(), "the others, by how they ended"),
    ]
)
KINDS = pa.schema(
    [
        column("outcome", pa.string(), "how cells ended", role="name"),
        column("cells", pa.int64(), "cells that ended this way"),
        column("share", pa.float64(), "share of all cells", "share"),
        column("recipes", pa.string(), "recipes of these cells"),
        column("variants", pa.string(), "variants of these cells", role="name"),
        column("example", pa.string(), "error of the first of them, in one line", role="name"),
    ]
)
FAILURES = pa.schema(
    [
        column("cell", pa.string(), "folder of the cell", role="detail"),
        column("recipe", pa.string(), "recipe or script that was run"),
        WORKLOAD,
        VARIANT,
        column("seed", pa.int64(), "seed of every random number generator", role="identity"),
        column("outcome", pa.string(), "oom, timeout, crash, error, skipped or interrupted"),
        column("error", pa.string(), "what happened, in one line", role="name"),
        column("params", pa.string(), "parameters of the cell"),
    ]
)


@of_study("outcomes", "How the cells ended", rank=4)
def outcomes(_: Report, study: Study) -> Contents:
    """Counts over all, then by axis, then every failure."""
    counts = Counter(result.outcome for result in study.results)
    sentence = (
        f"{len(study.results)} cells: {', '.join(f'{count} {outcome}' for outcome, count in counts.most_common())}."
    )
    blocks: list[Block] = [
        Sentences((sentence,)),
        Table("outcomes", pa.Table.from_pylist([*_by_axis(study)], OUTCOMES), detail=True),
        Table("outcome_kinds", pa.Table.from_pylist(_by_kind(study), KINDS), detail=True),
    ]
    failures = [*_failures(study)]
    if failures:
        blocks.append(Table("failures", pa.Table.from_pylist(failures, FAILURES)))
    return Contents(tuple(blocks))


def _by_kind(study: Study) -> list[dict[str, object]]:
    kinds: dict[str, list[CellResult]] = {}
    for result in study.results:
        kinds.setdefault(result.outcome, []).append(result)
    return [
        {
            "outcome": outcome,
            "cells": len(results),
            "share": len(results) / len(study.results),
            "recipes": ", ".join(dict.fromkeys(result.cell.recipe for result in results)),
            "variants": ", ".join(dict.fromkeys(result.cell.variant for result in results)),
            "example": next((result.record.error for result in results if result.record is not None), None),
        }
        for outcome, results in sorted(kinds.items(), key=lambda item: -len(item[1]))
    ]


def _by_axis(study: Study) -> list[dict[str, object]]:
    counts: dict[tuple[str, str], Counter[str]] = {}
    for result in study.results:
        for axis, value in result.cell.axes.items():
            counts.setdefault((axis, value), Counter())[result.outcome] += 1
    varying = Counter(axis for axis, _ in counts)
    return [
        {
            "axis": axis,
            "value": value,
            "cells": count.total(),
            "ok": count["ok"],
            "failures": ", ".join(f"{n} {outcome}" for outcome, n in count.most_common() if outcome != "ok") or None,
        }
        for (axis, value), count in counts.items()
        if varying[axis] > 1
    ]


def _failures(study: Study) -> list[dict[str, object]]:
    return [
        {
            "cell": result.cell.folder,
            "recipe": result.cell.recipe,
            "workload": result.cell.workload,
            "variant": result.cell.variant,
            "seed": result.cell.seed,
            "outcome": result.outcome,
            "error": result.record.error,
            "params": ", ".join(f"{name}={value}" for name, value in result.cell.params.items()) or None,
        }
        for result in study.finished
        if result.record is not None and result.outcome != "ok"
    ]
