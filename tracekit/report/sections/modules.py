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
_MAX_NAMES = 3
_COMMUNICATION = "gpu_comm"
_MIN_COMMUNICATION_SHARE = 0.01  # of a step


@of_run("modules", "Layers", rank=37)
def modules(report: Report) -> Contents | None:
    """A tree: each module is followed by those that it calls, whose time it includes."""
    variants = [variant for variant in owned(report) if variant.total_ns]
    if not variants:
        return None
    worth = max(variant.share(lambda owner: bool(owner.module)) for variant in variants)
    if not worth:
        return Contents((Sentences(("No module is called in a step.",)),), worth=0.0, status="absent")
    inclusive = OwnerCosts([with_inner(variant) for variant in variants], lambda owner: owner.module, report.baselines)
    costs = OwnerCosts(variants, lambda owner: owner.module)
    order = in_tree([variant.by(inclusive.key) for variant in inclusive.variants])
    table = inclusive.table([(_MODULE, [" · ".join(chain) or NONE for chain in order])], order)
    for variant, title in zip(variants, short([variant.name for variant in variants], HEAD), strict=True):
        exclusive_ns = variant.by(costs.key)
        table = table.append_column(
            _exclusive(variant.name, title), pa.array([exclusive_ns.get(chain, 0.0) for chain in order])
        )
    # A collective is started by whichever gradient is ready last: it says nothing about that gradient's layer.
    communicates = max(variant.share_in(_COMMUNICATION) for variant in variants) >= _MIN_COMMUNICATION_SHARE
    computing = replace(inclusive, variants=[variant.without(_COMMUNICATION) for variant in inclusive.variants])
    costliest = {chain: chain[-1] for chain in [*filter(None, computing.costliest_first())][:_MAX_NAMES]}
    scope = "inner modules included" + (" and communication left out" if communicates else "")
    sentence = f"Shares of a step, {scope}: {shares_said(computing, steps_of(variants), costliest)}."
    return Contents((Sentences((sentence,)), Table("modules", table, detail=True)), worth=worth)


def _exclusive(variant: str, title: str) -> pa.Field:
    meaning = "its own time, without the modules inside it; these columns add up to the step"
    return column(f"{variant} itself_ns", pa.float64(), meaning, "ns", role="detail", title=f"{title} itself")


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
    highest_ns: dict[Chain, float] = {}
    for costs in variants:
        for chain, ns in costs.items():
            highest_ns[chain] = max(highest_ns.get(chain, 0.0), ns)
    return sorted(
        highest_ns, key=lambda chain: [(-highest_ns[chain[:length]], chain[:length]) for length in _depths(chain)]
    )


def _depths(chain: Chain) -> range:
    """The depth of each module in the tree; time outside of modules is a row of its own."""
    return range(min(1, len(chain)), len(chain) + 1)
