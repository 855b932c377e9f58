"""Do the steps take the same time? A bar for each step; those that compile are hatched, and cut at the top."""

from tracekit.base.units import duration
from tracekit.plots.shared import Chart, blocks, named, outline
from tracekit.report import Report
from tracekit.report.blocks import Series

_MAX_BARS = 400  # bars in a panel
_COMPILES, _UNKNOWN = "#d6336c", "#d8dee4"


def draw(report: Report, chart: Chart) -> None:
    """Draw a panel for each line of the series."""
    series = next((block for block in blocks(report) if isinstance(block, Series)), None)
    lines = [line for line in series.lines if line.steps] if series is not None else []
    if not lines:
        return
    for axes, line in zip(chart.panels(len(lines), 1.3), lines, strict=True):
        steady = line.usual
        top = max(steady, default=1) or 1
        shown = slice(0, _MAX_BARS)
        for position, (value, mark) in enumerate(zip(line.values[shown], line.marks[shown], strict=True)):
            if mark == "compiles":
                axes.bar(position, 1.15 * top / 1e6, width=0.85, hatch="////", **outline(_COMPILES))
            elif value is None:
                axes.bar(position, top / 1e6, width=0.85, hatch="....", **outline(_UNKNOWN))
            else:
                axes.bar(position, value / 1e6, width=0.85, **outline("#4b7bec"))
            if mark == "compiles" and value is not None:
                axes.text(position, 1.15 * top / 1e6, f"compiles, {duration(value)}", va="bottom", fontsize=7)
        count = len(line.steps[shown])
        every = max(1, count // 12)
        axes.set_xticks(range(0, count, every), [str(step) for step in line.steps[shown][::every]])
        axes.set_ylim(0, 1.4 * top / 1e6)
        axes.set_ylabel("ms")
        cut = f", the first {_MAX_BARS} of {len(line.steps)} steps" if len(line.steps) > _MAX_BARS else ""
        axes.set_title(f"{named(line.name)}{cut}", fontsize=8)
