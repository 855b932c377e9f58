"""What charts share: an empty chart, its fonts, its colours, and how it becomes a file."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from io import BytesIO
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tracekit.base.names import sanitize
from tracekit.report.blocks import Block
from tracekit.report.breakdown import Breakdown
from tracekit.report.model import Report

_STYLE: dict[Any, Any] = {
    "text.parse_math": False,  # names are not formulas
    "text.usetex": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "tracekit",  # the same report makes the same file
    "pdf.fonttype": 42,
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "hatch.linewidth": 0.5,
    "figure.facecolor": "white",
}
_BUCKET_HATCHES = (
    "",
    "////",
    "\\\\\\\\",
    "xxxx",
    "....",
    "----",
    "||||",
    "++++",
    "oooo",
    "//..",
    "\\\\..",
    "**",
    "xx..",
    "--//",
    "OO",
)
INK = "#30363d"
COLOURS = ("#4b7bec", "#e4572e", "#3a9d5d", "#8854d0", "#a0722a", "#1f7a8c")  # of variants, with their hatches
HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "----")
WIDTH = 7.0  # inches, as wide as a page's text
_NAME = 28  # letters


class Chart(Figure):
    """A figure that notebooks show, and whose layout names from traces cannot break."""

    def __init__(self) -> None:
        super().__init__(figsize=(WIDTH, 3.0), layout="constrained")

    @staticmethod
    def style() -> AbstractContextManager[None]:
        """The settings with which it is drawn and written, whatever the user's settings are."""
        defaults: dict[Any, Any] = {key: value for key, value in mpl.rcParamsDefault.items() if key != "backend"}
        return mpl.rc_context(defaults | _STYLE)

    def panels(self, count: int, height: float, across: bool = False) -> list[Axes]:
        """A number of axes, one below the other or side by side, each of a given height in inches."""
        self.set_size_inches(WIDTH, height * (1 if across else count))
        rows, columns = (1, count) if across else (count, 1)
        return [*self.subplots(rows, columns, squeeze=False).ravel()]

    def content(self, form: str) -> bytes:
        """The file: `svg`, `png` or `pdf`."""
        file = BytesIO()
        undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form, {})
        with self.style():
            self.savefig(file, format=form, dpi=200, metadata=undated)
        return file.getvalue()

    def _repr_svg_(self) -> str:
        return self.content("svg").decode()


def named(text: str) -> str:
    """A name, shortened and made harmless for a chart."""
    return sanitize(text, _NAME)


def looks(keys: Sequence[str], key: str, colour: str) -> dict[str, Any]:
    """The style of a bucket's bars: its colour, and a hatch that no other bucket of the chart has."""
    hatch = _BUCKET_HATCHES[list(keys).index(key) % len(_BUCKET_HATCHES)]
    return {"facecolor": colour, "hatch": hatch, "edgecolor": "white", "linewidth": 0.5}


def outline(colour: str = INK) -> dict[str, Any]:
    """The style of a bar that represents no bucket."""
    return {"facecolor": colour, "edgecolor": "white", "linewidth": 0.5}


def blocks(report: Report) -> list[Block]:
    """Every block of the report, in order."""
    return [block for section in report.sections for block in section.blocks]


def breakdown(report: Report) -> Breakdown | None:
    """The breakdown of wall time or, if that is missing, of host time."""
    return next((block for block in blocks(report) if isinstance(block, Breakdown)), None)
