"""A recipe trained for a number of epochs with one seed: how long each took, and how good it is at the end."""

from typing import Annotated, Literal

import msgspec

_Count = Annotated[int, msgspec.Meta(ge=1)]
_Ns = Annotated[int, msgspec.Meta(ge=0)]
TrainingOutcome = Literal["ok", "oom", "timeout", "crash", "error", "skipped", "interrupted"]


class Training(msgspec.Struct, frozen=True, kw_only=True):
    """One complete training, unprofiled, in a separate process."""

    seed: int
    epochs: _Count
    outcome: TrainingOutcome = "ok"
    error: str | None = None  # one line
    steps: int = 0  # of an epoch
    epoch_all_ns: list[_Ns] = []  # including compilation, which only the first seed does without a cache
    loss: float | None = None  # of the last step; None if it is not finite, or there is none
    metrics: dict[str, float | None] = {}  # the recipe's evaluate()
