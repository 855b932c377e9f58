"""How large is a graph, as its nodes and edges by type?"""

from typing import NamedTuple


class GraphSize(NamedTuple):
    """One graph: nodes and edges by type, under "" where it has only one; None where the number of nodes is unknown."""

    nodes: dict[str, int]
    edges: dict[str, int]

    def plus(self, other: "GraphSize") -> "GraphSize":
        """The sum of both sizes, as in a step with two batches."""
        return GraphSize(_sum(self.nodes, other.nodes), _sum(self.edges, other.edges))


def _sum(first: dict[str, int], second: dict[str, int]) -> dict[str, int]:
    return {key: first.get(key, 0) + second.get(key, 0) for key in {**first, **second}}
