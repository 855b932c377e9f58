"""What does each edge type of a heterogeneous model cost?"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from tracekit.gnn.edge_types import edge_type_of
from tracekit.lines.means import Owner, OwnerMeans
from tracekit.profile import Profile
from tracekit.report.blocks import Sentences, Table
from tracekit.report.model import Report
from tracekit.report.owned import owned
from tracekit.report.owner_costs import OwnerCosts, VariantOwners, shares_said, steps_of
from tracekit.report.registry import of_run
from tracekit.report.section import Contents
from tracekit.sanitize import sanitize
from tracekit.trace.schema import column
from tracekit.units import percent

_OUTSIDE = "outside of edge types"
_TYPE = column("edge type", pa.string(), "source, relation and target", role="name")
_MAX_NAMES = 3


@of_run("edge_types", "Edge types", rank=35)
def edge_types(report: Report) -> Contents | None:
    """A row per type, and one for the time outside of them; they add up to the step."""
    profiles = {profile.name: profile for profile in report.profiles}
    by_type = [_by_type(variant, profiles[variant.name]) for variant in owned(report) if variant.total_ns]
    typed = [variant for variant in by_type if variant.share(_has_type)]
    unanswerable = [variant.name for variant in by_type if variant not in typed and _has_types(profiles[variant.name])]
    if not typed:
        return _unanswered(unanswerable)
    costs = OwnerCosts(typed, _type_of, report.baselines)
    order = costs.costliest_first()
    names = {edge_type: edge_type for edge_type in [*filter(None, order)][:_MAX_NAMES]}
    worth = max(variant.share(_has_type) for variant in typed)
    bound = "up to " if len(typed) > 1 else ""
    sentences = [f"Edge types take {bound}{percent(worth)} of a step: {shares_said(costs, steps_of(typed), names)}."]
    if unanswerable:
        sentences.append(_of_one_module(unanswerable))
    columns: list[tuple[pa.Field, Sequence[object]]] = [(_TYPE, [edge_type or _OUTSIDE for edge_type in order])]
    columns += _edges(order, [profiles[variant.name] for variant in typed])
    return Contents((Sentences(tuple(sentences)), Table("edge_types", costs.table(columns, order))), worth=worth)


def _by_type(variant: VariantOwners, profile: Profile) -> VariantOwners:
    """The same, with the edge type in the place of the modules."""
    paths = profile.module_paths
    types = [edge_type_of(owner.module, paths) for owner in variant.means.owners]
    owners = [
        owner._replace(module=(kind,) if kind else ()) for owner, kind in zip(variant.means.owners, types, strict=True)
    ]
    return replace(variant, means=OwnerMeans(owners=owners, means=variant.means.means))


def _has_type(owner: Owner) -> bool:
    """Whether an owner made by `_by_type` has an edge type: it is in the place of its modules."""
    return bool(owner.module)


def _type_of(owner: Owner) -> str:
    return owner.module[0] if owner.module else ""


def _has_types(profile: Profile) -> bool:
    graphs = profile.variant.graphs if profile.variant is not None else None
    return graphs is not None and len(graphs.edge_types) > 1


def _unanswered(unanswerable: list[str]) -> Contents | None:
    return Contents((Sentences((_of_one_module(unanswerable),)),), status="unanswered") if unanswerable else None


def _of_one_module(unanswerable: list[str]) -> str:
    names = ", ".join(map(sanitize, unanswerable))
    return f"{names}: what each type costs cannot be known: one module, or one compiled graph, computes them all."


def _edges(order: list[str], profiles: list[Profile]) -> Iterator[tuple[pa.Field, list[float | None]]]:
    """How many edges of each type a step has, on average."""
    for profile in profiles:
        graphs = profile.variant.graphs if profile.variant is not None else None
        if graphs is not None and graphs.edge_types:
            known_counts = {
                kind: [edge_count for edge_count in counts if edge_count is not None]
                for kind, counts in graphs.edge_types.items()
            }
            means = {kind: sum(counts) / len(counts) for kind, counts in known_counts.items() if counts}
            field = column(
                f"edges, {profile.name}",
                pa.float64(),
                "edges of that type in a step, on average",
                title=f"edges, {profile.name}",
            )
            yield field, [means.get(kind) for kind in order]
