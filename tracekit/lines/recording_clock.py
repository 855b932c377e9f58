"""A detailed step's clock without the cost of recording its calls, judged by the steady step that does the same.

Anchors are moments at which both steps are at the same point of the work. Between two of them, each recorded call and
return is taken to cost the same: so much that the rest is as long as in the steady step.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracekit.intervals import Ints, Rows, below, distinct

_STEPS = 12  # of Newton's method
_LEAST_SHARE = 0.02  # of the time passed that always remains, whatever recording a call cost

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class CutStep:
    """A detailed step, cut at its calls and returns and at the anchors."""

    points: Ints
    passed: Floats  # between a point and the next, ns
    calls: Ints  # recorded calls and returns at the point that it begins with
    gap: Rows  # the anchors that it is between

    @staticmethod
    def of(moments: Ints, anchors: Ints) -> "CutStep":
        """The step between the first anchor and the last, given all calls and returns of the recording."""
        first, last = np.searchsorted(moments, (anchors[0], anchors[-1]))
        inside = moments[first:last]
        points = distinct(np.concatenate((inside, anchors)))
        bounds = np.searchsorted(inside, points)
        return CutStep(
            points,
            np.diff(points).astype(np.float64),
            np.diff(bounds),
            below(anchors, points[:-1]) - 1,
        )


@dataclass(frozen=True)
class Clock:
    """The time of a detailed step without what recording each call and each return in it cost.

    If the time between two anchors is longer than in the steady step, its calls are the reason: each costs its share of
    the difference.
    """

    points: Ints
    reading: Floats  # at each point, since the first

    @staticmethod
    def of(step: CutStep, steady: Ints) -> "Clock":
        """The clock, given the anchors in the steady step."""
        cost = _cost_of_recording(step, np.diff(steady).astype(np.float64))
        left = _left(step.passed, step.calls, cost[step.gap])
        return Clock(step.points, np.concatenate(([0.0], np.cumsum(left))))

    def read(self, at: Ints) -> Floats:
        """The clock at these moments."""
        start = self.points[0]
        reading: Floats = np.interp(
            (at - start).astype(np.float64), (self.points - start).astype(np.float64), self.reading
        )
        return reading


def _left(passed: Floats, calls: Ints, cost: Floats) -> Floats:
    """What remains between each point and the next without the cost of the calls and returns recorded at the first."""
    left: Floats = np.maximum(passed - calls * cost, _LEAST_SHARE * passed)
    return left


def _cost_of_recording(step: CutStep, steady: Floats) -> Floats:
    """For each gap, what a call or return costs, so that the rest is as long as in the steady step.

    The rest falls as the cost rises, ever more slowly as parts of the gap reach their least share: Newton's steps from
    0 never pass the cost that is looked for.
    """
    passed, calls, gap = step.passed, step.calls, step.gap
    cost, least = np.zeros(len(steady)), _LEAST_SHARE * passed
    for _ in range(_STEPS):
        left = _left(passed, calls, cost[gap])
        too_long = np.bincount(gap, left, len(steady)) - steady
        slope = np.bincount(gap, np.where(left > least, calls, 0), len(steady))
        if not (too_long[slope > 0] > 1).any():
            break
        cost += np.where(slope > 0, np.maximum(too_long, 0.0) / np.maximum(slope, 1.0), 0.0)
    return cost
