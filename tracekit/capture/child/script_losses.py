"""The losses of a script, which does not report them: the tensors that backward passes start from, or the results of
closures.

They are read at once, which waits for the GPU, so this takes a separate pass in which nothing is timed.
"""

import contextlib
import math
import time
from typing import Any

from tracekit.capture.child import timing
from tracekit.capture.child.agreement import agreed
from tracekit.capture.child.loss_check import STEPS
from tracekit.capture.child.stopwatch import stopwatch
from tracekit.capture.device import records_a_graph
from tracekit.capture.job import PassResult

_LEAST_STEPS = 5  # unless these take longer than `_PATIENCE_NS`
_PATIENCE_NS = 60_000_000_000


class Losses:
    """Losses in the order in which the script made them, from its very beginning, so that those of two variants belong
    to the same batches."""

    def __init__(self) -> None:
        self._read: list[float | None] = []
        self._in_step = 0

    def backward_from(self, roots: Any) -> None:
        """Note the tensors that a backward pass starts from: those with a single number are losses."""
        for root in roots if isinstance(roots, list | tuple) else [roots]:
            self._note(root)

    def optimizer_returned(self, result: Any) -> None:
        """Note what a step of the optimizer returned: its closure's loss, if it was given one."""
        if not self._in_step:
            self._note(result)
        self._in_step = 0

    def steps(self) -> timing.Steps[PassResult]:
        """Take as many steps as a recipe's losses are compared in, or fewer if they take minutes."""
        stopwatch.enter("losses")
        deadline_ns = time.perf_counter_ns() + _PATIENCE_NS
        with contextlib.suppress(timing.EndedError):
            for step in range(STEPS):
                if agreed(step >= _LEAST_STEPS and time.perf_counter_ns() > deadline_ns):
                    break
                yield
        return PassResult(losses=[] if all(loss is None for loss in self._read) else [*self._read])

    def _note(self, loss: Any) -> None:
        number = _number(loss)
        if number is not None:
            self._in_step += 1
            self._read.append(number if math.isfinite(number) else None)


def _number(loss: Any) -> float | None:
    import torch

    if not isinstance(loss, torch.Tensor):
        return loss if isinstance(loss, float) else None
    if loss.numel() != 1 or loss.is_complex() or (loss.is_cuda and records_a_graph()):
        return None  # nothing can be read while a CUDA graph is recorded: trying would end the recording
    return float(loss.detach())
