"""Which libraries does the time of a step go to, the user's own code and torch apart?"""

import pyarrow as pa

from tracekit.report.blocks import Sentences, Table
from tracekit.report.model import Report
from tracekit.report.owned import baselines, owned
from tracekit.report.owner_costs import Costs, OfVariant
from tracekit.report.registry import of_run
from tracekit.report.section import Contents
from tracekit.trace.schema import column
from tracekit.units import percent

_LIBRARY = column("library", pa.string(), "the library that a line of yours calls", role="name")
NONE = "none: your own code, and torch called from it"


@of_run("libraries", "Libraries", rank=38)
def libraries(report: Report) -> Contents | None:
    """A row per library, and one for what is none's; they add up to the step."""
    variants = [each for each in owned(report) if each.total_ns]
    if not variants:
        return None
    worth = max(each.share(lambda owner: bool(owner.library)) for each in variants)
    if not worth:
        said = Sentences(("No library but torch works in a step.",))
        return Contents((said,), worth=0.0, status="absent")
    costs = Costs(variants, lambda owner: owner.library, baselines(report))
    order = costs.dearest_first()
    table = costs.table([(_LIBRARY, [name or NONE for name in order])], order)
    return Contents((Sentences(tuple(map(_said, variants))), Table("libraries", table)), worth=worth)


def _said(variant: OfVariant) -> str:
    of = variant.by(lambda owner: owner.library)
    parts = [(name, ns / variant.total_ns) for name, ns in sorted(of.items(), key=lambda item: -item[1]) if name]
    told = ", ".join(f"{name} {percent(share)}" for name, share in parts[:3])
    return f"{variant.name}: {told or 'no library'} of a step."
