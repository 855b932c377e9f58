"""Which lines of the user's does a compiled kernel come from? Inductor says so where it was asked before it started."""

import json
from typing import Any

from tracekit.lines_file import Graph

_STACKS = "inductor_provenance_tracking_kernel_stack_traces"
_CACHE = "fx_graph_cache_"  # …hit, …miss: the record that ends a graph, and has its key


class Provenance:
    """Joins a graph's stacks with its key: two records of one thread, in this order."""

    def __init__(self) -> None:
        self.graphs: list[Graph] = []
        self._stacks: dict[int, dict[str, list[str]]] = {}

    def take(self, artifact: str | None, payload: Any, compile_id: str, thread: int) -> None:
        """Look at one artifact of the compiler's log."""
        if artifact == _STACKS:
            self._stacks[thread] = json.loads(payload) if isinstance(payload, str) else {}
        elif artifact is not None and artifact.startswith(_CACHE) and isinstance(payload, str):
            key = json.loads(payload).get("key")
            stacks = self._stacks.pop(thread, None)
            if isinstance(key, str) and stacks:
                self.graphs.append(Graph(key, compile_id, [*stacks.items()]))
