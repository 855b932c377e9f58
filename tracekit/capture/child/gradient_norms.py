"""How large are the gradients at each step of an optimizer?

Losses alone do not tell whether backward passes compute the same: Adam and its like take steps of the same size,
whatever the scale of the gradients.

They are read at once, which waits for the GPU, so this belongs to the pass in which nothing is timed.
"""

import math
from typing import Any

from tracekit.capture.device import records_a_graph


class GradientNorms:
    """While it is active, notes the norm of all gradients together, before each step of any optimizer."""

    def __init__(self) -> None:
        self.norms: list[float | None] = []  # None for one that is not finite
        self._hook: Any = None

    def __enter__(self) -> "GradientNorms":
        from torch.optim.optimizer import register_optimizer_step_pre_hook

        self._hook = register_optimizer_step_pre_hook(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        self._hook.remove()

    def _note(self, optimizer: Any, *_: object) -> None:
        import torch

        if torch.compiler.is_compiling() or records_a_graph():
            return  # nothing can be read there
        gradients = [
            parameter.grad.detach()
            for group in optimizer.param_groups
            for parameter in group["params"]
            if parameter.grad is not None
        ]
        if gradients:
            norm = math.hypot(*map(_norm, gradients))
            self.norms.append(norm if math.isfinite(norm) else None)


def _norm(gradient: Any) -> float:
    values = gradient.coalesce().values() if gradient.is_sparse else gradient
    return float(values.abs().double().norm())
