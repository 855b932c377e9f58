"""How long does a step take, and how much memory? Variants side by side, as bars that begin at zero."""

from collections.abc import Callable
from typing import Any

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
    is_study = report.subject.study is not None
    rows = tables.get("speed_ups" if is_study else "variants")
    if rows is None or not len(rows):
        return
    cells = rows.to_pylist()
    if is_study:  # a row for each setting and variant has its step time; the memory is in another table
        peaks = tables["peaks"].to_pylist() if "peaks" in tables else []
        above = {(row["setting"], row["variant"]): row["above_start_bytes"] for row in peaks}
        cells = [row | {"above_start_bytes": above.get((row["setting"], row["variant"]))} for row in cells]
    settings = [*dict.fromkeys(row["setting"] for row in cells)] if is_study else []
    shown = settings[:_MAX_SETTINGS]
    grouped = len(shown) > 1
    groups = shown if grouped else [row["variant"] for row in cells]
    panels = []
    for measure in (_TIME, _MEMORY):
        known = ((column, title) for column, title in measure.columns if any(row.get(column) for row in cells))
        column, title = next(known, ("", ""))
        if column and not grouped:
            panels.append(_Panel(measure, title, [_bars("", cells, column)]))
        elif column:
            by_variant: dict[str, dict[str, dict[str, Any]]] = {}
            for row in cells:
                by_variant.setdefault(row["variant"], {})[row["setting"]] = row
            bars = [
                _bars(name, [by_setting.get(group) for group in groups], column)
                for name, by_setting in by_variant.items()
            ]
            panels.append(_Panel(measure, title, bars))
    if not panels:
        return
    side_by_side = len(groups) * len(panels[0].bars) <= _SIDE_BY_SIDE
    for axes, panel in zip(chart.panels(len(panels), 3.0, across=side_by_side), panels, strict=True):
        _draw(axes, [named(group) for group in groups], panel)
        if len(settings) > _MAX_SETTINGS:
            axes.set_title(f"{panel.title}: the first {_MAX_SETTINGS} of {len(settings)} settings")
    if grouped:
        chart.legend(*chart.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)


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
