"""The report as figures, for papers and notebooks: a file per kind of chart, drawn by matplotlib.

A chart is a module here, named after its kind, with `draw(report, chart)`, which draws blocks of the report on an empty
`Chart`; `tracekit plot --kind` offers it. Buckets have the colours of every face, and hatches that tell them apart
without colour.
"""

import pkgutil
from importlib import import_module
from typing import TYPE_CHECKING

from tracekit.errors.asking import NeedsPackageError, NothingToDrawError
from tracekit.report import Report

if TYPE_CHECKING:
    from tracekit.plots.shared import Chart


def kinds() -> list[str]:
    """The names of all charts, without importing them."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.ispkg)


def plot(report: Report, kind: str) -> "Chart":
    """The report as a chart of that kind. Raises NeedsPackageError, and NothingToDrawError if nothing is known."""
    try:
        from tracekit.plots.shared import Chart
    except ImportError:
        raise NeedsPackageError("Plotting", "matplotlib", "plot") from None
    chart = Chart()
    with chart.style():
        import_module(f"{__name__}.{kind}").draw(report, chart)
    if not chart.axes:
        raise NothingToDrawError(kind)
    return chart
