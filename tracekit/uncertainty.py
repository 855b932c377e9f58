"""Confidence intervals from few measurements: Student's t for means, order statistics for medians.

The unit of repetition is the pass. The steps of one pass share its process, its memory layout and the state of the
machine, so a thousand of them are still a single observation: each pass gives one value, and the interval comes from
how much these values differ. Nothing here knows about traces.
"""

import math
import statistics
from collections.abc import Sequence

CONFIDENCE = 0.95
# Passes are added until the interval is narrow enough, which favours samples that happen to vary little: in
# simulations, 95 % intervals then contain the truth in 91–94 % of cases, and 97 % intervals in 95–96 %.
CONFIDENCE_WHERE_STOPPED = 0.97
Interval = tuple[float, float]
LARGEST_LOG = 700.0  # beyond 709.8, an exponential is too large for a float


def is_noise(ratio: Interval | None) -> bool:
    """Whether a difference is within noise: the interval of the ratio contains 1, or there is none."""
    return ratio is None or ratio[0] <= 1 <= ratio[1]


def interval_from_logs(low: float, high: float) -> Interval:
    """The interval of a quantity, from the ends of its logarithm's; they are finite, because JSON has no infinity."""
    return math.exp(low), math.exp(min(high, LARGEST_LOG))


def student_t(freedom: int, inside: float) -> float:
    """The t such that ±t contains the share `inside` of Student's distribution."""
    low, high = 0.0, 1.0
    while _share_within(high, freedom) < inside:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _share_within(middle, freedom) < inside else (low, middle)
    return high


def half_width_of_mean(values: Sequence[float], inside: float) -> float:
    """Half the width of the confidence interval of the mean; infinite for fewer than two values."""
    if len(values) < 2:
        return math.inf
    return student_t(len(values) - 1, inside) * statistics.stdev(values) / math.sqrt(len(values))


def half_width_of_difference(ours: Sequence[float], theirs: Sequence[float], inside: float) -> float:
    """Half the width of the confidence interval of a difference of means of unpaired values (Welch 1947)."""
    if len(ours) < 2 or len(theirs) < 2:
        return math.inf
    shares = [statistics.variance(side) / len(side) for side in (ours, theirs)]
    if not any(shares):
        return 0.0
    freedom = sum(shares) ** 2 / sum(
        share**2 / (len(side) - 1) for share, side in zip(shares, (ours, theirs), strict=True)
    )
    return student_t(max(1, int(freedom)), inside) * math.sqrt(sum(shares))


def interval_of_median(values: Sequence[float]) -> Interval:
    """The interval of the median by order statistics, the whole range for fewer than six values."""
    ordered, count = sorted(values), len(values)
    outside, below = 0.0, 0
    for rank in range(count // 2):
        outside += math.comb(count, rank) / 2**count
        if 2 * outside > 1 - CONFIDENCE:
            break
        below = rank
    return ordered[below], ordered[count - 1 - below]


def _share_within(t: float, freedom: int) -> float:
    """The share of Student's distribution inside ±t, whole degrees of freedom (Abramowitz, Stegun 26.7.3, 26.7.4)."""
    angle = math.atan2(t, math.sqrt(freedom))
    square = math.cos(angle) ** 2
    odd = freedom % 2
    term = total = (math.cos(angle) if freedom > 1 else 0.0) if odd else 1.0
    for k in range(2 + odd, freedom - 1, 2):
        term *= square * (k - 1) / k
        total += term
    total *= math.sin(angle)
    return 2 / math.pi * (angle + total) if odd else total
