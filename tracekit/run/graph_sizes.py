"""The sizes of the graphs that a training step receives: the nodes and edges of its batches."""

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import msgspec

_Count = Annotated[int, msgspec.Meta(ge=0)]
Counts = list[_Count | None]


class GraphSize(NamedTuple):
    """One graph: nodes and edges by type, under "" where it has only one; None where the number of nodes is unknown."""

    nodes: dict[str, int]
    edges: dict[str, int]

    def plus(self, other: "GraphSize") -> "GraphSize":
        """The sum of both sizes, as in a step with two batches."""
        return GraphSize(_sum(self.nodes, other.nodes), _sum(self.edges, other.edges))


class GraphSizes(msgspec.Struct, frozen=True, kw_only=True):
    """An entry for each of some steps, in order; None if no graph was seen in a step."""

    nodes: Counts = []  # all types together
    edges: Counts = []
    node_types: dict[str, Counts] = {}  # of heterogeneous graphs, by type
    edge_types: dict[str, Counts] = {}  # as "user__rates__movie"

    @staticmethod
    def of(steps: Sequence[GraphSize | None], by_type: bool = False) -> "GraphSizes | None":
        """The graphs of these steps; None if no graph was seen in any."""
        if not any(steps):
            return None
        nodes = [size.nodes if size else None for size in steps]
        edges = [size.edges if size else None for size in steps]
        return GraphSizes(
            nodes=[sum(counts.values()) if counts else None for counts in nodes],
            edges=[sum(counts.values()) if counts is not None else None for counts in edges],
            node_types=_by_type(nodes) if by_type else {},
            edge_types=_by_type(edges) if by_type else {},
        )


def _sum(first: dict[str, int], second: dict[str, int]) -> dict[str, int]:
    return {key: first.get(key, 0) + second.get(key, 0) for key in {**first, **second}}


def _by_type(steps: list[dict[str, int] | None]) -> dict[str, Counts]:
    names = dict.fromkeys(name for counts in steps if counts for name in counts if name)
    return {name: [None if counts is None else counts.get(name, 0) for counts in steps] for name in names}
