"""The backward passes of a script: how many a step takes, which are its micro-batches, and what they begin at."""

import statistics
from collections.abc import Callable
from typing import Any

from tracekit.capture.child.replaced import Replacements, out_of_dynamos_sight

_STEPS = 10  # these are enough; later ones are timed, and nothing of ours should be in them


class BackwardPasses:
    """While entered, counts those of the first steps. Where somebody listens, all of them are heard of."""

    def __init__(self, listener: Callable[[Any], None] | None = None) -> None:
        self._listener = listener and out_of_dynamos_sight(listener)
        self._passes = 0
        self._ended: list[int] = []  # how many there had been when each step ended
        self._replaced = Replacements()

    def __enter__(self) -> "BackwardPasses":
        import torch

        self._replaced.put(torch.autograd, "backward", self._counting(torch.autograd.backward))
        return self

    def __exit__(self, *_: object) -> None:
        self._replaced.undo()

    def step_aside(self) -> None:
        """Compiled code is about to run, or to be made."""
        if self._listener is None:
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
        if len(self._ended) == _STEPS and self._listener is None:
            self._replaced.undo()

    def in_a_step(self) -> float:
        """The middle number of the steps that were counted."""
        counted = self._ended[:_STEPS]
        return statistics.median(end - start for start, end in zip([0, *counted], counted, strict=False))

    def _counting(self, backward: Callable[..., None]) -> Callable[..., None]:
        def counting(*args: Any, **kwargs: Any) -> None:
            self._passes += 1
            if self._listener is not None:
                self._listener(args[0] if args else kwargs.get("tensors"))
            backward(*args, **kwargs)

        return counting
