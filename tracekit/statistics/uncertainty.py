"""Confidence intervals from few measurements, and the smallest regression that a check of two captures could have seen.

Student's t for means, also robust ones; order statistics for medians. What a machine does to a value only ever makes it
larger, and goes on for longer than a value takes: the mean of the smaller half of the values is what they would be if
it were quiet. Of a ratio, either side may be disturbed: its middle is what counts.

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
# As many deviations from the middle are as far as a value counts; further out it is taken for disturbed.
_DISTURBED = 3.0
_MAD = 1.4826  # deviations of a normal distribution in its median absolute deviation
_VARIANCE_OF_LOCATION = math.pi / 3  # of the Hodges–Lehmann estimate, compared with the mean, if nothing is disturbed
_LEAST_UNDISTURBED = 3  # values: two or three do not show which of them is
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

    def variance(self, values: Sequence[float], free: int | None = None) -> tuple[float, int]:
        """The variance of a single value and its degrees of freedom, 0 if nothing is known.

        Both the expected variance and that of the values count, unless the values refute what was expected: they vary
        much more, or there are many that vary much less. Of the values, `free` are, one fewer than there are unless
        told otherwise.
        """
        mean, freedom_left = statistics.fmean(values), len(values) - 1 if free is None else free
        seen = sum((value - mean) ** 2 for value in values) / max(len(values) - 1, 1)
        squares = freedom_left * seen
        expected = self.deviation**2
        if freedom_left:
            enough = len(values) > self.freedom
            if seen > _FAR_MORE * expected or (enough and seen < _FAR_LESS * expected):
                return seen, freedom_left
        freedom = self.freedom + freedom_left
        return (self.freedom * expected + squares) / freedom if freedom else math.inf, freedom


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


def location(values: Sequence[float]) -> float:
    """The middle of the values, of which a few may be disturbed: the median of the means of all pairs of them, each
    with itself as well (Hodges and Lehmann 1963)."""
    return statistics.median((first + second) / 2 for index, first in enumerate(values) for second in values[index:])


def half_width_of_location(values: Sequence[float], confidence: float, prior: Prior = NOTHING_KNOWN) -> float:
    """Half the width of the confidence interval of `location`; infinite if nothing is known about the spread.

    Disturbed values widen it no more than those that are just not taken for disturbed.
    """
    if not values:
        return math.inf
    middle = location(values)
    deviation = _MAD * statistics.median(abs(value - middle) for value in values)
    reach = _DISTURBED * max(deviation, prior.deviation)
    counted = [min(max(value, middle - reach), middle + reach) for value in values] if reach else [*values]
    variance, freedom = prior.variance(counted)
    error = math.sqrt(_VARIANCE_OF_LOCATION * variance / len(values))
    return student_t(freedom, confidence) * error if freedom else math.inf


def undisturbed(values: Sequence[float]) -> float:
    """The mean of the smaller half of the values, of three at least: what they are where nothing disturbs them."""
    return statistics.fmean(sorted(values)[: _half(len(values))])


def half_width_of_undisturbed(values: Sequence[float], confidence: float, prior: Prior = NOTHING_KNOWN) -> float:
    """Half the width of the confidence interval of `undisturbed`; infinite if nothing is known about the spread."""
    if not values:
        return math.inf
    square, freedom = _square_of_error(values, prior)
    return student_t(freedom, confidence) * math.sqrt(square) if freedom else math.inf


def half_width_of_difference(
    ours: Sequence[float], theirs: Sequence[float], confidence: float, prior: Prior = NOTHING_KNOWN
) -> float:
    """Half the width of the confidence interval of a difference of what unpaired values are undisturbed (Yuen 1974),
    each side in order of time: values that follow each other and are alike count for less than as many independent
    ones."""
    if not ours or not theirs:
        return math.inf
    squares_of_errors = [_square_of_error(side, prior) for side in (ours, theirs)]
    if not all(freedom for _, freedom in squares_of_errors):
        return math.inf
    if not any(square for square, _ in squares_of_errors):
        return 0.0
    freedom = sum(square for square, _ in squares_of_errors) ** 2 / sum(
        square**2 / free for square, free in squares_of_errors
    )
    lasting = persistence([_shortened(ours), _shortened(theirs)])
    fewer = (1 + lasting) / (1 - lasting)  # as many times fewer are the independent values
    return student_t(max(1, int(freedom / fewer)), confidence) * math.sqrt(
        sum(square for square, _ in squares_of_errors) * fewer
    )


def _half(count: int) -> int:
    """How many of the values are taken for undisturbed: a half, but not fewer than three."""
    return max(min(count, _LEAST_UNDISTURBED), (count + 1) // 2)


def _shortened(values: Sequence[float]) -> list[float]:
    """The values, in place of those that may be disturbed the largest of the others."""
    limit = sorted(values)[_half(len(values)) - 1]
    return [min(value, limit) for value in values]


def _square_of_error(values: Sequence[float], prior: Prior) -> tuple[float, int]:
    """The square of the standard error of `undisturbed` and its degrees of freedom (Tukey, McLaughlin 1963: a trimmed
    mean), where the prior is about single values, which are taken to be normally distributed."""
    count, half_count = len(values), _half(len(values))
    variance, freedom = prior.variance(
        [value / _shrinks(half_count / count) for value in _shortened(values)], half_count - 1
    )
    return (_shrinks(half_count / count) * count / half_count) ** 2 * variance / count, freedom


@cache
def _shrinks(share: float) -> float:
    """The standard deviation of standard normal values of which those above that quantile are replaced by it."""
    if share >= 1:
        return 1.0
    normal = statistics.NormalDist()
    quantile = normal.inv_cdf(share)
    mean = quantile * (1 - share) - normal.pdf(quantile)
    return math.sqrt(share - quantile * normal.pdf(quantile) + quantile**2 * (1 - share) - mean**2)


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
