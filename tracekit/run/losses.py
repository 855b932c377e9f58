"""Are two training curves the same? How much losses differ, and how much rounding alone may change them."""

import math

_LEAST_TOLERANCE = 1e-4  # relative to the loss: in FP32, another order of summation stays below it in most trainings
_DRIFTS = 3  # a single measured drift is not an upper bound


def divergence(losses: list[float | None], others: list[float | None]) -> float | None:
    """The largest difference of two curves, relative to the first; None where they cannot be compared.

    Of curves of different lengths the common beginning is compared: a pass of a slow script may be shorter.
    """
    if not losses or not others:
        return None
    pairs = [*zip(losses, others, strict=False)]
    if any((one is None) != (other is None) for one, other in pairs):
        return math.inf
    finite = [(one, other) for one, other in pairs if one is not None and other is not None]
    return max((abs(one - other) / max(abs(one), 1e-12) for one, other in finite), default=0.0)


def loss_tolerance(*drifts: float | None) -> float:
    """How far losses may differ before that means anything, given how far rounding alone moves them."""
    return max([_LEAST_TOLERANCE, *(_DRIFTS * each for each in drifts if each is not None)])
