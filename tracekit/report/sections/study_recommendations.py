"""Which compile settings are best, and why?"""

import pyarrow as pa

from tracekit.report.blocks import Sentences, Table
from tracekit.report.model import Report
from tracekit.report.registry import of_study
from tracekit.report.section import Contents
from tracekit.sanitize import sanitize
from tracekit.study import Study
from tracekit.study.comparisons import settings
from tracekit.study.recommendations import recommend
from tracekit.trace.schema import column

RECOMMENDATIONS = pa.schema(
    [
        column("setting", pa.string(), "recipe, parameters, interpreter and workload", role="name"),
        column("use", pa.string(), "the variant to use; null where nothing could be compared"),
        column("speed_up", pa.float64(), "step time of the baseline divided by its own"),
        column("break_even_steps", pa.float64(), "steps until the time saved makes up for compiling"),
        column("evidence", pa.string(), "the recommendation in words", role="detail"),
    ]
)


@of_study("recommendations", "Recommendations", rank=1, stage="lead")
def recommendations(_: Report, study: Study) -> Contents:
    """One sentence per setting, with the evidence."""
    made = [recommend(setting) for setting in settings(study)]
    rows = [
        {
            "setting": each.setting.name,
            "use": each.variant,
            "speed_up": 1 / each.best.ratio if each.best is not None else None,
            "break_even_steps": each.best.break_even_steps if each.best is not None else None,
            "evidence": each.sentence,
        }
        for each in made
    ]
    sentences = Sentences(tuple(sanitize(each.sentence) for each in made))
    table = Table("recommendations", pa.Table.from_pylist(rows, RECOMMENDATIONS), detail=True)
    return Contents((sentences, table))
