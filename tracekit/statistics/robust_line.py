"""The straight line through points, some of them outliers: a fixed part, a proportional part, and intervals for both.

It starts from the median of all slopes (Theil 1950, Sen 1968), refined by weights that fall to zero for distant points
(Tukey's bisquare): up to a quarter of the points may be arbitrary. The intervals come from the residuals themselves
(White 1980), so noise may grow with the size, or from groups, if points come in groups that are disturbed alike.
"""

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracekit.statistics.uncertainty import CONFIDENCE, Interval, student_t

Floats = NDArray[np.float64]
_TUNING = 4.685  # 95 % of the efficiency of least squares if there are no outliers
_NORMAL = 1.4826  # from the median deviation to the standard deviation
_ROUNDS = 50
_MOST_PAIRED = 400  # points: more would give too many pairs
_LEAST_GROUPS = 3


class LinearFit(Struct, frozen=True):
    """y = fixed + slope · x."""

    fixed: float
    slope: float
    fixed_interval: Interval
    slope_interval: Interval
    explained: float  # the share of the variance of y that x explains, without outliers


def fit(x: Floats, y: Floats, groups: NDArray[np.int64] | None = None) -> LinearFit:
    """Fit at least three points with at least two different x. `groups` numbers the groups of points that are disturbed
    alike."""
    centre, unit = float(np.median(x)), float(np.ptp(x))
    columns = np.column_stack((np.ones(len(x)), (x - centre) / unit))
    # First the median slope of all pairs, and the level that is exceeded by half of the points.
    few_x, few_y = columns[:, 1], y
    if len(x) > _MOST_PAIRED:
        sample = np.linspace(0, len(x) - 1, _MOST_PAIRED).astype(np.int64)
        few_x, few_y = few_x[sample], y[sample]
    left_index, right_index = np.triu_indices(len(few_x), 1)
    apart = few_x[left_index] != few_x[right_index]
    slopes = (few_y[left_index] - few_y[right_index])[apart] / (few_x[left_index] - few_x[right_index])[apart]
    rise = float(np.median(slopes))
    coefficients = np.array([float(np.median(few_y - rise * few_x)), rise])
    for _ in range(_ROUNDS):
        weights = _weights(y - columns @ coefficients)
        normal = columns.T @ (columns * weights[:, None])
        if np.linalg.cond(normal) > 1e15:  # all remaining points have one size
            break
        before, coefficients = coefficients, np.linalg.solve(normal, columns.T @ (weights * y))
        if np.allclose(coefficients, before, rtol=1e-10, atol=0):
            break
    level, rise = coefficients.tolist()
    residuals = y - columns @ coefficients
    weights = _weights(residuals)
    covariance, freedom = _covariance(columns, residuals, weights, groups)
    t = student_t(freedom, CONFIDENCE)
    to_zero = np.array([1.0, -centre / unit])
    half_fixed = t * float(np.sqrt(max(to_zero @ covariance @ to_zero, 0.0)))
    half_slope = t * float(np.sqrt(max(covariance[1, 1], 0.0))) / unit
    slope = rise / unit
    fixed = level - slope * centre
    is_used = weights > 0
    spread = float(np.var(y[is_used]))
    explained = max(1 - float(np.var(residuals[is_used])) / spread, 0.0) if spread else 0.0
    return LinearFit(
        fixed, slope, (fixed - half_fixed, fixed + half_fixed), (slope - half_slope, slope + half_slope), explained
    )


def _weights(residuals: Floats) -> Floats:
    scale = _NORMAL * float(np.median(np.abs(residuals)))
    if not scale:
        return np.where(residuals == 0, 1.0, 0.0)
    weights: Floats = np.maximum(1 - (residuals / (_TUNING * scale)) ** 2, 0) ** 2
    return weights


def _covariance(
    columns: Floats, residuals: Floats, weights: Floats, groups: NDArray[np.int64] | None
) -> tuple[Floats, int]:
    """The intervals of level and slope, and the degrees of freedom: the wider of those by points and by groups."""
    count = len(residuals)
    pulls = columns * (residuals * weights)[:, None]
    scale = _NORMAL * float(np.median(np.abs(residuals))) or 1.0
    within_scale = np.minimum(np.abs(residuals) / (_TUNING * scale), 1)
    curvature = np.where(
        within_scale < 1, (1 - within_scale**2) * (1 - 5 * within_scale**2), 0
    )  # derivative of the influence
    bread = np.linalg.pinv(columns.T @ (columns * curvature[:, None]))
    by_points = bread @ (pulls.T @ pulls) @ bread.T * count / max(count - 2, 1)
    names = np.unique(groups) if groups is not None else np.zeros(0)
    if len(names) < _LEAST_GROUPS:
        return by_points, max(count - 2, 1)
    sums = np.array([pulls[groups == name].sum(axis=0) for name in names])
    by_groups = bread @ (sums.T @ sums) @ bread.T * len(names) / (len(names) - 1)
    wider: Floats = by_groups if np.trace(by_groups) > np.trace(by_points) else by_points
    return wider, len(names) - 1
