"""How many apes are there?"""

from tracekit.report import Report
from tracekit.report.blocks import Sentences
from tracekit.report.section import Contents, of_run


@of_run("apes", "Apes")
def apes(report: Report) -> Contents:
    """One for each variant."""
    return Contents((Sentences((f"There are {len(report.profiles)} apes.",)),))
