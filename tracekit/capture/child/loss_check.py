"""Does a variant still compute the same? Compares losses of seeded steps, with the random numbers of eager mode."""

import math
from contextlib import AbstractContextManager
from typing import Any

from tracekit.capture.child.recipe import Feed
from tracekit.capture.job import Job, PassResult
from tracekit.run import divergence

STEPS = 20
_SEED = 1  # of the rounding errors only


def draw_as_eager(job: Job) -> None:
    """Make Inductor use eager mode's random numbers; with its own, dropout would differ."""
    if job.requested.compile and job.requested.backend == "inductor":
        import torch._inductor.config

        torch._inductor.config.fallback_random = True


def check(feed: Feed) -> PassResult:
    """The losses, then the metric. Each loss is read at once, because the next replay of a CUDA graph overwrites it."""
    return PassResult(
        losses=_losses(feed),
        metrics=metrics(feed.evaluate() if feed.evaluate else {}),
    )


def drift(feed: Feed, losses: list[float | None]) -> float | None:
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
    from tracekit.capture.child.rounding import RoundedDifferently

    mode: AbstractContextManager[object] = RoundedDifferently(_SEED)
    return mode


def _losses(feed: Feed) -> list[float | None]:
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
