"""Pairs of cells that differ in one axis only: `dynamic` true and false, with the cure and without it, PyG and DGL."""

from collections.abc import Iterator
from dataclasses import dataclass

from tracekit.study.cell import values_of
from tracekit.study.store import CellResult, Study

_IMPLIED = {"framework": ("interpreter",)}  # axes that change with another one
_FRAMEWORKS = ("framework", "interpreter")
_SETTINGS_OF_THE_COMPILER = ("dynamic", "fullgraph")


@dataclass(frozen=True)
class Pair:
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
    by_rest: dict[frozenset[tuple[str, str]], dict[str, CellResult]] = {}
    for result in study.results:
        # The variant consists of its mode and settings, so it differs if any of them does.
        axes = {name: text for name, text in result.cell.axes.items() if name != "variant"}
        cell_value = axes.pop(axis, None)
        for implied in _IMPLIED.get(axis, ()):
            axes.pop(implied, None)
        if cell_value in (value, reference):
            by_rest.setdefault(frozenset(axes.items()), {})[cell_value] = result
    for common, by_value in by_rest.items():
        if len(by_value) == 2:
            yield Pair(axis, value, reference, dict(common), by_value[value], by_value[reference])


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
