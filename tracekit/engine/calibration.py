"""What does recording an event cost, by its kind? From windows of a capture whose steps were also timed unprofiled.

The costs are those with which replays of all windows come closest to the unprofiled step times (Gauss–Newton on the
relative errors). Kinds that the windows cannot tell apart cost about the same: a ridge draws them to their mean, of the
strength with which the others foretell each window best. Two windows foretell each other as well with any strength, so
they leave open what a kind costs: the strongest is taken, and what the weakest makes of it is told, too. Then each
window's costs are scaled until its own step is as long as the unprofiled one. What the other windows alone would have
made of it is the error that is told.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracekit.base.intervals import Bools
from tracekit.engine.replay import EventKind, Overhead, Retiming
from tracekit.statistics.typical_step import StepPattern, typical_step

_ROUNDS = 4  # of the fit, and of the scaling
_LIKE = (0.1, 0.03, 0.01, 0.003)  # of a step, that a kind which costs twice as much as the others is worth
_EQUALLY_WELL = 1e-6  # of a step: windows are foretold as well, whatever the processor rounds
_APART = 0.05  # of what the kinds cost together: costs that differ by less are one estimate
_EXPLAINED = 1 / 3  # of the stretch may remain, or so much of a step:
_NEAR = 0.05
_MOST_NS = 20_000  # recording one event never takes so long
_LEAST_NS = 100  # by which costs are varied

Floats = NDArray[np.float64]


class Window(Struct, frozen=True, dict=True):
    """A recording, and how long a step takes where nothing is recorded."""

    retiming: Retiming
    counted: Bools  # the steps that are compared
    unprofiled_ns: float
    on_a_gpu: bool  # the host runs ahead: only the mean of steps is meaningful, as in unprofiled passes
    pattern: StepPattern | None = None  # of its steps; None: as they show it themselves

    def step_ns(self, overhead: Overhead) -> float:
        """A step without the time of recording."""
        lengths = self.retiming.step_ns(overhead)[self.counted]
        return float(lengths.mean()) if self.on_a_gpu else float(typical_step(lengths.tolist(), self.pattern).step_ns)

    @cached_property
    def traced_ns(self) -> float:
        """A step as recorded."""
        return self.step_ns({})


class Estimate(Struct, frozen=True):
    """What recording costs in one window: of each event, ns, so that its steps are as long as unprofiled ones.

    `error` is how far off a step is, relative to the unprofiled one, by the costs that the other windows tell. If
    `why_not` is not empty, the costs do not explain the window. `other` are costs that explain it as well, where the
    windows cannot tell: what the kinds cost lies between, as far as anybody knows.
    """

    overhead: Overhead
    error: float
    why_not: str = ""
    other: Overhead | None = None


def estimate(windows: Sequence[Window]) -> list[Estimate]:
    """What recording costs in each of these windows, at least two, of one machine."""
    kinds = sorted({kind for window in windows for kind in window.retiming.kinds})
    fit = _Fit(windows, kinds)
    estimates = []
    for number, window in enumerate(windows):
        foretold = fit.without(number)
        error = window.step_ns(foretold) / window.unprofiled_ns - 1
        stretch = window.traced_ns / window.unprofiled_ns - 1
        overhead = _scaled(window, fit.overhead)
        residual = abs(window.step_ns(overhead) / window.unprofiled_ns - 1) if stretch > 0 else 0.0
        why = ""
        if max(overhead.values(), default=0.0) > _MOST_NS:
            why = "an event would have to cost more than it can"
        elif abs(error) > max(_EXPLAINED * stretch, _NEAR) or residual > _NEAR:
            why = "recorded events, at the cost that other variants tell, do not explain it"
        other = _scaled(window, fit.weakest) if fit.weakest is not None else None
        differs = other is not None and _apart(window, overhead, other) > _APART
        estimates.append(Estimate(overhead, error, why, other if differs else None))
    return estimates


class _Fit:
    """Costs by kind that explain several windows."""

    def __init__(self, windows: Sequence[Window], kinds: Sequence[EventKind]) -> None:
        self._kinds = kinds
        self._unprofiled = np.array([window.unprofiled_ns for window in windows])
        stretch = sum(max(window.traced_ns - window.unprofiled_ns, 0.0) for window in windows)
        events = sum(sum(window.retiming.a_step().values()) for window in windows)
        self._usual = max(stretch / max(events, 1.0), float(_LEAST_NS))
        costs, every = np.full(len(kinds), self._usual), np.ones(len(windows), bool)
        for _ in range(_ROUNDS):
            now = np.array([window.step_ns(self._by_kind(costs)) for window in windows])
            slopes = np.empty((len(windows), len(kinds)))
            for number in range(len(kinds)):
                varied = costs.copy()
                varied[number] += max(costs[number] / 10, _LEAST_NS)
                longer = np.array([window.step_ns(self._by_kind(varied)) for window in windows])
                slopes[:, number] = (longer - now) / (varied[number] - costs[number])
            self._slopes, self._level = slopes, now - slopes @ costs
            equally = self._equally_good()
            self._like = equally[0]
            costs = self._solve(every, self._like)
        self.overhead = self._by_kind(costs)
        self.weakest = self._by_kind(self._solve(every, equally[-1])) if len(equally) > 1 else None

    def without(self, number: int) -> Overhead:
        """The costs that the other windows tell."""
        return self._by_kind(self._solve(self._all_but(number), self._like))

    def _all_but(self, number: int) -> Bools:
        rows: Bools = np.arange(len(self._unprofiled)) != number
        return rows

    def _equally_good(self) -> list[float]:
        """The strengths with which the others foretell each window best, the strongest first."""
        missed = {like: self._missed(like) for like in _LIKE}
        return [like for like in _LIKE if missed[like] <= min(missed.values()) + _EQUALLY_WELL]

    def _missed(self, like: float) -> float:
        """How far the others are from foretelling a window, in the mean, with a ridge of that strength: of a step."""
        costs = np.array([self._solve(self._all_but(number), like) for number in range(len(self._unprofiled))])
        missed = ((self._slopes * costs).sum(axis=1) + self._level) / self._unprofiled - 1
        return float(np.sqrt(missed @ missed / len(missed)))

    def _solve(self, rows: Bools, like: float) -> Floats:
        """Least squares with costs of at least 0: where the best one is below, it is 0."""
        count = len(self._kinds)
        unprofiled_ns = self._unprofiled[rows]
        alike = like / self._usual * (np.eye(count) - 1 / count)
        matrix = np.concatenate((self._slopes[rows] / unprofiled_ns[:, None], alike))
        targets = np.concatenate(((unprofiled_ns - self._level[rows]) / unprofiled_ns, np.zeros(count)))
        costs, free = np.zeros(count), np.ones(count, bool)
        while free.any():
            costs[free] = np.linalg.lstsq(matrix[:, free], targets, rcond=None)[0]
            if (costs >= 0).all():
                break
            free &= costs > 0
            costs = np.zeros(count)
        return costs

    def _by_kind(self, costs: Floats) -> dict[EventKind, float]:
        return dict(zip(self._kinds, costs.tolist(), strict=True))


def _apart(window: Window, overhead: Overhead, other: Overhead) -> float:
    """How much of what recording a step costs two estimates of it give to other kinds."""
    of_kinds = window.retiming.a_step()
    moved = sum(of_kinds.get(kind, 0.0) * abs(other[kind] - ns) for kind, ns in overhead.items()) / 2
    return moved / max(sum(of_kinds.get(kind, 0.0) * ns for kind, ns in overhead.items()), 1.0)


def _scaled(window: Window, overhead: Overhead) -> dict[EventKind, float]:
    """The costs times a factor, with which a step is as long as the unprofiled one; no cost if it is not longer."""
    mine = {kind: ns for kind, ns in overhead.items() if kind in window.retiming.kinds}
    excess_ns, factor = window.traced_ns - window.unprofiled_ns, 1.0
    for _ in range(_ROUNDS):
        removed = window.traced_ns - window.step_ns({kind: factor * ns for kind, ns in mine.items()})
        if excess_ns <= 0 or removed <= 0:
            return dict.fromkeys(mine, 0.0)
        factor *= excess_ns / removed
    return {kind: factor * ns for kind, ns in mine.items()}
