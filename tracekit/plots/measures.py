"""How long does a step take, and how much memory? Variants side by side, on a logarithmic scale."""

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from tracekit.plots.shared.chart import INK, Chart, blocks, named, outline
from tracekit.report import Report
from tracekit.report.blocks import Table
from tracekit.units import duration, size


@dataclass(frozen=True)
class _Measure:
    """What a panel can show: the first of its columns with any known value."""

    columns: tuple[tuple[str, str], ...]  # with their titles
    written: Callable[[float | None], str]
    scale: float
    unit: str
    hatch: str


_MEASURES = (
    _Measure(
        (("step_ns", "step, unprofiled"), ("wall_ns", "step, profiled"), ("host_ns", "host time of a step")),
        duration,
        1e6,
        "ms",
        "",
    ),
    _Measure(
        (
            ("peak_allocated_bytes", "peak GPU memory, allocated"),
            ("peak_reserved_bytes", "peak GPU memory, reserved"),
            ("host_peak_rss_bytes", "peak host memory"),
        ),
        size,
        2**20,
        "MiB",
        "////",
    ),
)


@dataclass(frozen=True)
class _Panel:
    """A bar for each variant, with its 95 % interval if known."""

    measure: _Measure
    title: str
    values: list[float | None]
    lows: list[float | None]
    highs: list[float | None]


def draw(report: Report, chart: Chart) -> None:
    """Draw a panel for time, and one for memory if that was measured."""
    table = next((b.rows for b in blocks(report) if isinstance(b, Table) and b.name == "variants"), None)
    if table is None:
        return
    names = [named(name) for name in table["variant"].to_pylist()]
    panels = [panel for measure in _MEASURES if (panel := _panel(table, measure)) is not None]
    if not panels:
        return
    for axes, panel in zip(chart.panels(len(panels), 3.0, across=True), panels, strict=True):
        _bars(axes, names, panel)


def _panel(table: pa.Table, measure: _Measure) -> _Panel | None:
    chosen = next((each for each in measure.columns if any(table[each[0]].to_pylist())), None)
    if chosen is None:
        return None
    column, title = chosen
    low, high = (f"{column.removesuffix('_ns')}_{bound}_ns" for bound in ("low", "high"))
    return _Panel(measure, title, table[column].to_pylist(), _column(table, low), _column(table, high))


def _column(table: pa.Table, name: str) -> list[float | None]:
    return table[name].to_pylist() if name in table.schema.names else [None] * len(table)


def _bars(axes: Axes, names: list[str], panel: _Panel) -> None:
    shown = [(value or 0.0) / panel.measure.scale for value in panel.values]
    look = outline("#4b7bec" if not panel.measure.hatch else "#a0722a")
    axes.bar(range(len(names)), shown, width=0.65, hatch=panel.measure.hatch, **look)
    tops = [max(value, (high or 0.0) / panel.measure.scale) for value, high in zip(shown, panel.highs, strict=True)]
    for index, (value, low, high) in enumerate(zip(shown, panel.lows, panel.highs, strict=True)):
        if value and low and high:
            axes.vlines(index, low / panel.measure.scale, high / panel.measure.scale, colors=INK, linewidth=1.2)
    for index, (measured, top) in enumerate(zip(panel.values, tops, strict=True)):
        text = panel.measure.written(measured) if measured else "unknown"
        axes.annotate(text, (index, top), (0, 3), textcoords="offset points", ha="center", fontsize=8)
    positive = [value for value in shown if value]
    axes.set_yscale("log")
    axes.set_ylim(min(positive) / 3, max(tops) * 1.6)
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xticks(range(len(names)), names)
    if len(names) > 3:
        axes.tick_params(axis="x", labelrotation=25)
        for label in axes.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")
    axes.set_ylabel(panel.measure.unit)
    axes.set_title(panel.title)
