"""What must a reader know besides the figures?"""

from tracekit.report.blocks import Notes
from tracekit.report.model import Report
from tracekit.report.notes import merged
from tracekit.report.registry import of_run
from tracekit.report.section import Contents


@of_run("notes", "What to know", rank=10, stage="end")
def notes(report: Report) -> Contents | None:
    """Every note once."""
    once = merged(report.notes, [member.name for member in report.members])
    return Contents((Notes(tuple(once)),)) if once else None
