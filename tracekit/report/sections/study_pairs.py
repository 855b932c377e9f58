"""`dynamic` true against false, with the cure and without it, one framework against another: pair by pair."""

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from tracekit.report.blocks import Table
from tracekit.report.model import Report
from tracekit.report.registry import of_study
from tracekit.report.section import Contents
from tracekit.study import CellResult, Study
from tracekit.study.pairs import Pair, cures, frameworks, pairs
from tracekit.study.settings import names_of
from tracekit.trace.schema import column

_REAL = pa.float64()
PAIRS = pa.schema(
    [
        column("setting", pa.string(), "what both cells have in common", role="setting"),
        column("axis", pa.string(), "axis in which they differ"),
        column("value", pa.string(), "value of the first cell"),
        column("against", pa.string(), "value of the second cell"),
        column("step_ns", _REAL, "unprofiled step time of the first cell", "ns"),
        column("against_step_ns", _REAL, "unprofiled step time of the second cell", "ns"),
        column("speed_up", _REAL, "step time of the second cell divided by that of the first", "×"),
        column("memory", _REAL, "memory above the start, first cell divided by second", "×"),
        column("outcome", pa.string(), "how the first cell ended"),
        column("against_outcome", pa.string(), "how the second cell ended"),
    ]
)


@of_study("dynamic", "Dynamic shapes: true against false", rank=11)
def dynamic(_: Report, study: Study) -> Contents | None:
    """A row for each pair of cells that differ in `dynamic` only."""
    return _contents("dynamic", pairs(study, "dynamic", "true", "false"))


@of_study("cures", "With the cure and without it", rank=12)
def with_cure(_: Report, study: Study) -> Contents | None:
    """A row for each pair of cells that differ in a parameter that is on or off."""
    return _contents("cures", (pair for axis in cures(study) for pair in pairs(study, axis, "true", "false")))


@of_study("frameworks", "One framework against another", rank=13)
def of_frameworks(_: Report, study: Study) -> Contents | None:
    """A row for each pair of cells that differ in the framework, or else in the interpreter."""
    return _contents("frameworks", (pair for axis in frameworks(study) for pair in pairs(study, *axis)))


def _contents(name: str, pairs: Iterable[Pair]) -> Contents | None:
    table_rows = [*_rows([*pairs])]
    return Contents((Table(name, pa.Table.from_pylist(table_rows, PAIRS), detail=True),)) if table_rows else None


def _rows(pairs: list[Pair]) -> Iterator[dict[str, Any]]:
    axes_of = [{name: value for name, value in pair.common.items() if name != "recipe"} for pair in pairs]
    names = names_of([{"recipe": pair.common["recipe"], **axes} for pair, axes in zip(pairs, axes_of, strict=True)])
    for pair, name in zip(pairs, names, strict=True):
        above_bytes = [_above_start_bytes(result) for result in (pair.result, pair.reference_result)]
        yield {
            "setting": name,
            "axis": pair.axis,
            "value": pair.value,
            "against": pair.reference,
            "step_ns": _step_ns(pair.result),
            "against_step_ns": _step_ns(pair.reference_result),
            "speed_up": 1 / pair.ratio if pair.ratio else None,
            "memory": above_bytes[0] / above_bytes[1] if above_bytes[0] is not None and above_bytes[1] else None,
            "outcome": pair.result.outcome,
            "against_outcome": pair.reference_result.outcome,
        }


def _step_ns(result: CellResult) -> int | None:
    measured = result.variant.measured if result.variant is not None else None
    return measured.step_ns if measured is not None else None


def _above_start_bytes(result: CellResult) -> int | None:
    return result.variant.memory.above_start_bytes if result.variant is not None else None
