"""How much of a graph is padding? A shape does not show it, but another variant that draws the same batches does."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tracekit.gnn.graph_cost import LEAST_SIZES, GraphCost


class Padding(NamedTuple):
    """The shares of a variant's edges and nodes that its sibling does not have."""

    sibling: str
    edges: float
    nodes: float | None


def padding(ours: GraphCost, siblings: Sequence[tuple[str, GraphCost]]) -> Padding | None:
    """The padding of a variant, inferred if its graphs all have one size and those of a sibling vary, none larger."""
    if not ours.is_constant or not ours.steps.edges[0]:
        return None
    whole = int(ours.steps.edges[0])
    for name, other in siblings:
        edges = other.steps.edges
        if other.steps.different("edges") >= LEAST_SIZES and int(edges.max()) <= whole:
            return Padding(name, 1 - float(edges.mean()) / whole, _of_nodes(ours, other))
    return None


def _of_nodes(ours: GraphCost, other: GraphCost) -> float | None:
    whole = int(np.max(ours.steps.nodes))
    known = bool((other.steps.nodes >= 0).all()) and whole > 0
    return 1 - float(other.steps.nodes.mean()) / whole if known else None
