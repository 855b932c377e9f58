"""Are two training curves the same? How far losses lie apart, and how far rounding alone may move them."""

import math

_LEAST_TOLERANCE = 1e-4  # of the loss, relative: in FP32 other orders of summation stay below it in most trainings
_DRIFTS = 3  # one drawn drift is no bound


def divergence(losses: list[float | None], others: list[float | None]) -> float | None:
    """The largest difference of two curves, relative to the first; None where they cannot be compared.

    Of curves that are not equally long the common beginning: a pass of a slow script may be shorter.
    """
    if not losses or not others:
        return None
    pairs = [*zip(losses, others, strict=False)]
    if any((one is None) != (other is None) for one, other in pairs):
        return math.inf
    finite = [(one, other) for one, other in pairs if one is not None and other is not None]
    return max((abs(one - other) / max(abs(one), 1e-12) for one, other in finite), default=0.0)


def loss_tolerance(*drifts: float | None) -> float:
    """How far losses may lie apart before it says something, where rounding alone moves them so far."""
    return max([_LEAST_TOLERANCE, *(_DRIFTS * each for each in drifts if each is not None)])
