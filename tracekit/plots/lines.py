"""What do the most expensive lines of yours cost? A group of bars for each line, a bar for each variant."""

from tracekit.faces.shared.cells import texts
from tracekit.plots.shared import COLOURS, HATCHES, Chart, blocks, named, outline
from tracekit.report import Report
from tracekit.report.blocks import Table
from tracekit.trace.schema import metadata

_MAX_LINES = 12  # lines


def draw(report: Report, chart: Chart) -> None:
    """Draw the rows of the report's table, the most expensive first."""
    table = next((b.rows for b in blocks(report) if isinstance(b, Table) and b.name == "lines"), None)
    if table is None:
        return
    rows = table.slice(0, _MAX_LINES)
    line, *other_fields = rows.schema
    costs = [field for field in other_fields if metadata(field, "unit") == "ns" and not metadata(field, "role")]
    costs = [field for field in costs if not field.name.startswith("Δ")]
    if not costs or not len(rows):
        return
    (axes,) = chart.panels(1, 1.0 + (0.12 + 0.16 * len(costs)) * len(rows))
    height = 0.8 / len(costs)
    for k, field in enumerate(costs):
        positions = [row + k * height for row in range(len(rows))]
        values = [(value or 0.0) / 1e6 for value in rows[field.name].to_pylist()]
        look = outline(COLOURS[k % len(COLOURS)]) | {"hatch": HATCHES[k % len(HATCHES)]}
        axes.barh(positions, values, height=height, label=named(field.name.removesuffix("_ns")), **look)
    middle = 0.4 - height / 2
    labels = [named(text) for text in texts(rows[line.name].to_pylist(), line)]
    axes.set_yticks([row + middle for row in range(len(rows))], labels)
    axes.invert_yaxis()
    axes.set_xlabel("ms of a step")
    axes.set_title("What each line of yours costs")
    chart.legend(loc="outside lower center", ncols=min(len(costs), 4), frameon=False, fontsize=8)
