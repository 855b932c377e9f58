"""What does each variant gain at each setting – by model, data and mode, in training and in inference –, what does
compiling it take and do, when does that pay off, and does it train as well, over the seeds?
"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from tracekit.profile.run_facts import SPREAD_EPOCHS, epoch_ns, epoch_with_compiling_ns
from tracekit.report.blocks import Sentences, Table
from tracekit.report.model import Report
from tracekit.report.section import Contents, of_study, rows_of_study
from tracekit.report.sections.accuracy import ACCURACY_COLUMNS, accuracy_row
from tracekit.report.sections.study_cells import DATA, MODEL, SETTING, VARIANT
from tracekit.run.accuracy import accuracy_contrast, in_words
from tracekit.run.contrast import cold_cost_ns
from tracekit.study import Study
from tracekit.study.pairs import Row, rows, variants_of
from tracekit.study.settings import Group, SpeedUp, groups_of, interval_text, settings
from tracekit.trace.schema import column

_REAL, _INTEGER = pa.float64(), pa.int64()
_MAX_ROWS_SHOWN = 24  # rows shown in every report; beyond that, the tables by model and mode are the ones to read
_COVERS = (
    "Each cell is a capture of its own. With one seed an interval covers how much its passes differ, and not what "
    "changed between captures; with several seeds it covers both."
)
SPEED_UPS = pa.schema(
    [
        SETTING,
        VARIANT,
        column("step_ns", _REAL, "a step, unprofiled; geometric mean over the seeds that its baseline has, too", "ns"),
        column("step_low_ns", _REAL, "lower end of its 95 % interval, over seeds or passes", "ns", role="detail"),
        column("step_high_ns", _REAL, "its upper end", "ns", role="detail"),
        column("baseline_step_ns", _REAL, "a step of the baseline with the same seeds", "ns", role="detail"),
        column("speed_up", _REAL, "step time of the setting's first variant divided by this one's", "×"),
        column("interval", pa.string(), "95 % interval of the speed-up", role="figure"),
        column("low", _REAL, "its lower end", "×", role="detail"),
        column("high", _REAL, "its upper end", "×", role="detail"),
        column("noise", pa.bool_(), "whether the interval contains 1"),
        column("compile_ns", _REAL, "time inside compilations; mean over the seeds", "ns"),
        column("break_even_steps", _REAL, "steps until the time saved makes up for the slower start"),
        column("graph_breaks", _INTEGER, "places where a graph breaks", title="graph break places"),
        column("recompiles", _INTEGER, "recompilations in the profiled pass"),
        column("peak_bytes", _INTEGER, "memory at the peak: allocated on the GPU, or else resident on the host", "B"),
        column("seeds", _INTEGER, "seeds that were measured"),
        column("between_seeds", _REAL, "standard deviation of log step time between seeds", "share", role="detail"),
        column("failed", _INTEGER, "cells that failed", role="detail"),
    ]
)
_SETTING = (
    MODEL,
    DATA,
    column("setting", pa.string(), "whatever else distinguishes settings of the study", role="setting"),
)
_MEANING = "step time of the baseline divided by its own"
_SIDE_BY_SIDE = 6  # variants
_RESERVED_NAMES = (*(field.name for field in _SETTING), "baseline", "step_ns")
WORKLOADS = pa.schema(
    [
        *_SETTING,
        VARIANT,
        column("training_step_ns", _REAL, "a step of training", "ns"),
        column("training_faster", _REAL, "how much less time it takes than the baseline", "share"),
        column("training_noise", pa.bool_(), "whether that is within noise"),
        column("inference_step_ns", _REAL, "an inference", "ns"),
        column("inference_faster", _REAL, "how much less time it takes than the baseline", "share"),
        column("inference_noise", pa.bool_(), "whether that is within noise"),
    ]
)
COMPILING = pa.schema(
    [
        SETTING,
        VARIANT,
        column("compile_ns", _REAL, "time inside compilations; mean over the seeds", "ns"),
        column("compiles", _REAL, "compilations"),
        column("first_step_ns", _REAL, "the first step, compilation included", "ns"),
        column(
            "cold_cost_ns",
            _REAL,
            "what the slower start cost: compiling before the first step, and longer first steps",
            "ns",
        ),
        column("break_even_steps", _REAL, "steps until the time saved makes up for the slower start"),
        column("epoch_steps", _INTEGER, "steps per epoch; null where they cannot be counted"),
        column("break_even_epochs", _REAL, "the same in epochs"),
        column("epoch_ns", _REAL, "an epoch at the unprofiled step time", "ns"),
        column("epoch_with_compiling_ns", _REAL, "the same, with the slower start spread over `epochs`", "ns"),
        column("epochs", _INTEGER, "epochs trained; 100 where none were"),
    ]
)
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
_MAX_SENTENCES = 6  # about accuracy, that are said one by one
ACCURACY = pa.schema([SETTING, VARIANT, *ACCURACY_COLUMNS])


@of_study("speed_ups", "Speed-ups", rank=5, stage="lead")
def speed_ups(_: Report, study: Study) -> Contents:
    """A row per setting and variant; and which seeds are compared where variants have different ones."""
    table_rows = []
    for setting, group in groups_of(study):
        compared = setting.speed_up_of(group.variant)
        low, high = compared.interval if compared is not None and compared.interval is not None else (None, None)
        alike = compared.group if compared is not None else group
        ends = alike.step_interval or (None, None)
        memories = [variant.memory for variant in group.variants]
        peaks = [memory.peak_allocated_bytes or memory.host_peak_rss_bytes for memory in memories]
        row = {
            "setting": setting.name,
            "variant": group.variant,
            "step_ns": alike.step_ns,
            "step_low_ns": ends[0],
            "step_high_ns": ends[1],
            "baseline_step_ns": compared.baseline.step_ns if compared is not None else None,
            "speed_up": compared.speed_up if compared is not None else None,
            "interval": interval_text((1 / high, 1 / low) if low and high else None),
            "low": 1 / high if high else None,
            "high": 1 / low if low else None,
            "noise": compared.noise if compared is not None else None,
            "compile_ns": group.compile_ns,
            "break_even_steps": compared.break_even_steps if compared is not None else None,
            "graph_breaks": graph_breaks(group),
            "recompiles": recompiles(group),
            "peak_bytes": max((peak for peak in peaks if peak is not None), default=None),
            "seeds": len(group.measured),
            "between_seeds": group.spread,
            "failed": len(group.failures),
        }
        table_rows.append(row)
    is_detail = len(table_rows) > _MAX_ROWS_SHOWN or not any(row["step_ns"] for row in table_rows)
    table = Table.of("speed_ups", table_rows, SPEED_UPS, detail=is_detail)
    if is_detail:
        return Contents((table,))
    sentences = [_COVERS]
    for setting, group in groups_of(study):
        baseline, speed_up = setting.groups[0], setting.speed_up_of(group.variant)
        if speed_up is not None and group.measured.keys() != baseline.measured.keys():
            seeds = ", ".join(map(str, sorted(speed_up.group.measured)))
            names = f"{group.variant} and {baseline.variant}"
            sentences.append(f"{setting.name}: {names} are compared by the seeds that both have: {seeds}.")
    return Contents((Sentences(tuple(sentences), "quiet"), table))


@of_study("by_mode", "Speed-up in training, by model, data and mode", rank=2, stage="lead")
def in_training(_: Report, study: Study) -> Contents | None:
    """A row for each setting, a column for each variant."""
    return _by_mode("training", study)


@of_study("by_mode_inference", "Speed-up in inference, by model, data and mode", rank=3, stage="lead")
def in_inference(_: Report, study: Study) -> Contents | None:
    """Speed-ups of inference, cell by cell."""
    return _by_mode("inference", study)


def _by_mode(workload: str, study: Study) -> Contents | None:
    of_workload = rows(settings(study), workload)
    if not any(row.setting.speed_ups for row in of_workload):
        return None
    variants = variants_of([row.setting for row in of_workload])
    compared = [name for name in variants if any(row.setting.speed_up_of(name) for row in of_workload)]
    # If there are many variants, people first see the plain modes, without further settings.
    details = {name for name in compared if len(compared) > _SIDE_BY_SIDE and ":" in name}
    fields = [
        *_SETTING,
        column("baseline", pa.string(), "variant that the others are compared with", role="name"),
        column("step_ns", pa.float64(), f"a step of {workload} of the baseline, unprofiled", "ns"),
        *(column(_head(name), _REAL, _MEANING, "×", role="detail" if name in details else "") for name in compared),
    ]
    table_rows: list[dict[str, Any]] = []
    for row in of_workload:
        base, gains = row.setting.groups[0], {name: row.setting.speed_up_of(name) for name in compared}
        by_variant = {_head(name): gain.speed_up if gain is not None else None for name, gain in gains.items()}
        table_rows.append({**setting_of(row), "baseline": base.variant, "step_ns": base.step_ns, **by_variant})
    sentence = "Step time of the baseline divided by that of each variant; – where it failed, or was not compared."
    table = Table.of(f"speed_up_{workload}", table_rows, pa.schema(fields))
    return Contents((Sentences((sentence,), "quiet"), table))


def _head(variant: str) -> str:
    """Its name over its column; a recipe may call a variant `baseline`, as another column is called."""
    return f"{variant} (variant)" if variant in _RESERVED_NAMES else variant


def setting_of(row: Row) -> dict[str, str | None]:
    """The first columns."""
    return {"model": row.model, "data": row.data, "setting": row.rest or None}


@rows_of_study("workloads", "Training and inference", WORKLOADS, rank=4, detail=False)
def workloads(study: Study) -> Iterator[dict[str, Any]]:
    """A row for each setting and variant of which both were measured."""
    by_setting: dict[tuple[str, str, str], dict[str, Row]] = {}
    for row in rows(settings(study)):
        by_setting.setdefault((row.model, row.data, row.rest), {})[row.setting.axes["workload"]] = row
    for by_workload in by_setting.values():
        if len(by_workload) < 2:
            continue
        training, inference = by_workload["training"], by_workload["inference"].setting
        by_variant = {group.variant: group for group in inference.groups}
        for group in training.setting.groups:
            inference_group = by_variant.get(group.variant)
            if inference_group is not None and (group.step_ns is not None or inference_group.step_ns is not None):
                yield {
                    **setting_of(training),
                    "variant": group.variant,
                    "training_step_ns": group.step_ns,
                    **_gain("training", training.setting.speed_up_of(group.variant)),
                    "inference_step_ns": inference_group.step_ns,
                    **_gain("inference", inference.speed_up_of(group.variant)),
                }


def _gain(workload: str, compared: SpeedUp | None) -> dict[str, Any]:
    return {
        f"{workload}_faster": 1 - compared.time_ratio if compared is not None else None,
        f"{workload}_noise": compared.noise if compared is not None else None,
    }


@rows_of_study("compile_cost", "Cost of compiling", COMPILING, rank=7)
def compiling(study: Study) -> Iterator[dict[str, Any]]:
    """A row for each setting and variant that was measured."""
    epochs = study.manifest.options.epochs or SPREAD_EPOCHS
    for setting, group in groups_of(study):
        if not group.measured:
            continue
        compared = setting.speed_up_of(group.variant)
        steps = compared.break_even_steps if compared is not None else None
        of_epoch = next((measured.epoch_steps for measured in group.measured.values()), None)
        yield {
            "setting": setting.name,
            "variant": group.variant,
            "compile_ns": group.compile_ns,
            "compiles": group.mean(lambda variant: variant.measured.compiles if variant.measured is not None else None),
            "first_step_ns": group.mean(
                lambda variant: (
                    next(iter(variant.measured.first_steps_ns), None) if variant.measured is not None else None
                )
            ),
            "cold_cost_ns": group.mean(cold_cost_ns),
            "break_even_steps": steps,
            "epoch_steps": of_epoch,
            "break_even_epochs": steps / of_epoch if steps is not None and of_epoch else None,
            "epoch_ns": group.mean(epoch_ns),
            "epoch_with_compiling_ns": group.mean(lambda variant: epoch_with_compiling_ns(variant, epochs)),
            "epochs": epochs if of_epoch else None,
        }


@rows_of_study("graphs", "Graphs, recompilations and breaks", GRAPHS, rank=10)
def graphs(study: Study) -> Iterator[dict[str, Any]]:
    """A row for each setting and variant that was compiled; the most of all seeds."""
    for setting, group in groups_of(study):
        compiled = [variant for variant in group.variants if variant.requested.compile]
        if not compiled:
            continue
        yield {
            "setting": setting.name,
            "variant": group.variant,
            "graphs": max(variant.ledger.graphs for variant in compiled),
            "recompiles": recompiles(group),
            "graph_breaks": graph_breaks(group),
            "reason": next((variant.ledger.breaks[0].reason for variant in compiled if variant.ledger.breaks), None),
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


@of_study("study_accuracy", "Accuracy", rank=6, stage="lead")
def accuracy(_: Report, study: Study) -> Contents | None:
    """A row for each setting and variant that was trained to its end. If there are few, a sentence for each; if many,
    how many lose nothing, and a sentence for each that may."""
    table_rows, sentences, doubtful = [], [], []
    for setting, group in groups_of(study):
        first = setting.groups[0]
        base_trainings = first.trainings if group is not first else []
        if group.trainings:
            row = accuracy_row(group.trainings, base_trainings)
            table_rows.append({"setting": setting.name, "variant": group.variant, **row})
        if (contrast := accuracy_contrast(group.trainings, base_trainings)) is not None:
            sentence = f"{setting.name}: {in_words(contrast, group.variant, first.variant)}."
            sentences.append(sentence)
            if contrast.verdict not in ("better", "no loss"):
                doubtful.append(sentence)
    if not table_rows:
        return None
    if len(sentences) > _MAX_SENTENCES:
        fine = len(sentences) - len(doubtful)
        sentences = [f"No loss of accuracy at {fine} of {len(sentences)} settings and variants.", *doubtful]
    table = Table.of("study_accuracy", table_rows, ACCURACY, detail=True)
    return Contents((Sentences(tuple(sentences)), table) if sentences else (table,))
