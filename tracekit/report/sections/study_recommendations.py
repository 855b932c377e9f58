"""Which compile settings are best for each model, over everything that it was trained on, and why?"""

import math
import statistics
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from tracekit.base.names import sanitize
from tracekit.report.blocks import Sentences, Table
from tracekit.report.model import Report
from tracekit.report.section import Contents, of_study, rows_of_study
from tracekit.report.sections.study_cells import DATA, MODEL, WORKLOAD
from tracekit.study import Study
from tracekit.study.pairs import Row, rows
from tracekit.study.recommendations import Recommendation, recommend
from tracekit.study.settings import settings
from tracekit.trace.schema import column

_MAX_SENTENCES = 20  # settings: too many for a sentence each
_EVIDENCE_HINT = "--full and the workbook give the evidence for each in words."
RECOMMENDATIONS = pa.schema(
    [
        MODEL,
        DATA,
        WORKLOAD,
        column("rest", pa.string(), "whatever else distinguishes settings of the study", role="setting"),
        column("use", pa.string(), "the variant to use; null where nothing could be compared"),
        column("speed_up", pa.float64(), "step time of the baseline divided by its own", "×"),
        column("break_even_steps", pa.float64(), "steps until the time saved makes up for the slower start"),
        column("basis", pa.string(), "what it rests on: seeds, passes, or that all variants are within noise"),
        column("setting", pa.string(), "the whole setting in one text", role="detail"),
        column("evidence", pa.string(), "the recommendation in words", role="detail"),
    ]
)
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


@of_study("recommendations", "Recommendations", rank=1, stage="lead")
def recommendations(_: Report, study: Study) -> Contents:
    """One sentence per setting, with the evidence; of many settings a table, which has the sentences, too."""
    setting_rows = rows(settings(study))
    advice = [recommend(row.setting) for row in setting_rows]
    lines = [
        {
            "model": row.model,
            "data": row.data,
            "workload": row.setting.axes["workload"],
            "rest": row.rest or None,
            "setting": recommendation.setting.name,
            "use": recommendation.variant,
            "speed_up": recommendation.best.speed_up if recommendation.best is not None else None,
            "break_even_steps": recommendation.best.break_even_steps if recommendation.best is not None else None,
            "basis": recommendation.basis,
            "evidence": recommendation.sentence,
        }
        for row, recommendation in zip(setting_rows, advice, strict=True)
    ]
    is_long = len(advice) > _MAX_SENTENCES
    table = Table.of("recommendations", lines, RECOMMENDATIONS, detail=not is_long)
    sentences = Sentences((_EVIDENCE_HINT,), "quiet") if is_long else _sentences(advice)
    return Contents((sentences, table))


@of_study("evidence", "The evidence", rank=2)
def evidence(_: Report, study: Study) -> Contents | None:
    """The sentences of many settings, which have no room beside the table."""
    advice = [recommend(setting) for setting in settings(study)]
    return Contents((_sentences(advice),), worth=0.0) if len(advice) > _MAX_SENTENCES else None


def _sentences(advice: list[Recommendation]) -> Sentences:
    return Sentences(tuple(sanitize(recommendation.sentence) for recommendation in advice))


@rows_of_study("best", "Best setting for each model", BEST, rank=5, detail=False)
def best(study: Study) -> Iterator[dict[str, Any]]:
    """A row for each model and workload; where several are recommended as often, the one that gains most."""
    by_model: dict[tuple[str, str], list[Row]] = {}
    for row in rows(settings(study)):
        if row.setting.baseline is not None:
            by_model.setdefault((row.model, row.setting.axes["workload"]), []).append(row)
    for (model, workload), of_model in by_model.items():
        recommended = [recommend(row.setting).variant for row in of_model]
        # The speed-ups of each at the settings where it was compared; none of the baseline itself.
        gains = {
            variant: [gain.speed_up for row in of_model if (gain := row.setting.speed_up_of(variant)) is not None]
            for variant in recommended
            if variant is not None
        }
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


def _mean(gains: list[float]) -> float | None:
    return math.exp(statistics.fmean(math.log(gain) for gain in gains)) if gains else None
