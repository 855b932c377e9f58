"""Where does the time of a step go? A stacked bar for each variant."""

from tracekit.base.units import thousandths
from tracekit.plots.shared import Chart, breakdown, looks, named
from tracekit.report import Report
from tracekit.report.breakdown import TOTAL

_LABELLED = 0.07  # of the longest bar: narrower parts have no room for a figure
_BEHIND = {"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.85}


def draw(report: Report, chart: Chart) -> None:
    """Draw the parts of a step, on one scale."""
    block = breakdown(report)
    if block is None:
        return
    names, keys = block.variants, [part.key for part in block.parts]
    (axes,) = chart.panels(1, 1.2 + 0.45 * len(names))
    longest = max(block.cells[TOTAL].values())
    reached = dict.fromkeys(names, 0.0)
    for part in block.parts:
        values = [block.cells[part.key][name] / 1000 for name in names]
        bars = axes.barh(
            range(len(names)),
            values,
            left=[*reached.values()],
            height=0.7,
            label=part.label,
            **looks(keys, part.key, part.colour),
        )
        texts = [f"{value:.2f}" if value * 1000 > _LABELLED * longest else "" for value in values]
        axes.bar_label(bars, texts, label_type="center", fontsize=7, bbox=_BEHIND)
        reached = {name: reached[name] + value for name, value in zip(names, values, strict=True)}
    for row, name in enumerate(names):
        axes.text(
            reached[name], row, f"  {thousandths(block.cells[TOTAL][name])} {block.unit}", va="center", fontsize=8
        )
    axes.set_yticks(range(len(names)), [named(name) for name in names])
    axes.invert_yaxis()
    axes.set_xlim(0, longest / 1000 * 1.18)
    axes.set_xlabel(block.unit)
    axes.set_title(block.title)
    chart.legend(loc="outside lower center", ncols=min(len(keys), 5), frameon=False, fontsize=8)
