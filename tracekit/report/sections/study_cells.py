"""What was swept, on what was it measured, how did the cells end, and why did some fail? What does each axis change,
everything else being equal: one axis at a time; pair by pair, as `dynamic` true against false, with the cure and
without it, one framework against another; and between seeds? And the columns by which all tables of a study name a
cell.
"""

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from msgspec.structs import asdict

from tracekit.base.names import sanitize
from tracekit.base.units import count, duration, many, percent
from tracekit.report.blocks import Block, Sentences, Table
from tracekit.report.model import Report
from tracekit.report.section import Contents, of_study, rows_of_study
from tracekit.study import CellResult, Study
from tracekit.study.failures import ENDINGS, reasons
from tracekit.study.pairs import Pair, axis_effects, cures, frameworks, pairs, variants_of
from tracekit.study.settings import groups_of, interval_text, names_of, settings
from tracekit.study.store import values_of
from tracekit.trace.schema import column

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
ENVIRONMENT = pa.schema(
    [
        column("what", pa.string(), "a version, a device, a setting", role="name"),
        column("value", pa.string(), "its value"),
        column("cells", pa.int64(), "cells measured with it"),
    ]
)
_VARIES = ("cpu_load", "gather_bytes_per_s", "gpus")  # differ from cell to cell by their nature
_MAX_FACTS = 6  # facts that a sentence can carry
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
AXES = pa.schema(
    [
        column("axis", pa.string(), "mode, dynamic, interpreter, a parameter …", role="name"),
        column("value", pa.string(), "the value of the axis"),
        column("against", pa.string(), "the first value of the axis"),
        column("ratio", pa.float64(), "step time at the value divided by that at the first one, geometric mean", "×"),
        column("interval", pa.string(), "95 % interval over the pairs", role="figure"),
        column("low", pa.float64(), "its lower end; null for one pair", "×", role="detail"),
        column("high", pa.float64(), "its upper end", "×", role="detail"),
        column("pairs", pa.int64(), "pairs of cells that differ in nothing else"),
    ]
)
_REAL = pa.float64()
PAIRS = pa.schema(
    [
        column("setting", pa.string(), "what both cells have in common", role="setting"),
        column("axis", pa.string(), "axis in which they differ"),
        column("value", pa.string(), "value of the first cell"),
        column("against", pa.string(), "value of the second cell"),
        column("step_ns", _REAL, "unprofiled step time of the first cell", "ns"),
        column("against_step_ns", _REAL, "unprofiled step time of the second cell", "ns"),
        column("speed_up", _REAL, "step time of the second cell divided by that of the first", "×"),
        column("memory", _REAL, "memory above the start, first cell divided by second", "×"),
        column("outcome", pa.string(), "how the first cell ended"),
        column("against_outcome", pa.string(), "how the second cell ended"),
    ]
)
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


@of_study("overview", "Overview", rank=0, stage="lead")
def overview(_: Report, study: Study) -> Contents:
    """A line for each fact."""
    rows = ({"fact": fact, "value": value} for fact, value in _sweep_facts(study))
    return Contents((Table.of("overview", rows, OVERVIEW, detail=True),))


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


@of_study("environment", "Environment", rank=90, stage="end")
def environment(_: Report, study: Study) -> Contents | None:
    """A row for each value of each fact; a warning where versions or devices differ within one interpreter."""
    counts: dict[str, Counter[str]] = {}
    for result in study.finished:
        for name, fact in (result.run.environment if result.run is not None else {}).items():
            # Packages and environment variables one by one, as `package numpy`.
            kind, is_mapping = name.removesuffix("s"), isinstance(fact, Mapping)
            facts = {f"{kind} {key}": part for key, part in fact.items()} if is_mapping else {name: fact}
            for fact_name, value in facts.items():
                counts.setdefault(fact_name, Counter())[str(value)] += 1
    if not counts:
        return None
    rows = [
        {"what": name, "value": value, "cells": cells}
        for name, values in counts.items()
        for value, cells in values.most_common()
    ]
    table = Table.of("environment", rows, ENVIRONMENT, detail=True)
    cells = sum(result.run is not None for result in study.finished)
    differ = [
        name
        for name, values in counts.items()
        if name not in _VARIES and (len(values) > 1 or (" " in name and values.total() < cells))
    ]
    if not differ:
        return Contents((table,))
    more = f" and {len(differ) - _MAX_FACTS} more" if len(differ) > _MAX_FACTS else ""
    names_text = f"{', '.join(differ[:_MAX_FACTS])}{more}"
    sentence = f"Not all cells were measured in the same environment: {names_text} differ."
    return Contents((Sentences((sentence,), "quiet"), table))


@of_study("outcomes", "How the cells ended", rank=4)
def outcomes(_: Report, study: Study) -> Contents:
    """Counts over all, then by axis and by outcome, then every failure."""
    by_outcome: dict[str, list[CellResult]] = {}
    by_value: dict[tuple[str, str], Counter[str]] = {}
    for result in study.results:
        by_outcome.setdefault(result.outcome, []).append(result)
        for axis_value in result.cell.axes.items():
            by_value.setdefault(axis_value, Counter())[result.outcome] += 1
    commonest = sorted(by_outcome.items(), key=lambda item: -len(item[1]))
    numbers = ", ".join(f"{len(results)} {outcome}" for outcome, results in commonest)
    values = Counter(axis for axis, _ in by_value)
    axes = [
        {
            "axis": axis,
            "value": value,
            "cells": count.total(),
            "ok": count["ok"],
            "failures": ", ".join(f"{n} {outcome}" for outcome, n in count.most_common() if outcome != "ok") or None,
        }
        for (axis, value), count in by_value.items()
        if values[axis] > 1
    ]
    kinds = [
        {
            "outcome": outcome,
            "cells": len(results),
            "share": len(results) / len(study.results),
            "recipes": ", ".join(dict.fromkeys(result.cell.recipe for result in results)),
            "variants": ", ".join(dict.fromkeys(result.cell.variant for result in results)),
            "example": next((result.record.error for result in results if result.record is not None), None),
        }
        for outcome, results in commonest
    ]
    failures = [
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
    blocks: list[Block] = [
        Sentences((f"{len(study.results)} cells: {numbers}.",)),
        Table.of("outcomes", axes, OUTCOMES, detail=True),
        Table.of("outcome_kinds", kinds, KINDS, detail=True),
    ]
    if failures:
        blocks.append(Table.of("failures", failures, FAILURES))
    return Contents(tuple(blocks))


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
    failed, cells = sum(len(reason.results) for reason in all_reasons), many(len(study.results), "cell")
    failed_cells = f"All {cells}" if failed == len(study.results) else f"{failed} of {cells}"
    sentences = [f"{failed_cells} failed, for {many(len(all_reasons), 'reason')}."]
    for reason in all_reasons[:_MAX_REASONS]:
        place = f" ({reason.where})" if reason.where else ""
        error = reason.error if len(reason.error) <= _WIDTH else f"{reason.error[:_WIDTH]}…"
        end = "" if error.endswith((".", "?", "!")) else "."
        ended = f"{many(len(reason.results), 'cell')}{place} {ENDINGS[reason.outcome]}"
        sentences.append(f"{ended}: {error}{end} {reason.change}.")
    if len(all_reasons) > _MAX_REASONS:
        sentences.append(f"The table failure_reasons has the other {len(all_reasons) - _MAX_REASONS}.")
    again = shlex.join(["tracekit", "sweep", study.manifest.sweep, "-o", str(study.folder), "--retry", "failed"])
    sentences.append(f"Then run them again: {again}")
    table = Table.of("failure_reasons", rows, REASONS, detail=True)
    return Contents((Sentences(tuple(map(sanitize, sentences))), table))


@of_study("axes", "One axis at a time", rank=15)
def axes(_: Report, study: Study) -> Contents | None:
    """A row per value of each axis that more than one cell differs in."""
    rows = []
    for effect in axis_effects(study):
        low, high = effect.interval or (None, None)
        row = {"against": effect.reference, "interval": interval_text(effect.interval), "low": low, "high": high}
        rows.append({**asdict(effect), **row})
    if not rows:
        return None
    sentence = (
        "Step times at each value of an axis, divided by those at its first value, over cells that differ in "
        "nothing else."
    )
    return Contents((Sentences((sentence,), "quiet"), Table.of("axes", rows, AXES)))


@rows_of_study("dynamic", "Dynamic shapes: true against false", PAIRS, rank=11)
def dynamic(study: Study) -> Iterator[dict[str, Any]]:
    """A row for each pair of cells that differ in `dynamic` only."""
    return _pair_rows(pairs(study, "dynamic", "true", "false"))


@rows_of_study("cures", "With the cure and without it", PAIRS, rank=12)
def with_cure(study: Study) -> Iterator[dict[str, Any]]:
    """A row for each pair of cells that differ in a parameter that is on or off."""
    return _pair_rows(pair for axis in cures(study) for pair in pairs(study, axis, "true", "false"))


@rows_of_study("frameworks", "One framework against another", PAIRS, rank=13)
def of_frameworks(study: Study) -> Iterator[dict[str, Any]]:
    """A row for each pair of cells that differ in the framework, or else in the interpreter."""
    return _pair_rows(pair for axis in frameworks(study) for pair in pairs(study, *axis))


def _pair_rows(pairs_of_cells: Iterable[Pair]) -> Iterator[dict[str, Any]]:
    compared = [*pairs_of_cells]
    axes_of = [{name: value for name, value in pair.common.items() if name != "recipe"} for pair in compared]
    names = names_of([{"recipe": pair.common["recipe"], **axes} for pair, axes in zip(compared, axes_of, strict=True)])
    for pair, name in zip(compared, names, strict=True):
        results = (pair.result, pair.reference_result)
        step_ns, against_ns = (result.measured.step_ns if result.measured is not None else None for result in results)
        above, against_above = (
            result.variant.memory.above_start_bytes if result.variant is not None else None for result in results
        )
        yield {
            "setting": name,
            "axis": pair.axis,
            "value": pair.value,
            "against": pair.reference,
            "step_ns": step_ns,
            "against_step_ns": against_ns,
            "speed_up": 1 / pair.ratio if pair.ratio else None,
            "memory": above / against_above if above is not None and against_above else None,
            "outcome": pair.result.outcome,
            "against_outcome": pair.reference_result.outcome,
        }


@rows_of_study("seeds", "Between seeds", SEEDS, rank=14)
def seeds(study: Study) -> Iterator[dict[str, Any]]:
    """A row for each setting and variant that was measured with several seeds."""
    for setting, group in groups_of(study):
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
