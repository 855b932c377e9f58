"""From which lines of the user's does a compiled kernel come? Inductor records this if requested before it starts.

Otherwise, the generated code and the lowered graphs give the lines less precisely.
"""

import json
from collections import defaultdict
from typing import Any

from tracekit.compile_log import output_code
from tracekit.lines_file import Graph

_STACKS = "inductor_provenance_tracking_kernel_stack_traces"
_CACHE = "fx_graph_cache_"  # …hit, …miss: the record that ends a graph, and has its key
_TRACED = "dynamo_output_graph"  # of a compilation; forward and backward are made of it
_LOWERED, _CODE = "inductor_post_grad_graph", "inductor_output_code"  # of a graph


class Provenance:
    """Joins a graph's stacks, or its code, with its key; the records of a thread come in this order."""

    def __init__(self) -> None:
        self.graphs: list[Graph] = []
        self._traced: dict[str, str] = {}  # by compile id
        self._said: dict[int, dict[str, str]] = defaultdict(dict)  # of the graph under way on a thread

    def take(self, metadata: dict[str, Any], payload: Any, compile_id: str, thread: int) -> None:
        """Look at one record of the compiler's log."""
        if not isinstance(payload, str):
            return
        artifact = str((metadata.get("artifact") or {}).get("name"))
        if _TRACED in metadata:
            self._traced[compile_id] = payload
        for kind in (_LOWERED, _CODE):
            if kind in metadata:
                self._said[thread][kind] = payload
        if artifact == _STACKS:
            self._said[thread][_STACKS] = payload
        elif artifact.startswith(_CACHE):
            key, payloads = json.loads(payload).get("key"), self._said.pop(thread, {})
            if isinstance(key, str) and (graph := self._graph(key, compile_id, payloads)).kernels:
                self.graphs.append(graph)

    def _graph(self, key: str, compile_id: str, payloads: dict[str, str]) -> Graph:
        code = payloads.get(_CODE, "")
        backward = output_code.is_backward(code)
        if stacks := json.loads(payloads.get(_STACKS, "{}")):
            return Graph(key, compile_id, [*stacks.items()], backward)
        sources = output_code.nodes_of(self._traced.get(compile_id, ""))
        nodes = output_code.nodes_of(payloads.get(_LOWERED, ""))
        return Graph(key, compile_id, output_code.calls(code, sources, nodes), backward, by_code=True)
