"""What was swept, on what was it measured, how did the cells end, and why did some fail? And the columns by which all
tables of a study name a cell.
"""

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from tracekit.report.blocks import Block, Sentences, Table
from tracekit.report.model import Report
from tracekit.report.section import Contents, of_study
from tracekit.sanitize import sanitize
from tracekit.study import CellResult, Study
from tracekit.study.cell import values_of
from tracekit.study.failures import ENDINGS, Reason, reasons
from tracekit.study.pivot import variants_of
from tracekit.study.settings import settings
from tracekit.trace.schema import column
from tracekit.units import count, duration, many, percent

SETTING = column("setting", pa.string(), "recipe, parameters, interpreter and workload", role="setting")
VARIANT = column("variant", pa.string(), "compile settings", role="name")
WORKLOAD = column("workload", pa.string(), "training or inference")
MODEL = column("model", pa.string(), "model, or recipe", role="name")
DATA = column("data", pa.string(), "data that it is trained on")

OVERVIEW = pa.schema(
    [
        column("fact", pa.string(), "a fact about the study", role="name"),
        column("value", pa.string(), "its value", role="setting"),
    ]
)


@of_study("overview", "Overview", rank=0, stage="lead")
def overview(_: Report, study: Study) -> Contents:
    """A line for each fact."""
    rows = [{"fact": fact, "value": value} for fact, value in _sweep_facts(study)]
    return Contents((Table("overview", pa.Table.from_pylist(rows, OVERVIEW), detail=True),))


def _sweep_facts(study: Study) -> Iterator[tuple[str, str]]:
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


ENVIRONMENT = pa.schema(
    [
        column("what", pa.string(), "a version, a device, a setting", role="name"),
        column("value", pa.string(), "its value"),
        column("cells", pa.int64(), "cells measured with it"),
    ]
)
_VARIES = ("cpu_load", "gather_bytes_per_s", "gpus")  # differ from cell to cell by their nature
_MAX_FACTS = 6  # facts that a sentence can carry


def _environment_facts(environment: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
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
        for name, value in _environment_facts(result.run.environment if result.run is not None else {}):
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
