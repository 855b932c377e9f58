"""How fast is each variant at each setting, what does compiling it cost, and when does that pay off?"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from tracekit.report.blocks import Sentences, Table
from tracekit.report.model import Report
from tracekit.report.registry import of_study
from tracekit.report.section import Contents
from tracekit.report.sections.study_graphs import graph_breaks, recompiles
from tracekit.report.study_columns import SETTING, VARIANT
from tracekit.study import Study
from tracekit.study.settings import Group, Setting, interval_text, settings
from tracekit.trace.schema import column

_REAL, _INTEGER = pa.float64(), pa.int64()
_SHORT = 24  # rows shown in every report; beyond that, the tables by model and mode are the ones to read
_COVERS = (
    "Each cell is a capture of its own. With one seed an interval covers how much its passes differ, and not what "
    "changed between captures; with several seeds it covers both."
)
SPEED_UPS = pa.schema(
    [
        SETTING,
        VARIANT,
        column("step_ns", _REAL, "a step, unprofiled; geometric mean over the seeds that its baseline has, too", "ns"),
        column("step_low_ns", _REAL, "lower end of its 95 % interval, over seeds or passes", "ns", role="detail"),
        column("step_high_ns", _REAL, "its upper end", "ns", role="detail"),
        column("baseline_step_ns", _REAL, "a step of the baseline with the same seeds", "ns", role="detail"),
        column("speed_up", _REAL, "step time of the setting's first variant divided by this one's", "×"),
        column("interval", pa.string(), "95 % interval of the speed-up", role="figure"),
        column("low", _REAL, "its lower end", "×", role="detail"),
        column("high", _REAL, "its upper end", "×", role="detail"),
        column("noise", pa.bool_(), "whether the interval contains 1"),
        column("compile_ns", _REAL, "time inside compilations; mean over the seeds", "ns"),
        column("break_even_steps", _REAL, "steps until the time saved makes up for the slower start"),
        column("graph_breaks", _INTEGER, "places where a graph breaks", title="graph break places"),
        column("recompiles", _INTEGER, "recompilations in the profiled pass"),
        column("peak_bytes", _INTEGER, "memory at the peak: allocated on the GPU, or else resident on the host", "B"),
        column("seeds", _INTEGER, "seeds that were measured"),
        column("between_seeds", _REAL, "standard deviation of log step time between seeds", "share", role="detail"),
        column("failed", _INTEGER, "cells that failed", role="detail"),
    ]
)


@of_study("speed_ups", "Speed-ups", rank=5, stage="lead")
def speed_ups(_: Report, study: Study) -> Contents:
    """A row per setting and variant."""
    all_settings = settings(study)
    rows = [row for setting in all_settings for row in _rows(setting)]
    nothing = not any(row["step_ns"] for row in rows)
    table = Table("speed_ups", pa.Table.from_pylist(rows, SPEED_UPS), detail=nothing or len(rows) > _SHORT)
    if table.detail:
        return Contents((table,))
    return Contents((Sentences((_COVERS, *_other_seeds(all_settings)), "quiet"), table))


def _other_seeds(all_settings: list[Setting]) -> Iterator[str]:
    """Which seeds are compared where variants have different ones."""
    for setting in all_settings:
        baseline = setting.groups[0]
        for speed_up in setting.speed_ups:
            variant = speed_up.group.variant
            measured = next(group.measured for group in setting.groups if group.variant == variant)
            if measured.keys() != baseline.measured.keys():
                seeds = ", ".join(map(str, sorted(speed_up.group.measured)))
                variant_names = f"{variant} and {baseline.variant}"
                yield f"{setting.name}: {variant_names} are compared by the seeds that both have: {seeds}."


def _rows(setting: Setting) -> Iterator[dict[str, Any]]:
    by_variant = {speed_up.group.variant: speed_up for speed_up in setting.speed_ups}
    for group in setting.groups:
        compared = by_variant.get(group.variant)
        low, high = compared.interval if compared is not None and compared.interval is not None else (None, None)
        alike = compared.group if compared is not None else group
        ends = alike.step_interval or (None, None)
        yield {
            "setting": setting.name,
            "variant": group.variant,
            "step_ns": alike.step_ns,
            "step_low_ns": ends[0],
            "step_high_ns": ends[1],
            "baseline_step_ns": compared.baseline.step_ns if compared is not None else None,
            "speed_up": compared.speed_up if compared is not None else None,
            "interval": interval_text((1 / high, 1 / low) if low and high else None),
            "low": 1 / high if high else None,
            "high": 1 / low if low else None,
            "noise": compared.noise if compared is not None else None,
            "compile_ns": group.compile_ns,
            "break_even_steps": compared.break_even_steps if compared is not None else None,
            "graph_breaks": graph_breaks(group),
            "recompiles": recompiles(group),
            "peak_bytes": _peak_bytes(group),
            "seeds": len(group.measured),
            "between_seeds": group.spread,
            "failed": len(group.failures),
        }


def _peak_bytes(group: Group) -> int | None:
    memories = [variant.memory for variant in group.variants]
    peaks = [memory.peak_allocated_bytes or memory.host_peak_rss_bytes for memory in memories]
    return max((peak for peak in peaks if peak is not None), default=None)
