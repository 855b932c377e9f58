"""Which layers of the model does the time of a step go to?"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pyarrow as pa

from tracekit.lines.means import Owner, OwnerMean, OwnerMeans
from tracekit.names import HEAD, short
from tracekit.report.blocks import Sentences, Table
from tracekit.report.model import Report
from tracekit.report.owned import owned
from tracekit.report.owner_costs import OwnerCosts, VariantOwners, shares_said, steps_of
from tracekit.report.registry import of_run
from tracekit.report.section import Contents
from tracekit.trace.schema import column

Chain = tuple[str, ...]
NONE = "outside of modules"
_MODULE = column("module", pa.string(), "the module, preceded by those that contain it", role="name")
_NAMED = 3
_COMMUNICATION = "gpu_comm"
_TOLD = 0.01  # of a step


@of_run("modules", "Layers", rank=37)
def modules(report: Report) -> Contents | None:
    """A tree: each module is followed by those that it calls, whose time it includes."""
    variants = [each for each in owned(report) if each.total_ns]
    if not variants:
        return None
    worth = max(each.share(lambda owner: bool(owner.module)) for each in variants)
    if not worth:
        return Contents((Sentences(("No module is called in a step.",)),), worth=0.0, status="absent")
    inclusive = OwnerCosts([with_inner(each) for each in variants], lambda owner: owner.module, report.baselines)
    costs = OwnerCosts(variants, lambda owner: owner.module)
    order = in_tree([each.by(inclusive.key) for each in inclusive.variants])
    table = inclusive.table([(_MODULE, [" · ".join(chain) or NONE for chain in order])], order)
    for each, shown in zip(variants, short([each.name for each in variants], HEAD), strict=True):
        of = each.by(costs.key)
        table = table.append_column(_exclusive(each.name, shown), pa.array([of.get(chain, 0.0) for chain in order]))
    # A collective is started by whichever gradient is ready last: it says nothing about that gradient's layer.
    communicates = max(each.share_in(_COMMUNICATION) for each in variants) >= _TOLD
    said = replace(inclusive, variants=[each.without(_COMMUNICATION) for each in inclusive.variants])
    costliest = {chain: chain[-1] for chain in [*filter(None, said.costliest_first())][:_NAMED]}
    what = "inner modules included" + (" and communication left out" if communicates else "")
    sentence = f"Shares of a step, {what}: {shares_said(said, steps_of(variants), costliest)}."
    return Contents((Sentences((sentence,)), Table("modules", table, detail=True)), worth=worth)


def _exclusive(variant: str, shown: str) -> pa.Field:
    meaning = "its own time, without the modules inside it; these columns add up to the step"
    return column(f"{variant} itself_ns", pa.float64(), meaning, "ns", role="detail", title=f"{shown} itself")


def with_inner(variant: VariantOwners) -> VariantOwners:
    """Each mean is added to its module and to all modules around that."""
    owners: list[Owner] = []
    means: list[OwnerMean] = []
    for mean in variant.means.means:
        owner = variant.means.owners[mean.owner]
        for length in _depths(owner.module):
            means.append(mean._replace(owner=len(owners)))
            owners.append(owner._replace(module=owner.module[:length]))
    return replace(variant, means=OwnerMeans(owners=owners, means=means))


def in_tree(variants: Iterable[Mapping[Chain, float]]) -> list[Chain]:
    """Every module after its caller; siblings in the order of cost, the costliest first."""
    most: dict[Chain, float] = {}
    for each in variants:
        for chain, ns in each.items():
            most[chain] = max(most.get(chain, 0.0), ns)
    return sorted(most, key=lambda chain: [(-most[chain[:length]], chain[:length]) for length in _depths(chain)])


def _depths(chain: Chain) -> range:
    """The depth of each module in the tree; time outside of modules is a row of its own."""
    return range(min(1, len(chain)), len(chain) + 1)
