"""What does each axis of the sweep change, everything else being equal: one axis at a time; pair by pair, as `dynamic`
true against false, with the cure and without it, one framework against another; and between seeds?
"""

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from tracekit.report.blocks import Sentences, Table
from tracekit.report.model import Report
from tracekit.report.section import Contents, of_study
from tracekit.report.sections.study_cells import SETTING, VARIANT
from tracekit.study import CellResult, Study
from tracekit.study.pairs import Pair, axis_effects, cures, frameworks, pairs
from tracekit.study.settings import Setting, interval_text, names_of, settings
from tracekit.trace.schema import column

AXES = pa.schema(
    [
        column("axis", pa.string(), "mode, dynamic, interpreter, a parameter …", role="name"),
        column("value", pa.string(), "the value of the axis"),
        column("against", pa.string(), "the first value of the axis"),
        column("ratio", pa.float64(), "step time at the value divided by that at the first one, geometric mean", "×"),
        column("interval", pa.string(), "95 % interval over the pairs", role="figure"),
        column("low", pa.float64(), "its lower end; null for one pair", "×", role="detail"),
        column("high", pa.float64(), "its upper end", "×", role="detail"),
        column("pairs", pa.int64(), "pairs of cells that differ in nothing else"),
    ]
)


@of_study("axes", "One axis at a time", rank=15)
def axes(_: Report, study: Study) -> Contents | None:
    """A row per value of each axis that more than one cell differs in."""
    rows = [
        {
            "axis": effect.axis,
            "value": effect.value,
            "against": effect.reference,
            "ratio": effect.ratio,
            "interval": interval_text(effect.interval),
            "low": effect.interval[0] if effect.interval is not None else None,
            "high": effect.interval[1] if effect.interval is not None else None,
            "pairs": effect.pairs,
        }
        for effect in axis_effects(study)
    ]
    if not rows:
        return None
    sentence = (
        "Step times at each value of an axis, divided by those at its first value, over cells that differ in "
        "nothing else."
    )
    return Contents((Sentences((sentence,), "quiet"), Table("axes", pa.Table.from_pylist(rows, AXES))))


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
    table_rows = [*_pair_rows([*pairs])]
    return Contents((Table(name, pa.Table.from_pylist(table_rows, PAIRS), detail=True),)) if table_rows else None


def _pair_rows(pairs: list[Pair]) -> Iterator[dict[str, Any]]:
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


SEEDS = pa.schema(
    [
        SETTING,
        VARIANT,
        column("seeds", pa.int64(), "seeds that were measured"),
        column("step_ns", _REAL, "a step, unprofiled; geometric mean over the seeds", "ns"),
        column("least_ns", _REAL, "step time of the fastest seed", "ns"),
        column("most_ns", _REAL, "step time of the slowest seed", "ns"),
        column("between_seeds", _REAL, "standard deviation of log step time between seeds", "share"),
    ]
)


@of_study("seeds", "Between seeds", rank=14)
def seeds(_: Report, study: Study) -> Contents | None:
    """A row for each setting and variant that was measured with several seeds."""
    table_rows = [row for setting in settings(study) for row in _seed_rows(setting)]
    return Contents((Table("seeds", pa.Table.from_pylist(table_rows, SEEDS), detail=True),)) if table_rows else None


def _seed_rows(setting: Setting) -> Iterator[dict[str, Any]]:
    for group in setting.groups:
        times = [measured.step_ns for measured in group.measured.values()]
        if len(times) > 1:
            yield {
                "setting": setting.name,
                "variant": group.variant,
                "seeds": len(times),
                "step_ns": group.step_ns,
                "least_ns": min(times),
                "most_ns": max(times),
                "between_seeds": group.spread,
            }
