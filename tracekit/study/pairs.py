"""Cells of a study side by side: pairs that differ in one axis only – `dynamic` true and false, with the cure and
without it, PyG and DGL – and model × data × variant, with the settings as rows and their variants as columns.
"""

import math
from collections.abc import Iterator, Sequence

from msgspec import Struct

from tracekit.statistics.uncertainty import Interval
from tracekit.study.settings import Setting, geometric_mean, names_of
from tracekit.study.store import CellResult, Study, values_of

_IMPLIED = {"framework": ("interpreter",)}  # axes that change with another one
_FRAMEWORKS = ("framework", "interpreter")
_SETTINGS_OF_THE_COMPILER = ("dynamic", "fullgraph")
# Seeds are repetitions, a variant consists of its mode and settings, and steps of different programs or workloads
# cannot be compared.
_NOT_AXES = ("seed", "variant", "recipe", "workload")
_NAMED_AXES = ("recipe", "model", "dataset", "workload")


class Pair(Struct, frozen=True):
    """Two cells, and what they have in common."""

    axis: str
    value: str
    reference: str
    common: dict[str, str]
    result: CellResult
    reference_result: CellResult

    @property
    def ratio(self) -> float | None:
        """The step time at the value divided by that at the reference; None if one was not measured."""
        measured, reference = self.result.measured, self.reference_result.measured
        return measured.step_ns / reference.step_ns if measured is not None and reference is not None else None


def pairs(study: Study, axis: str, value: str, reference: str) -> Iterator[Pair]:
    """Every pair of cells that have these two values of the axis and agree in all other axes."""
    # By what else they are, in any order; with that in the order of the study, in which faces name it.
    by_rest: dict[frozenset[tuple[str, str]], tuple[dict[str, str], dict[str, CellResult]]] = {}
    for result in study.results:
        # The variant consists of its mode and settings, so it differs if any of them does.
        axes = {name: text for name, text in result.cell.axes.items() if name != "variant"}
        cell_value = axes.pop(axis, None)
        for implied in _IMPLIED.get(axis, ()):
            axes.pop(implied, None)
        if cell_value in (value, reference):
            by_rest.setdefault(frozenset(axes.items()), (axes, {}))[1][cell_value] = result
    for common, by_value in by_rest.values():
        if len(by_value) == 2:
            yield Pair(axis, value, reference, common, by_value[value], by_value[reference])


def cures(study: Study) -> list[str]:
    """The axes that turn something in the recipe on or off: with the cure, and without it."""
    return [
        axis
        for axis, values in values_of(study.cells).items()
        if {*values} == {"true", "false"} and axis not in _SETTINGS_OF_THE_COMPILER
    ]


def frameworks(study: Study) -> Iterator[tuple[str, str, str]]:
    """An axis of frameworks or interpreters, with each value after the first, and the first as its reference."""
    for axis in _FRAMEWORKS:
        values = values_of(study.cells).get(axis, [])
        if len(values) > 1:
            yield from ((axis, value, values[0]) for value in values[1:])
            return


class AxisEffect(Struct, frozen=True):
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
                ratio, interval = geometric_mean(logs)
                yield AxisEffect(axis, value, reference, len(logs), ratio, interval if len(logs) > 1 else None)


class Row(Struct, frozen=True):
    """One model on one data set, with everything else in its setting."""

    model: str
    data: str
    rest: str  # `framework=dgl loops_ahead=true`: the axes beside these in which settings of the study differ
    setting: Setting


def rows(settings: Sequence[Setting], workload: str | None = None) -> list[Row]:
    """A row for each setting; if a workload is named, only for its settings.

    The model is a parameter of that name, the data a data set or a task if an axis names one; else both are the recipe,
    which has its own data.
    """
    other_axes = [
        {name: value for name, value in setting.axes.items() if name not in _NAMED_AXES and value}
        for setting in settings
    ]
    return [
        Row(
            setting.axes.get("model", setting.axes["recipe"]),
            setting.axes.get("dataset") or setting.axes.get("task") or setting.axes["recipe"],
            name.strip(),
            setting,
        )
        for setting, name in zip(settings, names_of([{"recipe": "", **axes} for axes in other_axes]), strict=True)
        if workload in (None, setting.axes["workload"])
    ]


def variants_of(settings: Sequence[Setting]) -> list[str]:
    """Every variant that occurs, in the order of the plan."""
    return [*dict.fromkeys(group.variant for setting in settings for group in setting.groups)]
