"""Which libraries does the time of a step go to, apart from torch and your code?"""

import pyarrow as pa

from tracekit.report.blocks import Sentences, Table
from tracekit.report.model import Report
from tracekit.report.owned import owned
from tracekit.report.owner_costs import OwnerCosts, shares_said, steps_of
from tracekit.report.registry import of_run
from tracekit.report.section import Contents
from tracekit.trace.schema import column

_LIBRARY = column(
    "library", pa.string(), "the library whose code runs, called by a line of yours or by none", role="name"
)
NONE = "none: your own code, and torch called from it"
_MAX_NAMES = 3


@of_run("libraries", "Libraries", rank=38)
def libraries(report: Report) -> Contents | None:
    """A row per library, and one for the time outside of any library; they add up to the step."""
    variants = [variant for variant in owned(report) if variant.total_ns]
    if not variants:
        return None
    worth = max(variant.share(lambda owner: bool(owner.library)) for variant in variants)
    if not worth:
        nothing = Sentences(("No line of yours calls a library other than torch.",))
        return Contents((nothing,), worth=0.0, status="absent")
    costs = OwnerCosts(variants, lambda owner: owner.library, report.baselines)
    order = costs.costliest_first()
    costliest = {name: name for name in [*filter(None, order)][:_MAX_NAMES]}
    sentence = f"Shares of a step: {shares_said(costs, steps_of(variants), costliest)}."
    identity_columns = [(_LIBRARY, [name or NONE for name in order])]
    return Contents(
        (Sentences((sentence,)), Table("libraries", costs.table(identity_columns, order), detail=True)), worth=worth
    )
