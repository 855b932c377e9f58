"""What brings a tensor's values to the host: `tolist`, `numpy`, and functions that look at all values first."""

from collections.abc import Callable
from typing import Any

import torch

from tracekit.capture.audit.emulation import Emulation
from tracekit.capture.audit.operators import READS

_TRUE = {name: getattr(torch.Tensor, name) for name in ("tolist", "numpy")}
_NOT_NUMPY = "would crash: a tensor on the GPU has no NumPy array"


class Reading:
    """Reads values from a device into Python."""

    def __init__(self, emulation: Emulation) -> None:
        self._emulation = emulation
        self._devices, self._watch = emulation.devices, emulation.watch

    def tolist(self, tensor: torch.Tensor) -> Any:
        """Replaces `tensor.tolist`."""
        self.read(tensor, "Tensor.tolist")
        return _TRUE["tolist"](tensor)

    def numpy(self, tensor: torch.Tensor, **options: Any) -> Any:
        """Replaces `tensor.numpy`, which fails for a tensor on the GPU."""
        if self._devices.of(tensor).type == "cuda":
            self._watch.see_mixed("Tensor.numpy", _NOT_NUMPY, self._devices.keys(tensor))
        self._break("Tensor.numpy")
        return _TRUE["numpy"](tensor, **options)

    def one_hot(self, one_hot: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        """Replaces `one_hot`, which looks at every class on a CPU, but on a GPU only if it has to count them."""

        def encoding(tensor: torch.Tensor, num_classes: int = -1) -> torch.Tensor:
            if num_classes == -1:
                self.read(tensor, "aten::_local_scalar_dense")
            with self._watch.silenced():
                return one_hot(tensor, num_classes)

        return encoding

    def read(self, tensor: torch.Tensor, operator: str) -> None:
        """Record that the host waits for these values, and that a graph breaks at them."""
        if self._devices.of(tensor).type == "cuda":
            self._watch.see("sync", operator, READS)
        self._break(operator)

    def _break(self, operator: str) -> None:
        """Record that the host waits for these values, and that a graph breaks at them."""
        if self._emulation.regions.depth:
            self._watch.see("break", operator, "breaks the graph: a value that it reads back")
