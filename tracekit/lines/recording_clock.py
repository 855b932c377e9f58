"""A detailed step's clock without the cost of recording its calls, judged by the steady step that does the same.

Anchors are moments at which both steps are at the same point of the work. Between two of them, each recorded call and
return is taken to cost the same: so much that the rest is as long as in the steady step. Python code between calls is
slower while calls are recorded; where it was seen, it gives way first.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tracekit.intervals import Bools, Ints, Rows, below, distinct

_STEPS = 12  # of Newton's method
_LEAST_SHARE = 0.02  # of the time passed that always remains, whatever recording a call cost

_MOST_SLOWED = 3.0  # times: Python 3.11 takes 1.3 to 1.7 times as long, and looking up lines adds to it

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class CutStep:
    """A detailed step, cut at its calls and returns and at the anchors."""

    points: Ints
    passed: Floats  # between a point and the next, ns
    calls: Ints  # recorded calls and returns at the point that it begins with
    gap: Rows  # the anchors that it is between
    plain: Bools  # whether long Python code without a call ran between a point and the next

    @staticmethod
    def of(moments: Ints, anchors: Ints, sampled: Ints) -> "CutStep":
        """The step between the first anchor and the last, given all calls and returns of the recording, and moments at
        which code between calls was seen."""
        first, last = np.searchsorted(moments, (anchors[0], anchors[-1]))
        inside = moments[first:last]
        points = distinct(np.concatenate((inside, anchors)))
        bounds = np.searchsorted(inside, points)
        return CutStep(
            points,
            np.diff(points).astype(np.float64),
            np.diff(bounds),
            below(anchors, points[:-1]) - 1,
            np.searchsorted(sampled, points[:-1]) < np.searchsorted(sampled, points[1:]),
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
        between = np.diff(steady).astype(np.float64)
        step = _without_slower_python(step, between)
        cost = _cost_of_recording(step, between)
        left = _left(step.passed, step.calls, cost[step.gap])
        return Clock(step.points, np.concatenate(([0.0], np.cumsum(left))))

    def read(self, at: Ints) -> Floats:
        """The clock at these moments."""
        start = self.points[0]
        reading: Floats = np.interp(
            (at - start).astype(np.float64), (self.points - start).astype(np.float64), self.reading
        )
        return reading


def _without_slower_python(step: CutStep, steady: Floats) -> CutStep:
    """The step with Python code between calls as fast as in the steady step.

    While a function that records calls is set, some versions of Python run all code more slowly. A gap that has such
    code cannot tell that from what its calls cost, so their cost is that of calls in other gaps.
    """
    if not step.plain.any():
        return step
    mixed = np.bincount(step.gap, step.plain, len(steady)) > 0
    elsewhere = _cost_of_recording(step, steady)[~mixed & (np.bincount(step.gap, step.calls, len(steady)) > 0)]
    cost = float(np.median(elsewhere)) if len(elsewhere) else 0.0
    rest = np.bincount(
        step.gap, np.where(step.plain, 0.0, _left(step.passed, step.calls, np.full(len(step.gap), cost))), len(steady)
    )
    plain = np.bincount(step.gap, np.where(step.plain, step.passed, 0.0), len(steady))
    share = np.clip((steady - rest) / np.where(mixed, plain, 1.0), 1 / _MOST_SLOWED, 1.0)
    return replace(step, passed=np.where(step.plain, step.passed * share[step.gap], step.passed))


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
