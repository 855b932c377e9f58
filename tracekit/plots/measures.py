"""How long does a step take, and how much memory? Variants side by side, as bars that begin at zero."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from matplotlib.axes import Axes
from msgspec import Struct

from tracekit.base.units import duration, size
from tracekit.plots.shared import COLOURS, HATCHES, INK, Chart, blocks, named, outline
from tracekit.report import Report
from tracekit.report.blocks import Table

_MAX_SETTINGS = 12  # settings of a study
_TALLEST = 1.5  # of the longest bar: an interval that ends above is cut, and has an arrow
_LABELLED = 16  # bars of a panel: among more, figures have no room
_SIDE_BY_SIDE = 8  # bars of a panel: with more, the panels lie one below the other


class _Measure(Struct, frozen=True):
    """What a panel can show: the first of its columns with any known value."""

    columns: tuple[tuple[str, str], ...]  # with their titles
    written: Callable[[float | None], str]
    scale: float
    unit: str
    look: dict[str, Any]  # of the bars of a run


_TIME = _Measure(
    (("step_ns", "step, unprofiled"), ("wall_ns", "step, profiled"), ("host_ns", "host time of a step")),
    duration,
    1e6,
    "ms",
    outline("#4b7bec"),
)
_MEMORY = _Measure(
    (
        ("peak_allocated_bytes", "peak GPU memory, allocated"),
        ("peak_reserved_bytes", "peak GPU memory, reserved"),
        ("host_peak_rss_bytes", "peak host memory"),
        ("above_start_bytes", "peak memory of a step, beyond what is held"),
        ("peak_bytes", "peak memory"),
    ),
    size,
    2**20,
    "MiB",
    outline("#a0722a") | {"hatch": "////"},
)


class _Bars(Struct, frozen=True):
    """Bars that look alike, one for each group, with their 95 % intervals if known; None is a value that is unknown."""

    name: str
    values: list[float | None]
    ends: list[tuple[float, float] | None]
    absent: list[str]  # what stands where there is no value


class _Panel(Struct, frozen=True):
    measure: _Measure
    title: str
    bars: list[_Bars]


def draw(report: Report, chart: Chart) -> None:
    """Draw a panel for time, and one for memory if that was measured; in a study, a group of bars for each setting."""
    tables = {block.name: block.rows for block in blocks(report) if isinstance(block, Table)}
    rows = _of_study(tables) if report.subject.study is not None else tables.get("variants")
    if rows is None or not len(rows):
        return
    settings = list(dict.fromkeys(rows["setting"].to_pylist())) if report.subject.study is not None else []
    shown = settings[:_MAX_SETTINGS]
    grouped = len(shown) > 1
    groups = shown if grouped else rows["variant"].to_pylist()
    panels = [panel for measure in (_TIME, _MEMORY) if (panel := _panel(rows, measure, groups, grouped)) is not None]
    if not panels:
        return
    side_by_side = len(groups) * len(panels[0].bars) <= _SIDE_BY_SIDE
    for axes, panel in zip(chart.panels(len(panels), 3.0, across=side_by_side), panels, strict=True):
        _draw(axes, [named(group) for group in groups], panel)
        if len(settings) > _MAX_SETTINGS:
            axes.set_title(f"{panel.title}: the first {_MAX_SETTINGS} of {len(settings)} settings")
    if grouped:
        chart.legend(*chart.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)


def _of_study(tables: dict[str, pa.Table]) -> pa.Table | None:
    """A row for each setting and variant, with step time and memory."""
    rows = tables.get("speed_ups")
    if rows is None:
        return None
    peaks = tables["peaks"].to_pylist() if "peaks" in tables else []
    above = {(row["setting"], row["variant"]): row["above_start_bytes"] for row in peaks}
    names = zip(rows["setting"].to_pylist(), rows["variant"].to_pylist(), strict=True)
    return rows.append_column("above_start_bytes", pa.array([above.get(pair) for pair in names], pa.float64()))


def _panel(rows: pa.Table, measure: _Measure, groups: list[str], grouped: bool) -> _Panel | None:
    column, title = next(
        ((name, title) for name, title in measure.columns if name in rows.schema.names and any(rows[name].to_pylist())),
        ("", ""),
    )
    if not column:
        return None
    cells = rows.to_pylist()
    if not grouped:
        return _Panel(measure, title, [_bars("", cells, column)])
    bars = []
    for variant in dict.fromkeys(row["variant"] for row in cells):
        by_setting = {row["setting"]: row for row in cells if row["variant"] == variant}
        bars.append(_bars(variant, [by_setting.get(group) for group in groups], column))
    return _Panel(measure, title, bars)


def _bars(name: str, cells: list[dict[str, Any] | None], column: str) -> _Bars:
    low, high = (f"{column.removesuffix('_ns')}_{end}_ns" for end in ("low", "high"))
    rows = [cell or {} for cell in cells]
    ends = [(row[low], row[high]) if row.get(low) and row.get(high) else None for row in rows]
    absent = ["failed" if row.get("failed") else "unknown" if row else "" for row in rows]
    return _Bars(name, [row.get(column) or None for row in rows], ends, absent)


def _draw(axes: Axes, groups: list[str], panel: _Panel) -> None:
    scale, count = panel.measure.scale, len(panel.bars)
    width = 0.65 if count == 1 else 0.8 / count
    labelled = count * len(groups) <= _LABELLED
    longest = max(value for bars in panel.bars for value in bars.values if value)
    highs = [ends[1] for bars in panel.bars for ends in bars.ends if ends is not None]
    highest = min(max([longest, *highs]), _TALLEST * longest) / scale
    for number, bars in enumerate(panel.bars):
        positions = [group + (number - (count - 1) / 2) * width for group in range(len(groups))]
        look = panel.measure.look
        if count > 1:
            look = outline(COLOURS[number % len(COLOURS)]) | {"hatch": HATCHES[number % len(HATCHES)]}
        axes.bar(
            positions, [(value or 0.0) / scale for value in bars.values], width=width, label=named(bars.name), **look
        )
        for x, value, ends, absent in zip(positions, bars.values, bars.ends, bars.absent, strict=True):
            top = (value or 0.0) / scale
            if value and ends is not None:
                top = max(top, min(ends[1] / scale, highest))
                axes.vlines(x, ends[0] / scale, top, colors=INK, linewidth=1.2)
                if ends[1] / scale > highest:
                    axes.plot(x, highest, marker="^", color=INK, markersize=4)  # it goes on
            text = panel.measure.written(value) if value else absent
            if labelled or not value:
                turned: dict[str, Any] = {} if count == 1 else {"rotation": 90}
                axes.annotate(
                    text, (x, top), (0, 3), textcoords="offset points", ha="center", va="bottom", fontsize=7, **turned
                )
    axes.set_ylim(0, highest * (1.15 if count == 1 else 1.4))
    axes.set_xticks(range(len(groups)), groups)
    if len(groups) > 3:
        axes.tick_params(axis="x", labelrotation=25)
        for label in axes.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")
    axes.set_ylabel(panel.measure.unit)
    axes.set_title(panel.title)
