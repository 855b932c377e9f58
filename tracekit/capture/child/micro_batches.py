"""How many micro-batches a step takes: the backward passes in it."""

import statistics
from collections.abc import Callable
from typing import Any

from tracekit.capture.child.replaced import Replacements

_STEPS = 10  # as many tell; later ones are timed, and nothing of ours should be in them


class MicroBatches:
    """While entered, counts the backward passes of the first steps."""

    def __init__(self) -> None:
        self._passes = 0
        self._ended: list[int] = []  # how many there had been when each step ended
        self._replaced = Replacements()

    def __enter__(self) -> "MicroBatches":
        import torch

        self._replaced.put(torch.autograd, "backward", self._counting(torch.autograd.backward))
        return self

    def __exit__(self, *_: object) -> None:
        self._replaced.undo()

    def step_aside(self) -> None:
        """Compiled code is about to run, or to be made."""
        self._replaced.step_aside()

    def step_back(self) -> None:
        """It has run."""
        self._replaced.step_back()

    def forget(self) -> None:
        """Steps begin here."""
        self._passes = 0
        self._ended.clear()

    def step_ended(self) -> None:
        """One more."""
        self._ended.append(self._passes)
        if len(self._ended) == _STEPS:
            self._replaced.undo()

    def in_a_step(self) -> float:
        """The middle number of the steps that were counted."""
        counted = self._ended[:_STEPS]
        return statistics.median(end - start for start, end in zip([0, *counted], counted, strict=False))

    def _counting(self, backward: Callable[..., None]) -> Callable[..., None]:
        def counting(*args: Any, **kwargs: Any) -> None:
            self._passes += 1
            backward(*args, **kwargs)

        return counting
