"""Are two training curves the same? How much losses differ, and how much rounding by itself may change them."""

import math

_LEAST_TOLERANCE = 1e-4  # of the loss: in FP32, a different order of summation changes most trainings less
_DRIFTS = 3  # a single measured drift is not an upper bound


def divergence(losses: list[float | None], other_losses: list[float | None]) -> float | None:
    """The largest difference between two curves, relative to the first; None if they cannot be compared.

    If their lengths differ, the common beginning is compared, because a pass of a slow script may be shorter.
    """
    if not losses or not other_losses:
        return None
    pairs = [*zip(losses, other_losses, strict=False)]
    if any((loss is None) != (other_loss is None) for loss, other_loss in pairs):
        return math.inf
    finite = [(loss, other_loss) for loss, other_loss in pairs if loss is not None and other_loss is not None]
    return max((abs(loss - other_loss) / max(abs(loss), 1e-12) for loss, other_loss in finite), default=0.0)


def loss_tolerance(*drifts: float | None) -> float:
    """How far losses may differ without significance, given how far rounding by itself moves them."""
    return max([_LEAST_TOLERANCE, *(_DRIFTS * drift for drift in drifts if drift is not None)])
