"""Which variant is best for each model, over everything that the model was trained on?"""

import math
import statistics
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from tracekit.report.blocks import Table
from tracekit.report.model import Report
from tracekit.report.registry import of_study
from tracekit.report.section import Contents
from tracekit.report.study_columns import MODEL, WORKLOAD
from tracekit.study import Study
from tracekit.study.pivot import Row, rows
from tracekit.study.recommendations import recommend
from tracekit.study.settings import settings
from tracekit.trace.schema import column

BEST = pa.schema(
    [
        MODEL,
        WORKLOAD,
        column("use", pa.string(), "the variant that is recommended at most of its settings", role="name"),
        column("settings", pa.int64(), "settings of this model that were compared"),
        column("recommended", pa.int64(), "of these, those at which it is recommended"),
        column("speed_up", pa.float64(), "step time of the baseline divided by its own, geometric mean", "×"),
        column("least", pa.float64(), "speed-up at the setting where it gains least", "×"),
        column("most", pa.float64(), "speed-up at the setting where it gains most", "×"),
    ]
)


@of_study("best", "Best setting for each model", rank=5)
def best(_: Report, study: Study) -> Contents | None:
    """A row for each model and workload; where several are recommended as often, the one that gains most."""
    by_model: dict[tuple[str, str], list[Row]] = {}
    for row in rows(settings(study)):
        if row.setting.baseline is not None:
            by_model.setdefault((row.model, row.setting.axes["workload"]), []).append(row)
    table_rows = [*_rows(by_model)]
    return Contents((Table("best", pa.Table.from_pylist(table_rows, BEST)),)) if table_rows else None


def _rows(by_model: dict[tuple[str, str], list[Row]]) -> Iterator[dict[str, Any]]:
    for (model, workload), of_model in by_model.items():
        recommended = [recommend(row.setting).variant for row in of_model]
        gains = {variant: _gains(of_model, variant) for variant in recommended if variant is not None}
        if not gains:
            continue
        use = max(gains, key=lambda variant: (recommended.count(variant), _mean(gains[variant]) or 1.0))
        yield {
            "model": model,
            "workload": workload,
            "use": use,
            "settings": len(of_model),
            "recommended": recommended.count(use),
            "speed_up": _mean(gains[use]),
            "least": min(gains[use], default=None),
            "most": max(gains[use], default=None),
        }


def _gains(of_model: list[Row], variant: str) -> list[float]:
    """The speed-ups of a variant at the settings where it was compared; none of the baseline itself."""
    compared = (row.speed_up(variant) for row in of_model)
    return [speed_up.speed_up for speed_up in compared if speed_up is not None]


def _mean(gains: list[float]) -> float | None:
    return math.exp(statistics.fmean(math.log(gain) for gain in gains)) if gains else None
