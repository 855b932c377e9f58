"""What does one axis change, everything else being equal? `dynamic` true against false, PyG against DGL, …"""

import math
import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from tracekit.study.comparisons import around
from tracekit.study.store import CellResult, Study
from tracekit.uncertainty import Interval, half_width_of_mean

# Seeds are repetitions, a variant is its mode and settings, and steps of other programs or workloads are other steps.
_NOT_AXES = ("seed", "variant", "recipe", "workload")

_IMPLIED = {"framework": ("interpreter",)}  # axes that change with another one


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
    """Each axis with its first value as the reference, in the order of the plan."""
    measured = [each for each in study.results if each.variant is not None and each.variant.measured is not None]
    values: dict[str, dict[str, None]] = {}
    for result in measured:
        for axis, value in result.cell.axes.items():
            values.setdefault(axis, {})[value] = None
    for axis, occurring in values.items():
        reference, *others = occurring
        for value in others if axis not in _NOT_AXES else ():
            logs = [*_paired(measured, axis, value, reference)]
            if logs:
                middle = statistics.fmean(logs)
                interval = around(middle, half_width_of_mean(logs)) if len(logs) > 1 else None
                yield AxisEffect(axis, value, reference, len(logs), math.exp(middle), interval)


def _paired(measured: list[CellResult], axis: str, value: str, reference: str) -> Iterator[float]:
    """The logarithm of the ratio for each pair of cells that differ in nothing but the axis."""
    by_rest: dict[frozenset[tuple[str, str]], dict[str, float]] = {}
    for result in measured:
        axes = {name: text for name, text in result.cell.axes.items() if name != "variant"}
        own = axes.pop(axis, None)
        for implied in _IMPLIED.get(axis, ()):
            axes.pop(implied, None)
        if own in (value, reference) and result.variant is not None and result.variant.measured is not None:
            by_rest.setdefault(frozenset(axes.items()), {})[own] = result.variant.measured.step_ns
    for both in by_rest.values():
        if len(both) == 2:
            yield math.log(both[value] / both[reference])
