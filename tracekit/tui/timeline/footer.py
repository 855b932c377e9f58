"""Below the picture: what is selected, what the colours stand for, and to what the variants are locked."""

from collections.abc import Iterator

from tracekit.timeline import CATEGORIES
from tracekit.tui.timeline.canvas import Inkwell, Line
from tracekit.tui.timeline.detail import facts, title
from tracekit.tui.timeline.palette import Ink, Run
from tracekit.tui.timeline.state import State
from tracekit.units import duration

_ROOMY = 14  # lines of the widget from which on there is room for more than one line below the picture


def height(room: int) -> int:
    """How many lines it takes of those that the widget has."""
    return 3 if room >= _ROOMY else 1


def draw(state: State, width: int, room: int, inkwell: Inkwell) -> list[list[Run]]:
    """What is selected in two lines, and the legend; on a low widget the facts alone."""
    selected = [_selected(state, width, inkwell), _facts(state, width, inkwell)]
    return [*selected, _legend(state, width, inkwell)] if height(room) > 1 else selected[1:]


def _selected(state: State, width: int, inkwell: Inkwell) -> list[Run]:
    palette = inkwell.palette
    line = Line.filled(" ", inkwell.plain(palette.foreground), width, inkwell)
    if state.is_selected:
        line.write(title(state.index, state.instance), 1, width - 2, inkwell.plain(palette.accent, bold=True))
    return line.runs()


def _facts(state: State, width: int, inkwell: Inkwell) -> list[Run]:
    """What there is to say of the selection; at the right how much is on the screen."""
    view, palette = state.view, inkwell.palette
    line = Line.filled(" ", inkwell.plain(palette.muted), width, inkwell)
    locked = " ⇅ by share of the step" if view.lock == "share" else " ⇅ by time"
    right = f"{duration(view.span)} on the screen{locked if len(view.variants) > 1 else ''}"
    said = state.note or (" · ".join(facts(view, state.variant, state.instance)) if state.is_selected else "")
    line.write(said, 1, width - 2 - (len(right) + 2 if not said else 0), inkwell.plain(palette.foreground))
    if len(said) + len(right) + 4 <= width:
        line.write(right, width - len(right) - 1, len(right), inkwell.plain(palette.muted))
    return line.runs()


def _legend(state: State, width: int, inkwell: Inkwell) -> list[Run]:
    """The kinds that occur, as many as there is room for, in the order in which every face has them."""
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
