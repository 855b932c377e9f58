"""Below the picture: what is selected, what the colours stand for, and how the variants are locked."""

from collections.abc import Iterator

from rich.cells import cell_len

from tracekit.timeline import CATEGORIES
from tracekit.tui.timeline.canvas import Inkwell, Line, fitted
from tracekit.tui.timeline.detail import facts, title
from tracekit.tui.timeline.palette import Ink, Run
from tracekit.tui.timeline.state import State
from tracekit.units import duration

_ROOMY = 14  # lines of the widget: with fewer, there is no legend


def height(room: int) -> int:
    """How many of the widget's lines the footer takes."""
    return 2 if room >= _ROOMY else 1


def draw(state: State, width: int, room: int, inkwell: Inkwell) -> list[list[Run]]:
    """What is selected, and the legend if the widget is high enough for it."""
    return [_selected(state, width, inkwell), _legend(state, width, inkwell)][: height(room)]


def _selected(state: State, width: int, inkwell: Inkwell) -> list[Run]:
    """A description of the selection, or else how much time is on the screen."""
    palette = inkwell.palette
    line = Line.filled(" ", inkwell.plain(palette.foreground), width, inkwell)
    if state.note or not state.is_selected:
        line.write(state.note or _extent(state), 1, width - 2, inkwell.plain(palette.muted))
        return line.runs()
    name = fitted(title(state.index, state.chosen), max(width // 3, 10))
    line.write(name, 1, width - 2, inkwell.plain(palette.accent, bold=True))
    at = cell_len(name) + 3
    said = " · ".join(filter(None, (state.place, *facts(state.index, state.chosen))))
    line.write(said, at, width - at - 1, inkwell.plain(palette.foreground))
    return line.runs()


def _extent(state: State) -> str:
    locked = "share of the step" if state.view.lock == "share" else "time into the step"
    return f"{duration(state.view.span)} on the screen" + (f" ⇅ by {locked}" if len(state.view.variants) > 1 else "")


def _legend(state: State, width: int, inkwell: Inkwell) -> list[Run]:
    """The kinds that occur, as many as fit, in the same order as in every face."""
    palette = inkwell.palette
    line = Line.filled(" ", inkwell.plain(palette.muted), width, inkwell)
    at = 1
    for code in _occurring(state):
        category = CATEGORIES[code]
        if at + len(category.label) + 2 > width:
            break
        sign = category.pattern if palette.patterns else "■"
        line.write(sign, at, 1, inkwell.number(Ink(category.colour, palette.background)))
        line.write(category.label, at + 2, len(category.label), inkwell.plain(palette.muted))
        at += len(category.label) + 4
    extent = _extent(state)
    if state.is_selected and at + len(extent) < width:
        line.write(extent, width - len(extent) - 1, len(extent), inkwell.plain(palette.muted))
    return line.runs()


def _occurring(state: State) -> Iterator[int]:
    codes = sorted(
        {
            code
            for index in state.view.variants
            for group in index.groups
            for lane in group.lanes
            for code in lane.categories
        }
    )
    labels = {CATEGORIES[code].label: code for code in reversed(codes)}
    yield from sorted(labels.values())
