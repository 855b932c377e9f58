"""What does one axis change, everything else being equal? `dynamic` true against false, PyG against DGL, …"""

import math
import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from tracekit.study.cell import values_of
from tracekit.study.pairs import pairs
from tracekit.study.store import Study
from tracekit.uncertainty import CONFIDENCE, Interval, half_width_of_mean, interval_from_logs

# Seeds are repetitions, a variant consists of its mode and settings, and steps of different programs or workloads
# cannot be compared.
_NOT_AXES = ("seed", "variant", "recipe", "workload")


@dataclass(frozen=True)
class AxisEffect:
    """The step time at one value of an axis divided by that at another, over all pairs that differ in nothing else."""

    axis: str
    value: str
    reference: str
    pairs: int
    ratio: float  # geometric mean
    interval: Interval | None  # over the pairs; None for fewer than two


def axis_effects(study: Study) -> Iterator[AxisEffect]:
    """Each axis with its first measured value as the reference, in the order of the plan."""
    measured = Study(study.folder, study.manifest, [result for result in study.results if result.measured])
    for axis, occurring in values_of(measured.cells).items():
        reference, *other_values = occurring
        for value in other_values if axis not in _NOT_AXES else ():
            logs = [math.log(pair.ratio) for pair in pairs(measured, axis, value, reference) if pair.ratio]
            if logs:
                middle, half = statistics.fmean(logs), half_width_of_mean(logs, CONFIDENCE)
                interval = interval_from_logs(middle - half, middle + half) if len(logs) > 1 else None
                yield AxisEffect(axis, value, reference, len(logs), math.exp(middle), interval)
