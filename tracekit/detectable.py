"""What is the smallest regression that a check of two captures could have seen?

A check fails if the whole interval of the ratio, at `SURE`, lies beyond the tolerated one. A regression is therefore
seen with the probability `POWER` if it exceeds the tolerance by the half-width of that interval, and by the half-width
beyond which chance takes an estimate in one of 20 captures:

    smallest = (1 + tolerance) × exp(half-width at SURE + half-width at 2 × POWER − 1) − 1

Half-widths are those of the logarithm of the ratio, by Student's t over the passes of both sides, and by how much
captures of the same code differ anyway.
"""

import math
import statistics
from collections.abc import Callable, Sequence

from tracekit.uncertainty import LARGEST_LOG, Prior, half_width_of_difference

# A project is checked hundreds of times without having changed: at 95 %, some checks would fail by chance.
SURE = 0.99
POWER = 0.95
TOLERANCE = 0.03  # of the earlier value: less is not worth a failure
# By so much, as the standard deviation of logarithms, captures of the same code differ beyond what passes of one show:
# two dozen captures of matrix products, some beside a load, on two cores of a virtual machine.
_BETWEEN_CAPTURES = 0.003
TOO_UNSURE = 1.0  # a smallest regression that is larger is no figure to quote: steps could take twice as long
UNSEEN = "The passes differ too much, as on a busy machine: even steps twice as long might go unseen"


def margin(half_width: Callable[[float], float]) -> float:
    """How far beyond its limit a quantity must lie to be seen; `half_width` is that of its interval, by confidence."""
    return half_width(SURE) + half_width(2 * POWER - 1)


def half_width_of_captures(ours: Sequence[float], theirs: Sequence[float], inside: float, prior: Prior) -> float:
    """Half the width of the interval of the ratio of step times of two captures, as a logarithm, from those of their
    passes, which did not take turns."""
    apart = statistics.NormalDist(0, math.sqrt(2) * _BETWEEN_CAPTURES).inv_cdf((1 + inside) / 2)
    return math.hypot(half_width_of_difference(ours, theirs, inside, prior), apart)


def margin_of_passes(ours: Sequence[float], theirs: Sequence[float], prior: Prior) -> float:
    """The margin of such a ratio, as a logarithm; infinite if either has fewer than two passes."""
    if min(len(ours), len(theirs)) < 2:
        return math.inf
    return margin(lambda inside: half_width_of_captures(ours, theirs, inside, prior))


def smallest_regression(log_margin: float, tolerance: float = TOLERANCE) -> float:
    """The smallest regression that is seen, as a share of the earlier value: 0.12 for 12 %."""
    return (1 + tolerance) * math.exp(log_margin) - 1 if log_margin < LARGEST_LOG else math.inf
