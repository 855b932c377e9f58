"""Does a variant still compute the same? Compares losses of seeded steps, with the random numbers of eager mode.

The same operators with different rounding, as between two runs on a GPU, or between two kernels.
"""

import math
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tracekit.capture.child.recipe import RecipeStep
from tracekit.capture.child.stopwatch import stopwatch
from tracekit.capture.job import Job, PassResult
from tracekit.run import divergence

STEPS = 20
_SEED = 1  # of the rounding errors only
# Operators that add up: on a GPU, atomics change the order from run to run; another kernel changes it anywhere.
_SUMS = {"sum", "mean", "mm", "addmm", "bmm", "baddbmm", "embedding_dense_backward", "index_select_backward"}
_SCATTERS = {"scatter_add", "scatter_reduce", "index_add", "index_put", "_index_put_impl"}
_HALF_TYPES = (torch.bfloat16, torch.float16)


def draw_as_eager(job: Job) -> None:
    """Make Inductor use eager mode's random numbers; with its own, dropout would differ."""
    if job.requested.compile and job.requested.backend == "inductor":
        import torch._inductor.config

        torch._inductor.config.fallback_random = True


def check(feed: RecipeStep) -> PassResult:
    """The losses, then the metric. Each loss is read at once, because the next replay of a CUDA graph overwrites it."""
    return PassResult(
        losses=_losses(feed),
        metrics=metrics(feed.evaluate() if feed.evaluate else {}),
    )


def drift(feed: RecipeStep, losses: list[float | None]) -> float | None:
    """How far the same training departs from these losses if its sums round differently; None if not comparable.

    Some trainings amplify a difference in the last digit to one percent within twenty steps; such a difference between
    two variants is then no evidence against either. Two plain runs would not show this, because on one machine they may
    agree bit for bit.
    """
    with rounded_differently():
        apart = divergence(losses, _losses(feed))
    return apart if apart is not None and math.isfinite(apart) else None


def rounded_differently() -> AbstractContextManager[object]:
    """A context in which sums round differently, as they might elsewhere."""

    mode: AbstractContextManager[object] = RoundedDifferently(_SEED)
    return mode


def _losses(feed: RecipeStep) -> list[float | None]:
    stopwatch.enter("losses")
    losses = [number(feed()) for _ in range(STEPS)]
    return [] if all(loss is None for loss in losses) else losses


def metrics(evaluated: Any) -> dict[str, float | None]:
    """The recipe's metrics by name, in whatever form the recipe returns them."""
    by_name = evaluated if isinstance(evaluated, dict) else {"metric": evaluated}
    return {str(name): number(value) for name, value in by_name.items()}


def number(value: Any) -> float | None:
    """A loss or a metric as a number; None if it is not a number, or not finite."""
    as_float = float(value) if value is not None else math.nan
    return as_float if math.isfinite(as_float) else None


class RoundedDifferently(TorchDispatchMode):  # type: ignore[misc]
    """While active, every sum is off by a random amount of about half an ulp; in half precision, every result is.

    The reason for the latter is that a fused kernel rounds once, while separate kernels round every time. The
    training's own random numbers do not change.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._seed = seed
        self._generators: dict[torch.device, torch.Generator] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operator, then move its results by half an ulp."""
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and _rounds(func, result):
            drawn = torch.float64 if result.dtype == torch.float64 else torch.float32
            device = result.device
            if device not in self._generators:
                self._generators[device] = torch.Generator(device).manual_seed(self._seed)
            noise = torch.randn(result.shape, dtype=drawn, device=device, generator=self._generators[device])
            result.mul_(1 + torch.finfo(result.dtype).eps / 2 * noise)
        return result


def _rounds(func: Any, result: torch.Tensor) -> bool:
    if not result.is_floating_point() or result.layout != torch.strided or result.device.type == "meta":
        return False
    if func.overloadpacket.__name__.removesuffix("_") in _SUMS | _SCATTERS:
        return True
    # A result that shares memory with an argument was rounded when the argument was made.
    return result.dtype in _HALF_TYPES and all(output.alias_info is None for output in func._schema.returns)
