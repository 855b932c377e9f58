"""What recording an event costs, by its kind: of windows whose events and steps are known."""

from __future__ import annotations

from itertools import cycle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracekit.engine.calibration import Window, estimate

COSTS = {"operator": 2_000.0, "call": 1_000.0}
STEP_NS = 1e7


class Counted:
    """A window in whose steps so many events of each kind are recorded, each of which costs its time."""

    def __init__(self, **a_step: int) -> None:
        self.kinds = {*a_step}
        self._a_step = a_step

    def a_step(self) -> dict[str, float]:
        return {**self._a_step}

    def step_ns(self, overhead: dict[str, float]) -> np.ndarray:
        recorded = STEP_NS + sum(COSTS[kind] * events for kind, events in self._a_step.items())
        without = sum(overhead.get(kind, 0.0) * events for kind, events in self._a_step.items())
        return np.array([recorded - without])


def windows(*counts: tuple[int, int]) -> list[Window]:
    return [Window(Counted(operator=o, call=c), np.ones(1, bool), STEP_NS, on_a_gpu=True) for o, c in counts]


NEARLY_ALIKE = [(1500, 1500), (1000, 800)]


def test_what_two_windows_cannot_tell_is_a_range():
    """Whatever of the two kinds it is that costs, each window is foretold by the other one as well."""
    for made in estimate(windows(*NEARLY_ALIKE)):
        assert made.why_not == ""
        assert made.other is not None
        for kind, ns in COSTS.items():
            between = sorted((made.overhead[kind], made.other[kind]))
            assert between[0] < between[1]
            assert between[0] * 0.9 < ns < between[1] * 1.1
        alike = np.ptp([*made.overhead.values()]) < np.ptp([*made.other.values()])
        assert alike, "the strongest ridge comes first"


def test_three_windows_tell():
    for made in estimate(windows((1500, 1500), (1000, 200), (300, 1500))):
        assert made.other is None
        assert made.overhead == pytest.approx(COSTS, rel=0.05)


@given(st.lists(st.floats(-1e-12, 1e-12), min_size=1, max_size=64))
def test_rounding_decides_nothing(noise):
    """Another processor adds in another order: the same windows cost the same there."""
    expected, exact, rounded = estimate(windows(*NEARLY_ALIKE)), np.linalg.lstsq, cycle(noise)

    def inexact(*arguments, **options):
        costs, *rest = exact(*arguments, **options)
        return costs * (1 + np.array([next(rounded) for _ in costs])), *rest

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np.linalg, "lstsq", inexact)
        made = estimate(windows(*NEARLY_ALIKE))
    for one, other in zip(made, expected, strict=True):
        assert one.overhead == pytest.approx(other.overhead, rel=1e-6)
        assert one.other == pytest.approx(other.other, rel=1e-6)
