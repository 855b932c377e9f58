"""What does each axis of the sweep change, everything else being equal?"""

import pyarrow as pa

from tracekit.report.blocks import Sentences, Table
from tracekit.report.model import Report
from tracekit.report.registry import of_study
from tracekit.report.section import Contents
from tracekit.study import Study
from tracekit.study.axis_effects import axis_effects
from tracekit.study.settings import interval_text
from tracekit.trace.schema import column

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


@of_study("axes", "One axis at a time", rank=15)
def axes(_: Report, study: Study) -> Contents | None:
    """A row per value of each axis that more than one cell differs in."""
    rows = [
        {
            "axis": effect.axis,
            "value": effect.value,
            "against": effect.reference,
            "ratio": effect.ratio,
            "interval": interval_text(effect.interval),
            "low": effect.interval[0] if effect.interval is not None else None,
            "high": effect.interval[1] if effect.interval is not None else None,
            "pairs": effect.pairs,
        }
        for effect in axis_effects(study)
    ]
    if not rows:
        return None
    sentence = (
        "Step times at each value of an axis, divided by those at its first value, over cells that differ in "
        "nothing else."
    )
    return Contents((Sentences((sentence,), "quiet"), Table("axes", pa.Table.from_pylist(rows, AXES))))
