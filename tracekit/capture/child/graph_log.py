"""The sizes of the graphs that a training receives, step by step.

How large is the graph that a model or a training step receives? Only shapes are read, so nothing waits for the GPU.

It recognises PyG's `Data`, `HeteroData` and batches of them, DGL's graphs, index tensors of shape (2, edges), sparse
adjacency matrices, and dictionaries of these by edge type – by their attributes, so that nothing has to be imported.
"""

import functools
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import torch

from tracekit.capture.child.replaced import leave_alone
from tracekit.vocabulary.graph_size import GraphSize

if TYPE_CHECKING:
    from tracekit.run import GraphSizes

_DEEPEST = 3  # levels of nested tuples in which graphs are looked for
_WIDEST = 64  # entries that are looked at: a longer list is data, not an argument
_ROWS_OF_NODES = ("x", "pos", "z", "batch", "n_id")  # attributes with a row for each node
_NO_EDGES = ("edge_label_index", "edge_attr", "edge_weight", "edge_label")  # not edges, despite their names


class GraphLog:
    """The graph sizes seen in each step; several batches of one step are added up."""

    def __init__(self) -> None:
        self._steps: list[GraphSize | None] = []
        self._current: GraphSize | None = None

    def saw(self, *args: Any, **kwargs: Any) -> bool:
        """Look for a graph among the arguments of a call, or in a batch; whatever they are, training continues."""
        with suppress(Exception):
            if (size := graph_size(args, kwargs)) is not None:
                self.add(size)
                return True
        return False

    def add(self, size: GraphSize) -> None:
        """Add another graph to the current step."""
        self._current = size if self._current is None else self._current.plus(size)

    def step_ended(self) -> None:
        """End the step: what is seen from now on belongs to the next one."""
        self._steps.append(self._current)
        self._current = None

    def clear(self) -> None:
        """Forget everything: what seemed to be steps was not."""
        self._steps.clear()
        self._current = None

    def take(self, count: int) -> list[GraphSize | None]:
        """The sizes of the last `count` steps; those of all steps so far are forgotten."""
        taken = self._steps[len(self._steps) - count :]
        self._steps.clear()
        return taken

    def of(self, steps: Sequence[int]) -> "GraphSizes | None":
        """The sizes of these steps, counted from 0, all types together."""
        from tracekit.run import GraphSizes

        return GraphSizes.of([self._steps[step] for step in steps])

    def last(self, count: int) -> "GraphSizes | None":
        """The sizes of the last `count` steps."""
        return self.of(range(len(self._steps) - count, len(self._steps)))

    def first(self, count: int) -> "GraphSizes | None":
        """The sizes of the first steps, by type."""
        from tracekit.run import GraphSizes

        return GraphSizes.of(self._steps[:count], by_type=True)


def as_declared(size: Mapping[str, int]) -> GraphSize:
    """The size that a recipe's own `graph_size` returns: `{"nodes": …, "edges": …}`."""
    return GraphSize({"": size["nodes"]} if "nodes" in size else {}, {"": size["edges"]})


class GraphCalls:
    """The outermost modules that are called with a graph; from the second step on, they report their calls
    themselves."""

    def __init__(self, log: GraphLog) -> None:
        self._log = log
        self._modules: list[Any] = []

    def met(self, module: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Note that the outermost module is about to run; calls in evaluation do not count."""
        if torch.is_grad_enabled() and self._log.saw(*args, **kwargs) and all(m is not module for m in self._modules):
            self._modules.append(module)

    def watch(self) -> None:
        """Let the modules report their own calls from now on. (A compiled module would pass the attribute on.)"""
        while self._modules:
            module = self._modules.pop()
            if not isinstance(module, torch.jit.ScriptModule):
                object.__setattr__(module, "_compiled_call_impl", self._watched(module))

    def _watched(self, module: Any) -> Any:
        call = module._compiled_call_impl or module._call_impl
        saw, records_gradients = self._log.saw, torch.is_grad_enabled

        def watched(*args: Any, **kwargs: Any) -> Any:
            if records_gradients():
                saw(*args, **kwargs)
            return call(*args, **kwargs)

        leave_alone(watched)
        return watched


def graph_size(values: Iterable[Any], kwargs: Mapping[str, Any] | None = None, depth: int = 0) -> GraphSize | None:
    """The size of the graphs among some arguments, positional and named; None if there are none."""
    arguments = [*values][:_WIDEST] + [value for name, value in (kwargs or {}).items() if name not in _NO_EDGES]
    if sizes := [size for value in arguments if (size := _of_graph(value)) is not None]:
        return functools.reduce(GraphSize.plus, sizes)
    # Edges, with features beside them; without features, two rows of words would look like edges, too.
    is_sure = "edge_index" in (kwargs or {})
    for value in arguments:
        if (edges := _edges(value)) is not None:
            nodes = _nodes(arguments, edges)
            is_typed_or_sparse = not isinstance(value, torch.Tensor) or value.layout is not torch.strided
            if nodes or is_sure or is_typed_or_sparse:
                return GraphSize(nodes, edges)
    if depth == _DEEPEST:
        return None
    inner = [value for value in arguments if isinstance(value, list | tuple)]
    nested_sizes = [size for value in inner if (size := graph_size(value, depth=depth + 1)) is not None]
    return functools.reduce(GraphSize.plus, nested_sizes) if nested_sizes else None


def _of_graph(value: Any) -> GraphSize | None:
    """The size of an object that is a graph."""
    if isinstance(value, torch.Tensor | str | bytes | Mapping | list | tuple):
        return None
    if callable(getattr(value, "num_edges", None)) and callable(getattr(value, "num_nodes", None)):
        return GraphSize({"": int(value.num_nodes())}, {"": int(value.num_edges())})  # DGL
    if hasattr(value, "edge_types") and hasattr(value, "node_types"):
        nodes = {str(name): rows for name in value.node_types if (rows := _rows_of(value[name])) is not None}
        edges = {}
        for name in value.edge_types:
            counts = (_count_edges(getattr(value[name], attribute, None)) for attribute in ("edge_index", "adj_t"))
            if (count := next((count for count in counts if count is not None), None)) is not None:
                edges[_type_name(name)] = count
        return GraphSize(nodes, edges)
    count = _count_edges(getattr(value, "edge_index", None)) or _count_edges(getattr(value, "adj_t", None))
    if count is None:
        return None
    rows = _rows_of(value)
    return GraphSize({} if rows is None else {"": rows}, {"": count})


def _rows_of(store: Any) -> int | None:
    """The number of nodes; not from `num_nodes`, which may search the edges for the largest node, and wait for it."""
    for name in _ROWS_OF_NODES:
        value: Any = getattr(store, name, None)
        if isinstance(value, torch.Tensor) and value.dim():
            return int(value.shape[0])
    mapping = getattr(getattr(store, "_store", store), "_mapping", None)
    node_count = mapping.get("num_nodes") if isinstance(mapping, dict) else None
    return node_count if isinstance(node_count, int) else None


def _edges(value: Any) -> dict[str, int] | None:
    """The size of an argument that holds edges: by type, if it is a dictionary."""
    if isinstance(value, Mapping):
        counts = {_type_name(key): _count_edges(edges) for key, edges in value.items() if isinstance(key, tuple)}
        return {key: count for key, count in counts.items() if count is not None} or None
    count = _count_edges(value)
    return None if count is None else {"": count}


def _count_edges(value: Any) -> int | None:
    if not isinstance(value, torch.Tensor):
        nnz = getattr(value, "nnz", None)  # torch_sparse
        return int(nnz()) if callable(nnz) and hasattr(value, "sparse_sizes") else None
    if value.layout is not torch.strided:
        return int(value._nnz()) if value.dim() == 2 else None
    is_index = not (value.is_floating_point() or value.is_complex()) and value.element_size() >= 4
    return int(value.shape[1]) if is_index and value.dim() == 2 and value.shape[0] == 2 else None


def _nodes(arguments: Sequence[Any], edges: Mapping[str, int]) -> dict[str, int]:
    """The number of rows of the features beside the edges: a tensor, or one for each type of node."""
    types = {end for key in edges for end in key.split("__")[::2]} - {""}
    for value in arguments:
        if types and isinstance(value, Mapping):
            rows = {
                str(key): int(features.shape[0])
                for key, features in value.items()
                if isinstance(features, torch.Tensor) and features.dim()
            }
            if rows and rows.keys() <= types:
                return rows
        elif types and isinstance(value, list | tuple) and (rows := _nodes([*value], edges)):
            return rows
        elif not types and isinstance(value, torch.Tensor) and value.dim() and _count_edges(value) is None:
            return {"": int(value.shape[0])}
        elif (
            not types and isinstance(value, tuple) and value and isinstance(value[0], torch.Tensor)
        ):  # sources and targets
            return {"": int(value[0].shape[0])}
    return {}


def _type_name(key: Any) -> str:
    return "__".join(map(str, key)) if isinstance(key, tuple) else str(key)
