"""Which layers of the model, which phases, which libraries and which edge types does the time of a step go to? PyG
gives each edge type a module of its own, whose path contains the type.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

import pyarrow as pa
from msgspec.structs import replace

from tracekit.base.names import HEAD, sanitize, short
from tracekit.base.units import percent
from tracekit.lines.means import Owner, OwnerMean, OwnerMeans
from tracekit.profile import Profile
from tracekit.report.blocks import Sentences, Table
from tracekit.report.model import Report
from tracekit.report.owner_costs import OwnerCosts, VariantOwners, owners_by_variant, shares_sentence, steps_of
from tracekit.report.section import Contents, of_run
from tracekit.trace.schema import column

_LIBRARY = column(
    "library", pa.string(), "the library whose code runs, called by a line of yours or by none", role="name"
)
NO_LIBRARY = "none: your own code, and torch called from it"
_MAX_NAMES = 3
Chain = tuple[str, ...]
NO_MODULE = "outside of modules"
_MODULE = column("module", pa.string(), "the module, preceded by those that contain it", role="name")
_COMMUNICATION = "gpu_comm"
_MIN_COMMUNICATION_SHARE = 0.01  # of a step
_NAMED_PHASES = 2
_PHASE = column(
    "phase",
    pa.string(),
    "data, graph building, forward, backward (inner, double), optimizer, eval, saving or other",
    role="name",
)
_OUTSIDE = "outside of edge types"
_TYPE = column("edge type", pa.string(), "source, relation and target", role="name")
_HETERO_CONV = re.compile(r"<(.+?)___(.+?)___(.+?)>")  # convs.<user___rates___movie>
_TO_HETERO = re.compile(r"[^_].*?__[^_].*?__[^_].*")  # conv.user__rates__movie


def _answered(report: Report) -> list[VariantOwners]:
    """The owners in the variants whose steps can be answered."""
    return [variant for variant in owners_by_variant(report) if variant.total_ns]


@of_run("libraries", "Libraries", rank=38)
def libraries(report: Report) -> Contents | None:
    """A row per library, and one for the time outside of any library; they add up to the step."""
    variants = _answered(report)
    if not variants:
        return None
    worth = max(variant.share(lambda owner: bool(owner.library)) for variant in variants)
    if not worth:
        sentence = "No line of yours calls a library other than torch."
        return Contents((Sentences((sentence,)),), worth=0.0, status="absent")
    costs = OwnerCosts(variants, lambda owner: owner.library, report.baselines)
    order = costs.costliest_first()
    costliest = {name: name for name in [*filter(None, order)][:_MAX_NAMES]}
    sentence = f"Shares of a step: {shares_sentence(costs, steps_of(variants), costliest)}."
    table = costs.table([(_LIBRARY, [name or NO_LIBRARY for name in order])], order)
    return Contents((Sentences((sentence,)), Table("libraries", table, detail=True)), worth=worth)


@of_run("modules", "Layers", rank=37)
def modules(report: Report) -> Contents | None:
    """A tree: each module is followed by those that it calls, whose time it includes."""
    variants = _answered(report)
    if not variants:
        return None
    worth = max(variant.share(lambda owner: bool(owner.module)) for variant in variants)
    if not worth:
        return Contents((Sentences(("No module is called in a step.",)),), worth=0.0, status="absent")
    inclusive = OwnerCosts([with_inner(variant) for variant in variants], lambda owner: owner.module, report.baselines)
    costs = OwnerCosts(variants, lambda owner: owner.module)
    order = in_tree([variant.by(inclusive.key) for variant in inclusive.variants])
    table = inclusive.table([(_MODULE, [" · ".join(chain) or NO_MODULE for chain in order])], order)
    for variant, title in zip(variants, short([variant.name for variant in variants], HEAD), strict=True):
        exclusive_ns = variant.by(costs.key)
        meaning = "its own time, without the modules inside it; these columns add up to the step"
        itself = column(
            f"{variant.name} itself_ns", pa.float64(), meaning, "ns", role="detail", title=f"{title} itself"
        )
        table = table.append_column(itself, pa.array([exclusive_ns.get(chain, 0.0) for chain in order]))
    # A collective is started by whichever gradient is ready last: it says nothing about that gradient's layer.
    communicates = any(
        1 - variant.without(_COMMUNICATION).total_ns / variant.total_ns >= _MIN_COMMUNICATION_SHARE
        for variant in variants
    )
    computing = replace(inclusive, variants=[variant.without(_COMMUNICATION) for variant in inclusive.variants])
    costliest = {chain: chain[-1] for chain in [*filter(None, computing.costliest_first())][:_MAX_NAMES]}
    scope = "inner modules included" + (" and communication left out" if communicates else "")
    sentence = f"Shares of a step, {scope}: {shares_sentence(computing, steps_of(variants), costliest)}."
    return Contents((Sentences((sentence,)), Table("modules", table, detail=True)), worth=worth)


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


@of_run("phases", "Phases of a step", rank=36)
def phases(report: Report) -> Contents | None:
    """A row per phase; they add up to the step."""
    variants = _answered(report)
    if not variants:
        return None
    costs = OwnerCosts(variants, lambda owner: owner.phase, report.baselines)
    order = costs.costliest_first()
    names = {phase: phase for phase in order[:_NAMED_PHASES]}
    sentence = f"Shares of a step: {shares_sentence(costs, steps_of(variants), names)}."
    table = Table("phases", costs.table([(_PHASE, order)], order), detail=True)
    return Contents((Sentences((sentence,)), table))


@of_run("edge_types", "Edge types", rank=35)
def edge_types(report: Report) -> Contents | None:
    """A row per type, and one for the time outside of them; they add up to the step."""
    profiles = {profile.name: profile for profile in report.profiles}
    edges = {name: p.variant.graphs.edge_types for name, p in profiles.items() if p.variant and p.variant.graphs}
    by_type = [_by_type(variant, profiles[variant.name]) for variant in _answered(report)]
    typed = [variant for variant in by_type if variant.share(_has_type)]
    unanswerable = [
        variant.name for variant in by_type if variant not in typed and len(edges.get(variant.name, ())) > 1
    ]
    if not typed:
        return Contents((Sentences((_of_one_module(unanswerable),)),), status="unanswered") if unanswerable else None
    costs = OwnerCosts(typed, lambda owner: owner.module[0] if owner.module else "", report.baselines)
    order = costs.costliest_first()
    names = {edge_type: edge_type for edge_type in [*filter(None, order)][:_MAX_NAMES]}
    worth = max(variant.share(_has_type) for variant in typed)
    bound = "up to " if len(typed) > 1 else ""
    sentences = [
        f"Edge types take {bound}{percent(worth)} of a step: {shares_sentence(costs, steps_of(typed), names)}."
    ]
    if unanswerable:
        sentences.append(_of_one_module(unanswerable))
    columns: list[tuple[pa.Field, Sequence[object]]] = [(_TYPE, [edge_type or _OUTSIDE for edge_type in order])]
    for name in [variant.name for variant in typed if edges.get(variant.name)]:
        known_counts = {kind: [n for n in counts if n is not None] for kind, counts in edges[name].items()}
        means = {kind: fmean(counts) for kind, counts in known_counts.items() if counts}
        title, meaning = f"edges, {name}", "edges of that type in a step, on average"
        columns.append((column(title, pa.float64(), meaning, title=title), [means.get(kind) for kind in order]))
    return Contents((Sentences(tuple(sentences)), Table("edge_types", costs.table(columns, order))), worth=worth)


def _by_type(variant: VariantOwners, profile: Profile) -> VariantOwners:
    """The owners' costs by edge type instead of by module."""
    paths = profile.module_paths
    types = [edge_type_of(owner.module, paths) for owner in variant.means.owners]
    owners = [
        owner._replace(module=(kind,) if kind else ()) for owner, kind in zip(variant.means.owners, types, strict=True)
    ]
    return replace(variant, means=OwnerMeans(owners=owners, means=variant.means.means))


def _has_type(owner: Owner) -> bool:
    """Whether an owner made by `_by_type` has an edge type: it is in the place of its modules."""
    return bool(owner.module)


def _of_one_module(unanswerable: list[str]) -> str:
    names = ", ".join(map(sanitize, unanswerable))
    return f"{names}: what each type costs cannot be known: one module, or one compiled graph, computes them all."


def edge_type_of(chain: Sequence[str], paths: Mapping[str, str]) -> str | None:
    """`user__rates__movie`, for the modules around a moment, as the trace numbers them; None if there is none."""
    for module in chain:
        for part in paths.get(module, "").split("."):
            if match := _HETERO_CONV.fullmatch(part):
                return "__".join(match.groups())
            if _TO_HETERO.fullmatch(part):
                return part
    return None
