"""The backward passes of a script: how many a step has (its micro-batches), and the tensors that they start from."""

import statistics
from collections.abc import Callable
from typing import Any

from tracekit.capture.child.replaced import Replacements, out_of_dynamos_sight

_STEPS = 10  # enough to count; later steps are timed, and should run nothing of ours


class BackwardPasses:
    """While entered, counts the backward passes of the first steps; a listener, if there is one, is told about all."""

    def __init__(self, listener: Callable[[Any], None] | None = None) -> None:
        self._listener = listener and out_of_dynamos_sight(listener)
        self._passes = 0
        self._ended: list[int] = []  # how many there had been at the end of each step
        self._replaced = Replacements()

    def __enter__(self) -> "BackwardPasses":
        import torch

        self._replaced.put(torch.autograd, "backward", self._counting(torch.autograd.backward))
        return self

    def __exit__(self, *_: object) -> None:
        self._replaced.undo()

    def step_aside(self) -> None:
        """Stand aside, because compiled code is about to run or to be made."""
        if self._listener is None:
            self._replaced.step_aside()

    def step_back(self) -> None:
        """Return, because the compiled code has run."""
        self._replaced.step_back()

    def forget(self) -> None:
        """Forget what was counted: steps begin here."""
        self._passes = 0
        self._ended.clear()

    def step_ended(self) -> None:
        """Count the end of a step."""
        self._ended.append(self._passes)
        if len(self._ended) == _STEPS and self._listener is None:
            self._replaced.undo()

    def in_a_step(self) -> float:
        """The median number of backward passes in the counted steps."""
        counted = self._ended[:_STEPS]
        return statistics.median(end - start for start, end in zip([0, *counted], counted, strict=False))

    def _counting(self, backward: Callable[..., None]) -> Callable[..., None]:
        def counting(*args: Any, **kwargs: Any) -> None:
            self._passes += 1
            if self._listener is not None:
                self._listener(args[0] if args else kwargs.get("tensors"))
            backward(*args, **kwargs)

        return counting
