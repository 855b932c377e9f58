"""The sizes of the graphs that a training receives, step by step."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from tracekit.capture.child.graph_size import graph_size
from tracekit.capture.child.replaced import leave_alone
from tracekit.run import GraphSize, GraphSizes


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

    def of(self, steps: Sequence[int]) -> GraphSizes | None:
        """The sizes of these steps, counted from 0, all types together."""
        return GraphSizes.of([self._steps[step] for step in steps])

    def last(self, count: int) -> GraphSizes | None:
        """The sizes of the last `count` steps."""
        return self.of(range(len(self._steps) - count, len(self._steps)))

    def first(self, count: int) -> GraphSizes | None:
        """The sizes of the first steps, by type."""
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
        import torch

        if torch.is_grad_enabled() and self._log.saw(*args, **kwargs) and all(m is not module for m in self._modules):
            self._modules.append(module)

    def watch(self) -> None:
        """Let the modules report their own calls from now on. (A compiled module would pass the attribute on.)"""
        import torch

        while self._modules:
            module = self._modules.pop()
            if not isinstance(module, torch.jit.ScriptModule):
                object.__setattr__(module, "_compiled_call_impl", self._watched(module))

    def _watched(self, module: Any) -> Any:
        import torch

        call = module._compiled_call_impl or module._call_impl
        saw, records_gradients = self._log.saw, torch.is_grad_enabled

        def watched(*args: Any, **kwargs: Any) -> Any:
            if records_gradients():
                saw(*args, **kwargs)
            return call(*args, **kwargs)

        leave_alone(watched)
        return watched
