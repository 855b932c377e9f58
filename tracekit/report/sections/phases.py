"""What part of a step goes to data, forward, backward, the optimizer and evaluation?"""

import pyarrow as pa

from tracekit.report.blocks import Sentences, Table
from tracekit.report.model import Report
from tracekit.report.owned import baselines, owned
from tracekit.report.owner_costs import Costs, OfVariant
from tracekit.report.registry import of_run
from tracekit.report.section import Contents
from tracekit.trace.schema import column
from tracekit.units import duration, percent

_PHASE = column("phase", pa.string(), "data, forward, backward, optimizer, eval or other", role="name")


@of_run("phases", "Phases of a step", rank=36)
def phases(report: Report) -> Contents | None:
    """A row per phase; they add up to the step."""
    variants = [each for each in owned(report) if each.total_ns]
    if not variants:
        return None
    costs = Costs(variants, lambda owner: owner.phase, baselines(report))
    order = costs.dearest_first()
    table = costs.table([(_PHASE, order)], order)
    return Contents((Sentences(tuple(map(_said, variants))), Table("phases", table)))


def _said(variant: OfVariant) -> str:
    of = variant.by(lambda owner: owner.phase)
    parts = sorted(of.items(), key=lambda item: -item[1])
    told = ", ".join(f"{percent(ns / variant.total_ns)} {phase}" for phase, ns in parts)
    return f"{variant.name}: {duration(variant.total_ns)} a step: {told}."
