"""Are two training curves the same? How much losses differ, and how much rounding by itself may change them."""

import math

_LEAST_TOLERANCE = 1e-4  # of the loss: in FP32, a different order of summation changes most trainings less
_DRIFTS = 3  # a single measured drift is not an upper bound


def divergence(losses: list[float | None], others: list[float | None]) -> float | None:
    """The largest difference between two curves, relative to the first; None if they cannot be compared.

    If their lengths differ, the common beginning is compared, because a pass of a slow script may be shorter.
    """
    if not losses or not others:
        return None
    pairs = [*zip(losses, others, strict=False)]
    if any((one is None) != (other is None) for one, other in pairs):
        return math.inf
    finite = [(one, other) for one, other in pairs if one is not None and other is not None]
    return max((abs(one - other) / max(abs(one), 1e-12) for one, other in finite), default=0.0)


def loss_tolerance(*drifts: float | None) -> float:
    """How far losses may differ without significance, given how far rounding by itself moves them."""
    return max([_LEAST_TOLERANCE, *(_DRIFTS * each for each in drifts if each is not None)])
