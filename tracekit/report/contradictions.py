"""Do the traces and the unprofiled passes agree on a difference?

A difference between traces rests on few processes, and on steps that the profiler slows down. Where unprofiled passes
were compared, they decide.
"""

import math
from typing import TYPE_CHECKING, Literal

from tracekit.compare import Comparison, Difference
from tracekit.profile import Member
from tracekit.run_facts import contrast_of
from tracekit.uncertainty import CONFIDENCE, Interval, half_width_of_mean, interval_from_logs
from tracekit.unprofiled import prior_of_pairs

if TYPE_CHECKING:
    from tracekit.report.model import Report

# What unprofiled passes say instead: `opposite`, the other one is faster; `unsure`, it is not known that they differ;
# `smaller` or `larger`, they differ in that direction, but the intervals of the two ratios do not overlap.
Contradiction = Literal["", "opposite", "unsure", "smaller", "larger"]


def contradiction(report: "Report", entry: Comparison) -> Contradiction:
    """How the unprofiled passes contradict the difference in wall time; empty if they do not, or were not compared."""
    member, baseline = report.member(entry.variant), report.member(entry.baseline)
    contrast, wall, mean = contrast_of(member, baseline), entry.wall, baseline.means["wall"]
    if contrast is None or wall is None or mean is None:
        return ""
    if contrast.noise:
        return "" if wall.is_noise() else "unsure"
    if (contrast.ratio > 1) != (wall.delta_ns > 0):
        return "opposite"
    traced = _ratio_of_traces(wall, mean.step_ns, member, baseline)
    if contrast.interval is None or traced is None or _overlap(contrast.interval, traced):
        return ""
    # Both are on the same side of 1, so the larger difference is the one further from it.
    return "larger" if abs(math.log(contrast.ratio)) > abs(math.log(_middle(traced))) else "smaller"


def _ratio_of_traces(wall: Difference, base_ns: float, member: Member, baseline: Member) -> Interval | None:
    """The interval of the ratio of the traced steps: over pairs of traces, or else of one trace each, which differ as
    much as pairs of processes are expected to."""
    if wall.pairs and wall.delta_interval is not None:
        low, high = (1 + end / base_ns for end in wall.delta_interval)
        return (low, high) if low > 0 else None
    sides = [side.variant.measured for side in (member, baseline) if side.variant and side.variant.measured]
    if base_ns + wall.delta_ns <= 0:
        return None
    log = math.log((base_ns + wall.delta_ns) / base_ns)
    half = half_width_of_mean([log], CONFIDENCE, prior_of_pairs(*sides))
    return interval_from_logs(log - half, log + half)


def _overlap(first: Interval, second: Interval) -> bool:
    return first[0] <= second[1] and second[0] <= first[1]


def _middle(interval: Interval) -> float:
    return math.sqrt(interval[0] * interval[1])
