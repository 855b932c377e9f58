"""How long does a step take, and how much memory? Variants side by side, to a logarithmic scale."""

from collections.abc import Callable

from matplotlib.ticker import FuncFormatter, NullFormatter

from tracekit.plots.shared.chart import Chart, blocks, named, outline
from tracekit.report import Report
from tracekit.report.blocks import Table
from tracekit.units import duration, size

# What to show, the first of each that anything is known of.
_TIMES = (("step_ns", "step, unprofiled"), ("wall_ns", "step, profiled"), ("host_ns", "host time of a step"))
_MEMORIES = (
    ("peak_allocated_bytes", "peak GPU memory, allocated"),
    ("peak_reserved_bytes", "peak GPU memory, reserved"),
    ("host_peak_rss_bytes", "peak host memory"),
)
_Say = Callable[[float | None], str]
_PANELS: tuple[tuple[tuple[tuple[str, str], ...], _Say, float, str, str], ...] = (
    (_TIMES, duration, 1e6, "ms", ""),
    (_MEMORIES, size, 2**20, "MiB", "////"),
)


def _plain(value: float, _: float | None = None) -> str:
    return f"{value:,g}"


def draw(report: Report, chart: Chart) -> None:
    """A panel for time, and one for memory where that was measured."""
    table = next((b.rows for b in blocks(report) if isinstance(b, Table) and b.name == "variants"), None)
    if table is None:
        return
    names = table["variant"].to_pylist()
    panels: list[tuple[str, list[float | None], _Say, float, str, str]] = []
    for choice, say, scale, unit, look in _PANELS:
        known = ((title, table[column].to_pylist()) for column, title in choice)
        chosen = next(((title, values) for title, values in known if any(values)), None)
        if chosen is not None:
            panels.append((*chosen, say, scale, unit, look))
    if not panels:
        return
    for axes, (title, values, say, scale, unit, hatch) in zip(
        chart.panels(len(panels), 3.0, across=True), panels, strict=True
    ):
        shown = [(value or 0.0) / scale for value in values]
        bars = axes.bar(
            range(len(names)), shown, width=0.65, hatch=hatch, **outline("#4b7bec" if not hatch else "#a0722a")
        )
        axes.bar_label(bars, [say(value) if value else "unknown" for value in values], fontsize=8)
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(_plain))
        axes.yaxis.set_minor_formatter(NullFormatter())
        positive = [value for value in shown if value]
        axes.set_ylim(min(positive) / 3, max(positive) * 2)
        axes.set_xticks(range(len(names)), [named(name) for name in names], rotation=20 if len(names) > 3 else 0)
        axes.set_ylabel(unit)
        axes.set_title(title)
