"""Unprofiled passes: how long a step takes, how one variant compares with another, and how certain both are.

Two variants are compared pass by pass. The passes of one round ran one after the other, so that drift – clocks, heat,
other jobs – affects both and mostly cancels in their ratio. Ratios are averaged as logarithms, so that neither side is
favoured: the interval is about the ratio of the two step times that are quoted.
"""

import math
import statistics
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from tracekit.run import Measured, Pass, Variant
from tracekit.uncertainty import (
    CONFIDENCE,
    CONFIDENCE_WHERE_STOPPED,
    Interval,
    half_width_of_difference,
    half_width_of_mean,
    interval_from_logs,
    interval_of_median,
    is_noise,
)
from tracekit.units import ratio

Covers = Literal["rounds", "passes", "steps"]
COVERED: dict[Covers, str] = {
    "rounds": "passes that took turns, each in a separate process, and their steps",
    "passes": "the passes of two captures, which did not take turns; it does not cover changes between the captures",
    "steps": "the steps of one pass each; it does not cover differences between passes",
}
_ALIKE = 1.005


def cold_cost_ns(variant: Variant | None) -> float | None:
    """How much longer the first steps took than the same number of steady ones, unprofiled."""
    if variant is None or variant.measured is None or not variant.measured.first_steps_ns:
        return None
    first = variant.measured.first_steps_ns
    return max(sum(first) - len(first) * variant.measured.step_ns, 0)


def steps_to_break_even(extra_ns: float, saved_ns: float) -> float:
    """After how many steps the time that each saves makes up for a slower start; infinite if it never does."""
    return max(extra_ns, 0) / saved_ns if saved_ns > 0 else float("inf")


@dataclass(frozen=True)
class Contrast:
    """The step time of a variant divided by that of its baseline, with its confidence interval."""

    ratio: float
    interval: Interval | None  # None if too little was measured
    covers: Covers
    passes: int  # on the side that has fewer

    def document(self) -> dict[str, Any]:
        """The contrast as plain data, for JSON."""
        return {
            "ratio": self.ratio,
            "interval": self.interval,
            "confidence": CONFIDENCE,
            "interval_covers": COVERED[self.covers],
            "passes": self.passes,
            "noise": self.noise,
        }

    @property
    def noise(self) -> bool:
        """Whether the difference is within noise: the interval contains 1, or there is none."""
        return is_noise(self.interval)


def contrast(ours: Measured, theirs: Measured, inside: float = CONFIDENCE_WHERE_STOPPED) -> Contrast:
    """The step time of `ours` compared with that of `theirs`; `inside` is the confidence of the interval."""
    pairs = _rounds(ours.counted_passes, theirs.counted_passes)
    if len(pairs) > 1:
        logs = [math.log(one.step_ns / other.step_ns) for one, other in pairs]
        return _contrast(statistics.fmean(logs), half_width_of_mean(logs, inside), "rounds", len(logs))
    log = math.log(ours.step_ns / theirs.step_ns)
    sides = [[math.log(each.step_ns) for each in side.counted_passes] for side in (ours, theirs)]
    if min(map(len, sides)) > 1:
        return _contrast(log, half_width_of_difference(sides[0], sides[1], inside), "passes", min(map(len, sides)))
    return Contrast(math.exp(log), _by_steps(ours, theirs), "steps", 1)


def compared(ours: Contrast, other: str = "") -> str:
    """`1.32 × faster than eager (1.25–1.40)`, `1.02 × slower (0.97–1.07), within noise`."""
    slower = ours.ratio > 1
    factor = ours.ratio if slower else 1 / ours.ratio
    if factor < _ALIKE:
        verdict = "as fast as" if other else "as fast"
    else:
        verdict = f"{ratio(factor)} {'slower' if slower else 'faster'}{' than' if other else ''}"
    interval = f" ({_ends(ours.interval, slower)})" if ours.interval else ""
    return f"{verdict}{f' {other}' if other else ''}{interval}{', within noise' if ours.noise else ''}"


def _ends(interval: Interval, slower: bool) -> str:
    """The ends of the interval as factors, slower or faster: `1.25–1.40`."""
    low, high = interval if slower else (_inverse(interval[1]), _inverse(interval[0]))
    return f"{low:.2f}–{high:.2f}"


def _inverse(ratio: float) -> float:
    return 1 / ratio if ratio else math.inf


def step_interval(measured: Measured, inside: float = CONFIDENCE_WHERE_STOPPED) -> Interval | None:
    """The confidence interval of the step time, ns; None if there is only one pass."""
    logs = [math.log(each.step_ns) for each in measured.counted_passes]
    if len(logs) < 2:
        return None
    log, half = math.log(measured.step_ns), half_width_of_mean(logs, inside)
    return interval_from_logs(log - half, log + half)


def passes_document(measured: Measured) -> dict[str, Any]:
    """The passes and the interval that they give as plain data, for JSON."""
    interval = step_interval(measured)
    return {
        "interval_ns": interval,
        "interval_covers": COVERED["rounds"] if interval is not None else None,
        "passes": [
            {
                "round": each.round,
                "started_ns": each.started_ns,
                "seconds": each.seconds,
                "step_ns": float(each.step_ns),
                "steps": len(each.step_all_ns),
                "load": each.load,
                "counted": each.counted,
            }
            for each in measured.passes
        ],
    }


def _rounds(ours: list[Pass], theirs: list[Pass]) -> list[tuple[Pass, Pass]]:
    """The passes paired by round; no pairs if the two sides did not take turns, as in two captures."""
    by_round = {each.round: each for each in theirs}
    pairs = [(each, by_round[each.round]) for each in ours if each.round in by_round]
    took_turns = all(
        max(one.started_ns for one in before) < min(one.started_ns for one in after)
        for before, after in pairwise(pairs)
    )
    return pairs if took_turns else []


def _by_steps(ours: Measured, theirs: Measured) -> Interval | None:
    """The interval of a quotient from the intervals of both medians (MOVER, Zou and Donner 2008)."""
    if min(ours.steps, theirs.steps) < 2 or not all(ours.step_all_ns) or not all(theirs.step_all_ns):
        return None
    low, middle, high = _logs(ours)
    their_low, their_middle, their_high = _logs(theirs)
    centre = middle - their_middle
    below, above = (
        math.hypot(middle - low, their_high - their_middle),
        math.hypot(high - middle, their_middle - their_low),
    )
    return interval_from_logs(centre - below, centre + above)


def _logs(measured: Measured) -> tuple[float, float, float]:
    low, high = interval_of_median(measured.step_all_ns)
    middle = measured.step_ns
    return math.log(min(low, middle)), math.log(middle), math.log(max(high, middle))


def _contrast(log_ratio: float, half_width: float, covers: Covers, passes: int) -> Contrast:
    interval = interval_from_logs(log_ratio - half_width, log_ratio + half_width)
    return Contrast(math.exp(log_ratio), interval, covers, passes)
