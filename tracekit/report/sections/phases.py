"""What part of a step goes to data, forward, backward, the optimizer and evaluation?"""

import pyarrow as pa

from tracekit.report.blocks import Sentences, Table
from tracekit.report.model import Report
from tracekit.report.owned import owned
from tracekit.report.owner_costs import OwnerCosts, shares_said, steps_of
from tracekit.report.registry import of_run
from tracekit.report.section import Contents
from tracekit.trace.schema import column

_MAX_NAMES = 2
_PHASE = column("phase", pa.string(), "data, forward, backward, optimizer, eval or other", role="name")


@of_run("phases", "Phases of a step", rank=36)
def phases(report: Report) -> Contents | None:
    """A row per phase; they add up to the step."""
    variants = [variant for variant in owned(report) if variant.total_ns]
    if not variants:
        return None
    costs = OwnerCosts(variants, lambda owner: owner.phase, report.baselines)
    order = costs.costliest_first()
    names = {phase: phase for phase in order[:_MAX_NAMES]}
    sentence = f"Shares of a step: {shares_said(costs, steps_of(variants), names)}."
    table = Table("phases", costs.table([(_PHASE, order)], order), detail=True)
    return Contents((Sentences((sentence,)), table))
