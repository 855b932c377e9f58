"""Which size of the graph makes the compiler compile again: the number of nodes, of edges, or another?"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from tracekit.run import Compile, GraphSizes, Variant

_MISMATCH = re.compile(r"tensor '(.+)' size mismatch at index (\d+)\. expected \d+, actual (\d+)")
_EQUAL = re.compile(r"(L\[.+\])\.size\(\)\[(\d+)\] ==")


class Changed(NamedTuple):
    """A dimension of a tensor whose change caused a recompilation, and which size of the graph it is."""

    tensor: str
    dimension: int
    size: str  # "nodes", "edges", "user nodes", "user__rates__movie edges"; empty if it is not a size of the graph
    times: int


def changed_sizes(variant: Variant) -> list[Changed]:
    """The changed sizes, the most frequent first; guards on anything else are left out."""
    counted: Counter[tuple[str, int, str]] = Counter()
    for compilation in variant.ledger.compiles:
        if compilation.kind == "recompile" and (size := _size(compilation)) is not None:
            tensor, index, actual = size
            counted[tensor, index, _size_name(actual, compilation.step, variant.graphs)] += 1
    return [Changed(*key, times) for key, times in counted.most_common()]


def _size(compiled: Compile) -> tuple[str, int, int | None] | None:
    """The tensor, its dimension, and the size of that; None if another guard failed."""
    text = compiled.guard or compiled.reason or ""
    if mismatch := _MISMATCH.search(text):
        return mismatch[1], int(mismatch[2]), int(mismatch[3])
    equal = _EQUAL.search(text)
    return (equal[1], int(equal[2]), None) if equal else None


def _size_name(actual: int | None, step: int | None, graphs: GraphSizes | None) -> str:
    if actual is None or step is None or graphs is None:
        return ""
    return next((name for name, size in _sizes(graphs, step) if size == actual), "")


def _sizes(graphs: GraphSizes, step: int) -> Iterator[tuple[str, int | None]]:
    named_sizes = [("nodes", graphs.nodes), ("edges", graphs.edges)]
    named_sizes += [(f"{kind} nodes", counts) for kind, counts in graphs.node_types.items()]
    named_sizes += [(f"{kind} edges", counts) for kind, counts in graphs.edge_types.items()]
    for name, counts in named_sizes:
        if 0 <= step < len(counts):
            yield name, counts[step]
