"""How much faster is each variant, at each setting, by model, data and mode, in training and in inference; what does
compiling cost it, and when does that pay off?
"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from tracekit.report.blocks import Sentences, Table
from tracekit.report.model import Report
from tracekit.report.section import Contents, of_study, rows_of_study
from tracekit.report.sections.study_cells import DATA, MODEL, SETTING, VARIANT
from tracekit.report.sections.study_compiling import graph_breaks, recompiles
from tracekit.study import Study
from tracekit.study.pairs import Row, rows, variants_of
from tracekit.study.settings import Group, Setting, SpeedUp, groups_of, interval_text, settings
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


@of_study("speed_ups", "Speed-ups", rank=5, stage="lead")
def speed_ups(_: Report, study: Study) -> Contents:
    """A row per setting and variant."""
    table_rows = [_speed_up_row(setting, group) for setting, group in groups_of(study)]
    is_long = len(table_rows) > _MAX_ROWS_SHOWN
    is_detail = is_long or not any(row["step_ns"] for row in table_rows)
    table = Table.of("speed_ups", table_rows, SPEED_UPS, detail=is_detail)
    if is_detail:
        return Contents((table,))
    return Contents((Sentences((_COVERS, *_other_seeds(settings(study))), "quiet"), table))


def _other_seeds(all_settings: list[Setting]) -> Iterator[str]:
    """Which seeds are compared where variants have different ones."""
    for setting in all_settings:
        baseline = setting.groups[0]
        for speed_up in setting.speed_ups:
            variant = speed_up.group.variant
            measured = next(group.measured for group in setting.groups if group.variant == variant)
            if measured.keys() != baseline.measured.keys():
                seeds = ", ".join(map(str, sorted(speed_up.group.measured)))
                variant_names = f"{variant} and {baseline.variant}"
                yield f"{setting.name}: {variant_names} are compared by the seeds that both have: {seeds}."


def _speed_up_row(setting: Setting, group: Group) -> dict[str, Any]:
    compared = setting.speed_up_of(group.variant)
    low, high = compared.interval if compared is not None and compared.interval is not None else (None, None)
    alike = compared.group if compared is not None else group
    ends = alike.step_interval or (None, None)
    memories = [variant.memory for variant in group.variants]
    peaks = [memory.peak_allocated_bytes or memory.host_peak_rss_bytes for memory in memories]
    return {
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
        if len(by_workload) > 1:
            yield from _workload_rows(by_workload["training"], by_workload["inference"])


def _workload_rows(training: Row, inference: Row) -> Iterator[dict[str, Any]]:
    for group in training.setting.groups:
        inference_group = next(
            (candidate for candidate in inference.setting.groups if candidate.variant == group.variant), None
        )
        if inference_group is None or (group.step_ns is None and inference_group.step_ns is None):
            continue
        yield {
            **setting_of(training),
            "variant": group.variant,
            "training_step_ns": group.step_ns,
            **_gain("training", training.setting.speed_up_of(group.variant)),
            "inference_step_ns": inference_group.step_ns,
            **_gain("inference", inference.setting.speed_up_of(group.variant)),
        }


def _gain(workload: str, compared: SpeedUp | None) -> dict[str, Any]:
    return {
        f"{workload}_faster": 1 - compared.time_ratio if compared is not None else None,
        f"{workload}_noise": compared.noise if compared is not None else None,
    }
