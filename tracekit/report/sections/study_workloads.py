"""What does compiling gain in training, and what in inference? Both are shown side by side for each setting."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from tracekit.report.blocks import Table
from tracekit.report.model import Report
from tracekit.report.registry import of_study
from tracekit.report.section import Contents
from tracekit.report.sections.study_by_mode import setting_of
from tracekit.report.study_columns import DATA, MODEL, VARIANT
from tracekit.study import Study
from tracekit.study.pivot import Row, rows
from tracekit.study.settings import SpeedUp, settings
from tracekit.trace.schema import column

_REAL = pa.float64()
WORKLOADS = pa.schema(
    [
        MODEL,
        DATA,
        column("setting", pa.string(), "whatever else distinguishes settings of the study", role="setting"),
        VARIANT,
        column("training_step_ns", _REAL, "a step of training", "ns"),
        column("training_faster", _REAL, "how much less time it takes than the baseline", "share"),
        column("training_noise", pa.bool_(), "whether that is within noise"),
        column("inference_step_ns", _REAL, "an inference", "ns"),
        column("inference_faster", _REAL, "how much less time it takes than the baseline", "share"),
        column("inference_noise", pa.bool_(), "whether that is within noise"),
    ]
)


@of_study("workloads", "Training and inference", rank=4)
def workloads(_: Report, study: Study) -> Contents | None:
    """A row for each setting and variant of which both were measured."""
    by_setting: dict[tuple[str, str, str], dict[str, Row]] = {}
    for row in rows(settings(study)):
        by_setting.setdefault((row.model, row.data, row.rest), {})[row.setting.axes["workload"]] = row
    row_pairs = [by_workload for by_workload in by_setting.values() if len(by_workload) > 1]
    table_rows = [
        line for by_workload in row_pairs for line in _rows(by_workload["training"], by_workload["inference"])
    ]
    return Contents((Table("workloads", pa.Table.from_pylist(table_rows, WORKLOADS)),)) if table_rows else None


def _rows(training: Row, inference: Row) -> Iterator[dict[str, Any]]:
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
            **_gain("training", training.speed_up(group.variant)),
            "inference_step_ns": inference_group.step_ns,
            **_gain("inference", inference.speed_up(group.variant)),
        }


def _gain(workload: str, compared: SpeedUp | None) -> dict[str, Any]:
    return {
        f"{workload}_faster": 1 - compared.time_ratio if compared is not None else None,
        f"{workload}_noise": compared.noise if compared is not None else None,
    }
