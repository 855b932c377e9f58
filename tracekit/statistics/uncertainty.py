"""Confidence intervals from few measurements, and the smallest regression that a check of two captures could have seen.

Student's t for means, also robust ones; order statistics for medians. Some values are disturbed, and some are lucky:
the fifth of them at either end does not count (a trimmed mean), so that neither decides. Where values come in pairs,
such as those of variants that took turns, that is so of their differences.

The unit of repetition is the pass. The steps of one pass share its process, its memory layout and the state of the
machine, so a thousand of them are still a single observation: each pass gives one value, and the interval comes from
how much these values differ. Two or three values can agree by chance, so what is known beforehand about how much they
differ (`Prior`) counts as well.

A check fails if the whole interval of the ratio, at `SURE`, lies beyond the tolerated one. A regression is therefore
seen with the probability `POWER` if it exceeds the tolerance by the half-width of that interval, and by the half-width
beyond which chance takes an estimate in one of 20 captures:

    smallest = (1 + tolerance) × exp(half-width at SURE + half-width at 2 × POWER − 1) − 1

Half-widths are those of the logarithm of the ratio, by Student's t over the passes of both sides, and by how much
captures of the same code differ anyway, the more so the longer apart they are on an unsteady machine.
"""

import math
import statistics
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise

from msgspec import Struct

CONFIDENCE = 0.95
# Passes are added until the interval is narrow enough, which favours samples that happen to vary little: in
# simulations, 95 % intervals then contain the truth in 91–94 % of cases, and 97 % intervals in 95–96 %.
CONFIDENCE_WHERE_STOPPED = 0.97
Interval = tuple[float, float]
# Times the expected variance. Where that is right and worth four degrees of freedom, two to eight values vary by so
# much more once in twenty times, and five or more by so much less once in a hundred times (Fisher's F).
_FAR_MORE, _FAR_LESS = 7, 1 / 16
_MOST_PERSISTENT = 0.98
_USELESS = 2  # times as high as its lower end is the upper end of an interval that says nothing
_TRIMMED = 0.2  # of the values, at either end
LARGEST_LOG = 700.0  # beyond 709.8, an exponential is too large for a float
# A project is checked hundreds of times without having changed: at 95 %, some checks would fail by chance.
SURE = 0.99
POWER = 0.95
TOLERANCE = 0.03  # of the earlier value: less is not worth a failure
# By so much, as the standard deviation of logarithms, captures of the same code differ beyond what passes of one show:
# two dozen captures of matrix products, some beside a load, on two cores of a virtual machine.
_BETWEEN_CAPTURES = 0.003
TOO_UNSURE = 1.0  # a smallest regression that is larger is no figure to quote: steps could take twice as long
UNSEEN = "The passes differ too much, as on a busy machine: even steps twice as long might go unseen"


class Prior(Struct, frozen=True):
    """A standard deviation that is expected before anything is measured, and how many degrees of freedom that is
    worth: as many as a sample of one value more would have."""

    deviation: float
    freedom: int

    def variance(self, values: Sequence[float]) -> tuple[float, int]:
        """The variance of a single value and its degrees of freedom, 0 if nothing is known."""
        return self.pooled(_variance(values), len(values) - 1)

    def pooled(self, seen: float, free: int) -> tuple[float, int]:
        """The same, where a variance was seen that has so many degrees of freedom.

        Both count, the expected variance and the one that was seen, unless this refutes what was expected: it is much
        larger, or much smaller and as certain.
        """
        expected = self.deviation**2
        if free and (seen > _FAR_MORE * expected or (free >= self.freedom and seen < _FAR_LESS * expected)):
            return seen, free
        freedom = self.freedom + free
        return (self.freedom * expected + free * seen) / freedom if freedom else math.inf, freedom


NOTHING_KNOWN = Prior(0.0, 0)


def is_noise(ratio: Interval | None) -> bool:
    """Whether a difference is within noise: the interval of the ratio contains 1, or there is none."""
    return ratio is None or ratio[0] <= 1 <= ratio[1]


def says_nothing(interval: Interval) -> bool:
    """Whether its ends are so far apart, as after two passes that differ much, that quoting them helps nobody."""
    return not interval[0] or interval[1] / interval[0] > _USELESS


def interval_from_logs(low: float, high: float) -> Interval:
    """The interval of a quantity, from the ends of its logarithm's; they are finite, because JSON has no infinity."""
    return math.exp(low), math.exp(min(high, LARGEST_LOG))


@cache
def student_t(freedom: int, confidence: float) -> float:
    """The t such that ±t contains the share `confidence` of Student's distribution."""
    low, high = 0.0, 1.0
    while _share_within(high, freedom) < confidence:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _share_within(middle, freedom) < confidence else (low, middle)
    return high


def half_width_of_mean(values: Sequence[float], confidence: float, prior: Prior = NOTHING_KNOWN) -> float:
    """Half the width of the confidence interval of the mean; infinite if nothing is known about the spread."""
    if not values:
        return math.inf
    variance, freedom = prior.variance(values)
    return student_t(freedom, confidence) * math.sqrt(variance / len(values)) if freedom else math.inf


def typical(values: Sequence[float]) -> float:
    """The mean of the values without the fifth of them at either end: of fewer than five, the mean of all."""
    cut = _cut(len(values))
    return statistics.fmean(sorted(values)[cut : len(values) - cut])


def half_width_of_typical(values: Sequence[float], confidence: float, prior: Prior = NOTHING_KNOWN) -> float:
    """Half the width of the confidence interval of `typical`; infinite if nothing is known about the spread."""
    if not values:
        return math.inf
    square, freedom = square_of_error(values, prior)
    return student_t(freedom, confidence) * math.sqrt(square) if freedom else math.inf


def square_of_error(values: Sequence[float], prior: Prior, count: int | None = None) -> tuple[float, int]:
    """The square of the standard error of `typical` and its degrees of freedom; of `count` values, if they go on to
    scatter as these do."""
    seen = _variance(_winsorized(values)) / _shrinks(_cut(len(values)) / len(values)) ** 2
    if count is not None and len(values) <= prior.freedom:  # a few that agree do not refute what is expected
        seen = max(seen, _FAR_LESS * prior.deviation**2)
    return _square_of_error(seen, prior, count or len(values))


def expected_square_of_error(prior: Prior, count: int) -> tuple[float, int]:
    """The same of so many values that scatter as is expected of them."""
    return _square_of_error(prior.deviation**2, prior, count)


def half_width_of_difference(
    ours: Sequence[float], theirs: Sequence[float], confidence: float, prior: Prior = NOTHING_KNOWN
) -> float:
    """Half the width of the confidence interval of a difference of what is typical of unpaired values (Yuen 1974), each
    side in order of time: values that follow each other and are alike count for less than as many independent ones."""
    if not ours or not theirs:
        return math.inf
    squares_of_errors = [square_of_error(side, prior) for side in (ours, theirs)]
    if not all(freedom for _, freedom in squares_of_errors):
        return math.inf
    if not any(square for square, _ in squares_of_errors):
        return 0.0
    freedom = sum(square for square, _ in squares_of_errors) ** 2 / sum(
        square**2 / free for square, free in squares_of_errors
    )
    lasting = persistence([_winsorized(side) for side in (ours, theirs)])
    fewer = (1 + lasting) / (1 - lasting)  # as many times fewer are the independent values
    return student_t(max(1, int(freedom / fewer)), confidence) * math.sqrt(
        sum(square for square, _ in squares_of_errors) * fewer
    )


def _cut(count: int) -> int:
    """How many of so many values do not count at either end."""
    return int(_TRIMMED * count)


def _winsorized(values: Sequence[float]) -> list[float]:
    """The values, in place of those that do not count the nearest one that does."""
    ordered, cut = sorted(values), _cut(len(values))
    low, high = ordered[cut], ordered[len(values) - 1 - cut]
    return [min(max(value, low), high) for value in values]


def _square_of_error(seen: float, prior: Prior, count: int) -> tuple[float, int]:
    """The square of the standard error of the mean of `count` values without those at either end (Tukey, McLaughlin
    1963), and its degrees of freedom. Values are taken to be normally distributed."""
    cut = _cut(count)
    variance, freedom = prior.pooled(seen, count - 2 * cut - 1)
    return (_shrinks(cut / count) / (1 - 2 * cut / count)) ** 2 * variance / count, freedom


def _variance(values: Sequence[float]) -> float:
    """0 for a single value."""
    return statistics.variance(values) if len(values) > 1 else 0.0


@cache
def _shrinks(part: float) -> float:
    """The standard deviation of standard normal values of which that part at either end is replaced by the nearest
    other one."""
    if not part:
        return 1.0
    normal = statistics.NormalDist()
    quantile = normal.inv_cdf(1 - part)
    return math.sqrt(1 - 2 * part - 2 * quantile * normal.pdf(quantile) + 2 * part * quantile**2)


def persistence(sides: Sequence[Sequence[float]]) -> float:
    """How much of a value's distance from the mean is left in the next one, 0 to 0.98: their autocorrelation, freed of
    its bias in short series (Kendall 1954), less half of what independent values have by chance.

    Where a machine drifts, the mean of n values is as uncertain as that of n (1 − ρ) / (1 + ρ) independent ones.
    """
    apart = [[value - statistics.fmean(side) for value in side] for side in sides]
    squares = sum(value**2 for side in apart for value in side)
    count = sum(map(len, sides))
    free = count - 3 * len(sides)
    if not squares or free <= 0:
        return 0.0
    product = sum(first * second for side in apart for first, second in pairwise(side)) / squares
    unbiased, by_chance = (count * product + len(sides)) / free, math.sqrt(count) / free
    return min(max(unbiased - by_chance / 2, 0.0), _MOST_PERSISTENT)


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


def margin(half_width: Callable[[float], float]) -> float:
    """How far beyond its limit a quantity must lie to be seen; `half_width` is that of its interval, by confidence."""
    return half_width(SURE) + half_width(2 * POWER - 1)


def half_width_of_captures(
    ours: Sequence[float], theirs: Sequence[float], confidence: float, prior: Prior, drift: float
) -> float:
    """Half the width of the interval of the ratio of step times of two captures, as a logarithm, from those of their
    passes, which did not take turns; `drift` is the standard deviation of what the machine did to it in between."""
    deviation = math.hypot(math.sqrt(2) * _BETWEEN_CAPTURES, drift)
    apart = statistics.NormalDist(0, deviation).inv_cdf((1 + confidence) / 2)
    return math.hypot(half_width_of_difference(ours, theirs, confidence, prior), apart)


def margin_of_passes(ours: Sequence[float], theirs: Sequence[float], prior: Prior, drift: float) -> float:
    """The margin of such a ratio, as a logarithm; infinite if either has fewer than two passes."""
    if min(len(ours), len(theirs)) < 2:
        return math.inf
    return margin(lambda confidence: half_width_of_captures(ours, theirs, confidence, prior, drift))


def smallest_regression(log_margin: float, tolerance: float = TOLERANCE) -> float:
    """The smallest regression that is seen, as a share of the earlier value: 0.12 for 12 %."""
    return (1 + tolerance) * math.exp(log_margin) - 1 if log_margin < LARGEST_LOG else math.inf
