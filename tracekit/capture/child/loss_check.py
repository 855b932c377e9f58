"""Does it still compute the same? Losses of seeded steps, with the random numbers of eager mode."""

import math
from typing import Any

from tracekit.capture.child.recipe import Feed
from tracekit.capture.job import Answer, Job

STEPS = 20


def draw_as_eager(job: Job) -> None:
    """Inductor draws its own random numbers, so dropout would differ: let it use eager's."""
    if job.requested.compile and job.requested.backend == "inductor":
        import torch._inductor.config

        torch._inductor.config.fallback_random = True


def check(feed: Feed) -> Answer:
    """The losses, then the metric. A loss is read at once: a CUDA graph overwrites it at its next replay."""
    losses = [_number(feed()) for _ in range(STEPS)]
    return Answer(
        losses=[] if all(loss is None for loss in losses) else losses,
        metrics=_metrics(feed.evaluate() if feed.evaluate else {}),
    )


def _metrics(evaluated: Any) -> dict[str, float | None]:
    named = evaluated if isinstance(evaluated, dict) else {"metric": evaluated}
    return {str(name): _number(value) for name, value in named.items()}


def _number(value: Any) -> float | None:
    if value is None:
        return None
    number = float(value)
    return number if math.isfinite(number) else None
