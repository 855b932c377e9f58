"""What does each line of yours cost, in every variant?"""

from tracekit.report.line_costs import SideBySide
from tracekit.report.model import Report
from tracekit.report.owned import owned
from tracekit.report.registry import of_run
from tracekit.report.section import Contents


@of_run("lines", "What each line of yours costs", rank=35)
def lines(report: Report) -> Contents | None:
    """The rows, the source of the costliest function, and the whole files."""
    variants = owned(report)
    if not any(variant.total_ns for variant in variants):
        return None
    side_by_side = SideBySide(variants, report.baselines)
    worth = max(variant.share(lambda owner: bool(owner.lines)) for variant in variants)
    return Contents(
        (*side_by_side.blocks(), *side_by_side.files()), worth=worth, tables={"lines": side_by_side.every_row}
    )
