"""How much of a graph is padding, and what does that cost? A shape does not show it, but another variant that draws the
same batches does."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tracekit.gnn.graph_cost import LEAST_SIZES, Dimension, GraphCost
from tracekit.intervals import Ints
from tracekit.uncertainty import Interval


class Padding(NamedTuple):
    """What a variant adds to the graphs of its sibling, the mean over their steps."""

    sibling: str
    sizes: int  # how many different ones graphs are filled up to
    edges: float  # the share of the variant's edges that its sibling does not have
    nodes: float | None  # the same of its nodes; None if these are unknown
    cost_ns: float | None  # a step; None where it is unknown what an edge costs
    cost_interval: Interval | None  # 95 %, ns
    by_sibling: bool  # whether the sibling's cost of an edge had to be taken, because the variant's own is unknown


def padding(ours: GraphCost, siblings: Sequence[tuple[str, GraphCost]]) -> Padding | None:
    """The padding of a variant, inferred if its graphs have few sizes, each of them several times, and those of a
    sibling have many, none larger."""
    sizes = ours.steps.different("edges")
    if not ours.steps.edges.max() or 2 * sizes > len(ours.steps.edges):
        return None
    for name, other in siblings:
        different = other.steps.different("edges")
        if different < max(LEAST_SIZES, 2 * sizes) or other.steps.edges.max() > ours.steps.edges.max():
            continue
        known = bool((other.steps.nodes >= 0).all()) and int(ours.steps.nodes.max()) > 0
        cost_ns, interval, by_sibling = _cost(ours, other)
        return Padding(
            name,
            sizes,
            _share(_filled(ours, other, "edges"), other.steps.edges),
            _share(_filled(ours, other, "nodes"), other.steps.nodes) if known else None,
            cost_ns,
            interval,
            by_sibling,
        )
    return None


def _filled(ours: GraphCost, other: GraphCost, dimension: Dimension) -> Ints:
    """The size to which each of the sibling's graphs is filled up: the smallest with room for it."""
    rooms, sizes = np.unique(ours.steps.of(dimension)), other.steps.of(dimension)
    filled: Ints = rooms[np.minimum(np.searchsorted(rooms, sizes), len(rooms) - 1)]
    return filled


def _share(filled: Ints, sizes: Ints) -> float:
    return 1 - float(sizes.sum()) / float(filled.sum())


def _cost(ours: GraphCost, other: GraphCost) -> tuple[float | None, Interval | None, bool]:
    """What the padding adds to a step, by the line of the variant itself or, if it has none, of its sibling."""
    for by_sibling, cost in enumerate((ours, other)):
        if cost.line is not None and cost.growth == "grows":
            added = float((_filled(ours, other, cost.dimension) - other.steps.of(cost.dimension)).mean())
            low, high = cost.line.slope_interval
            return cost.line.slope * added, (low * added, high * added), bool(by_sibling)
    return None, None, False
