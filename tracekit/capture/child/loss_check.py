"""Stage `check`: does a variant still compute the same? Compares losses of seeded steps, and norms of gradients, with
the random numbers of eager mode.

A recipe's step returns its loss. A script does not report its losses: they are the tensors that its backward passes
start from, or the results of closures. Losses alone do not tell whether backward passes compute the same: Adam and its
like take steps of the same size, whatever the scale of the gradients. All are read at once, which waits for the GPU, so
they belong to a pass of their own in which nothing is timed.

How far rounding by itself moves the losses is shown by another training, whose operators round differently, as between
two runs on a GPU, or between two kernels.
"""

import math
import time
from contextlib import suppress
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode

from tracekit.capture.child import timing
from tracekit.capture.child.clocks import stopwatch
from tracekit.capture.child.recipe import RecipeStep
from tracekit.capture.device import records_a_graph
from tracekit.capture.job import Job, PassResult
from tracekit.run import divergence

STEPS = 20
_LEAST_STEPS = 5  # of a script, unless these take longer than `_PATIENCE_NS`
_PATIENCE_NS = 60_000_000_000
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
    return PassResult(losses=_losses(feed), metrics=metrics(feed.evaluate() if feed.evaluate else {}))


def drift(feed: RecipeStep, losses: list[float | None]) -> float | None:
    """How far the same training departs from these losses if its sums round differently; None if not comparable.

    Some trainings amplify a difference in the last digit to one percent within twenty steps; such a difference between
    two variants is then no evidence against either. Two plain runs would not show this, because on one machine they may
    agree bit for bit.
    """
    with RoundedDifferently():
        apart = divergence(losses, _losses(feed))
    return apart if apart is not None and math.isfinite(apart) else None


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

    def __init__(self) -> None:
        super().__init__()
        self._generators: dict[torch.device, torch.Generator] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operator, then move its results by half an ulp."""
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and _rounds(func, result):
            drawn = torch.float64 if result.dtype == torch.float64 else torch.float32
            device = result.device
            if device not in self._generators:
                self._generators[device] = torch.Generator(device).manual_seed(_SEED)
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


class Losses:
    """Losses in the order in which a script made them, from its very beginning, so that those of two variants belong
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
        with suppress(timing.EndedError):
            for step in range(STEPS):
                if timing.agreed(step >= _LEAST_STEPS and time.perf_counter_ns() > deadline_ns):
                    break
                yield
        return PassResult(losses=[] if all(loss is None for loss in self._read) else [*self._read])

    def _note(self, loss: Any) -> None:
        if isinstance(loss, torch.Tensor):
            if loss.numel() != 1 or loss.is_complex() or (loss.is_cuda and records_a_graph()):
                return  # nothing can be read while a CUDA graph is recorded: trying would end the recording
            loss = float(loss.detach())
        if isinstance(loss, float):
            self._in_step += 1
            self._read.append(number(loss))


class GradientNorms:
    """While it is active, notes the norm of all gradients together, before each step of any optimizer."""

    def __init__(self) -> None:
        self.norms: list[float | None] = []  # None for one that is not finite
        self._hook: Any = None

    def __enter__(self) -> "GradientNorms":
        self._hook = register_optimizer_step_pre_hook(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        self._hook.remove()

    def _note(self, optimizer: Any, *_: object) -> None:
        if torch.compiler.is_compiling() or records_a_graph():
            return  # nothing can be read there
        norms = []
        for parameter in (parameter for group in optimizer.param_groups for parameter in group["params"]):
            if parameter.grad is not None:
                gradient = parameter.grad.detach()
                values = gradient.coalesce().values() if gradient.is_sparse else gradient
                norms.append(float(values.abs().double().norm()))
        if norms:
            self.norms.append(number(math.hypot(*norms)))
