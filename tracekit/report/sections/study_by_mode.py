"""Model × data × mode: how much faster than the baseline is each variant, in training and in inference?"""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from tracekit.report.blocks import Sentences, Table
from tracekit.report.model import Report
from tracekit.report.registry import of_study
from tracekit.report.section import Contents
from tracekit.report.study_columns import DATA, MODEL
from tracekit.study import Study
from tracekit.study.pivot import Row, rows, variants_of
from tracekit.study.settings import Setting, settings
from tracekit.trace.schema import Role, column

_SETTING = (
    MODEL,
    DATA,
    column("setting", pa.string(), "whatever else distinguishes settings of the study", role="setting"),
)
_MEANING = "step time of the baseline divided by its own"
_SIDE_BY_SIDE = 6  # variants
_RESERVED_NAMES = (*(field.name for field in _SETTING), "baseline", "step_ns")


@of_study("by_mode", "Speed-up in training, by model, data and mode", rank=2, stage="lead")
def in_training(_: Report, study: Study) -> Contents | None:
    """A row for each setting, a column for each variant."""
    return _contents("training", study)


@of_study("by_mode_inference", "Speed-up in inference, by model, data and mode", rank=3, stage="lead")
def in_inference(_: Report, study: Study) -> Contents | None:
    """The same for inference."""
    return _contents("inference", study)


def _contents(workload: str, study: Study) -> Contents | None:
    of_workload = rows(settings(study), workload)
    if not any(row.setting.speed_ups for row in of_workload):
        return None
    sentence = "Step time of the baseline divided by that of each variant; – where it failed, or was not compared."
    return Contents((Sentences((sentence,), "quiet"), _table(workload, of_workload)))


def _table(workload: str, of_workload: Sequence[Row]) -> Table:
    all_settings: list[Setting] = [row.setting for row in of_workload]
    compared = [name for name in variants_of(all_settings) if any(row.speed_up(name) for row in of_workload)]
    fields = [
        *_SETTING,
        column("baseline", pa.string(), "variant that the others are compared with", role="name"),
        column("step_ns", pa.float64(), f"a step of {workload} of the baseline, unprofiled", "ns"),
        *(column(_head(name), pa.float64(), _MEANING, "×", role=_role(name, len(compared))) for name in compared),
    ]
    table = pa.Table.from_pylist([*_rows(of_workload, compared)], pa.schema(fields))
    return Table(f"speed_up_{workload}", table)


def _role(variant: str, several: int) -> Role:
    """If there are many variants, people first see the plain modes, without further settings."""
    return "detail" if several > _SIDE_BY_SIDE and ":" in variant else ""


def _head(variant: str) -> str:
    """Its name over its column; a recipe may call a variant `baseline`, as another column is called."""
    return f"{variant} (variant)" if variant in _RESERVED_NAMES else variant


def _rows(of_workload: Sequence[Row], compared: Sequence[str]) -> Iterator[dict[str, Any]]:
    for row in of_workload:
        base = row.setting.groups[0]
        gains = {name: row.speed_up(name) for name in compared}
        yield {
            **setting_of(row),
            "baseline": base.variant,
            "step_ns": base.step_ns,
            **{_head(name): gain.speed_up if gain is not None else None for name, gain in gains.items()},
        }


def setting_of(row: Row) -> dict[str, str | None]:
    """The first columns."""
    return {"model": row.model, "data": row.data, "setting": row.rest or None}
