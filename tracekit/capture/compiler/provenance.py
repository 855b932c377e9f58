"""Which lines of the user's does a compiled kernel come from? Inductor says so where it is asked before it starts."""

import json
import os
import threading
from typing import Any

from tracekit.lines_file import Graph

_STACKS = "inductor_provenance_tracking_kernel_stack_traces"
_CACHE = "fx_graph_cache_"  # …hit, …miss: the record that ends a graph, and has its key


def ask() -> None:
    """Have Inductor keep the stacks (torch 2.9 and later) and name its CPU kernels in traces. Torch reads it once.

    Not where steps are timed: named kernels are other code.
    """
    os.environ.setdefault("INDUCTOR_PROVENANCE", "2")
    os.environ.setdefault("TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE", "1")


class Provenance:
    """Joins a graph's stacks with its key: two records of one thread, in this order."""

    def __init__(self) -> None:
        self.graphs: list[Graph] = []
        self._stacks: dict[int, dict[str, list[str]]] = {}

    def take(self, artifact: str | None, payload: Any, compile_id: str) -> None:
        """Look at one artifact of the compiler's log."""
        thread = threading.get_native_id()
        if artifact == _STACKS:
            self._stacks[thread] = json.loads(payload) if isinstance(payload, str) else {}
        elif artifact is not None and artifact.startswith(_CACHE) and isinstance(payload, str):
            key = json.loads(payload).get("key")
            stacks = self._stacks.pop(thread, None)
            if isinstance(key, str) and stacks:
                self.graphs.append(Graph(key, compile_id, [*stacks.items()]))
