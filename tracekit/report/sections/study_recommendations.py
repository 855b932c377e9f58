"""Which compile settings are best, and why?"""

import pyarrow as pa

from tracekit.report.blocks import Sentences, Table
from tracekit.report.model import Report
from tracekit.report.registry import of_study
from tracekit.report.section import Contents
from tracekit.report.study_columns import DATA, MODEL, WORKLOAD
from tracekit.sanitize import sanitize
from tracekit.study import Study
from tracekit.study.pivot import rows
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
    table = Table("recommendations", pa.Table.from_pylist(lines, RECOMMENDATIONS), detail=not is_long)
    sentences = Sentences((_EVIDENCE_HINT,), "quiet") if is_long else _sentences(advice)
    return Contents((sentences, table))


@of_study("evidence", "The evidence", rank=2)
def evidence(_: Report, study: Study) -> Contents | None:
    """The sentences of many settings, which have no room beside the table."""
    advice = [recommend(setting) for setting in settings(study)]
    return Contents((_sentences(advice),), worth=0.0) if len(advice) > _MAX_SENTENCES else None


def _sentences(advice: list[Recommendation]) -> Sentences:
    return Sentences(tuple(sanitize(recommendation.sentence) for recommendation in advice))
