"""How does a baseline's step become a variant's? A step down or up for each bucket, from one total to the other."""

from typing import Any

from tracekit.base.units import thousandths
from tracekit.plots.shared import Chart, breakdown, looks, named, outline
from tracekit.report import Report
from tracekit.report.breakdown import TOTAL


def draw(report: Report, chart: Chart) -> None:
    """Draw a panel for each variant that is compared with another."""
    block = breakdown(report)
    if block is None or not block.compared:
        return
    keys = [part.key for part in block.parts]
    panels = chart.panels(len(block.compared), 2.4)
    for axes, name in zip(panels, block.compared, strict=True):
        base = block.baselines[name]
        shown = [part for part in block.parts if block.deltas[part.key][name]]
        height_reached, highest = block.cells[TOTAL][base] / 1000, 0.0
        axes.bar(0, height_reached, width=0.7, **outline())
        axes.text(0, height_reached, thousandths(block.cells[TOTAL][base]), ha="center", va="bottom", fontsize=8)
        for k, part in enumerate(shown, 1):
            delta = block.deltas[part.key][name] / 1000
            axes.bar(k, delta, bottom=height_reached, width=0.7, **looks(keys, part.key, part.colour))
            axes.plot(
                [k - 1.35 if k > 1 else -0.35, k + 0.35],
                [height_reached, height_reached],
                color="#8b949e",
                linewidth=0.6,
            )
            text = thousandths(block.deltas[part.key][name], signed=True)
            axes.text(k, max(height_reached, height_reached + delta), text, ha="center", va="bottom", fontsize=8)
            highest = max(highest, height_reached, height_reached + delta)
            height_reached += delta
        axes.bar(len(shown) + 1, height_reached, width=0.7, **outline())
        axes.text(
            len(shown) + 1, height_reached, thousandths(block.cells[TOTAL][name]), ha="center", va="bottom", fontsize=8
        )
        labels = [named(base), *(part.label for part in shown), named(name)]
        turned: dict[str, Any] = {"rotation": 20, "ha": "right", "rotation_mode": "anchor"} if len(labels) > 5 else {}
        axes.set_xticks(range(len(labels)), labels, **turned)
        axes.set_ylim(0, max(highest, height_reached, block.cells[TOTAL][base] / 1000) * 1.12)
        axes.set_ylabel(block.unit)
        axes.set_title(f"From {named(base)} to {named(name)}")
