"""A pane's content, piece below piece; tables share the height that the other pieces leave."""

from collections.abc import Iterator
from typing import Any

from rich.text import Text
from textual.containers import VerticalScroll
from textual.layout import Layout
from textual.widget import Widget
from textual.widgets import Static

from tracekit.tui.model.bucket_table import BucketTable
from tracekit.tui.model.content import Code, Content, Prose
from tracekit.tui.model.sheet import Sheet
from tracekit.tui.model.strip import StepStrip
from tracekit.tui.widgets.bars import Bars
from tracekit.tui.widgets.grid import Grid
from tracekit.tui.widgets.shared_height import SharedHeight
from tracekit.tui.widgets.steps import Steps

_LOW = 30  # lines of a screen: below it, there are no bars over a table that says the same
_FEW = 8  # rows of tables that leave room for words on such a screen
_STYLES = {"lead": "bold", "plain": "", "quiet": "dim"}
_LAYOUT = SharedHeight()


class PaneView(VerticalScroll, can_focus=False):
    """One pane after another. Its tables and the line of steps get the keys in turn.

    Each pane is shown in the widgets of those before it, and what it has no use for is hidden: to make widgets anew
    takes three times as long as to draw the screen.
    """

    def __init__(self) -> None:
        super().__init__()
        self.content = Content(())
        self._shown: list[Widget] = []  # what shows the content, from top to bottom

    @property
    def layout(self) -> Layout:
        """From top to bottom."""
        return _LAYOUT

    async def show(self, content: Content, begin: tuple[int, int]) -> None:
        """Show an answer; the keys go to the table to begin at."""
        self.content, self._shown = content, []
        spare = [*self.children]
        for kind, piece in _parts(content):
            at = next((k for k, widget in enumerate(spare) if type(widget) is kind), len(spare))
            _hide(spare[:at])
            self._shown.append(_showing(spare[at], piece) if at < len(spare) else kind(piece))
            del spare[: at + 1]
        _hide(spare)
        new = [widget for widget in self._shown if widget.parent is None]
        if new:
            await self.mount(*new)
        self.on_resize()
        self.scroll_to(y=0, animate=False, immediate=True)
        self._begin(*begin)

    def _begin(self, table: int, row: int) -> None:
        first = self.stops[:1]
        if 0 <= table < len(self.grids):
            self.grids[table].start_at(row)
            first = [self.grids[table]]
        self.screen.set_focus(first[0] if first else None, scroll_visible=False)

    @property
    def grids(self) -> list[Grid]:
        """The tables."""
        return [each for each in self._shown if isinstance(each, Grid)]

    @property
    def stops(self) -> list[Widget]:
        """What can have the keys, from top to bottom."""
        return [each for each in self._shown if each.can_focus]

    def on_resize(self) -> None:
        """Where there is little room, the tables have it."""
        is_low = self.app.size.height < _LOW and bool(self.content.sheets)
        is_long = sum(map(len, self.content.sheets)) > _FEW
        for each in self._shown:
            if isinstance(each, Bars):
                each.display = not is_low
            elif each.has_class("quiet"):
                each.display = not (is_low and is_long)

    def on_grid_changed(self, message: Grid.Changed) -> None:
        """Say over the table how many of its rows are shown."""
        title = self._shown[self._shown.index(message.grid) - 1]
        _showing(title, message.grid.sheet)

    def on_grid_left(self, message: Grid.Left) -> None:
        """On to the next table."""
        self._leave(message.grid, message.way)

    def on_steps_left(self, message: Steps.Left) -> None:
        """On to the next table."""
        self._leave(message.widget, message.way)

    def _leave(self, widget: Widget, way: int) -> None:
        """Give the keys to what comes after (1) or before (−1); at the ends, scroll the page."""
        stops = self.stops
        at = stops.index(widget) + way
        if 0 <= at < len(stops):
            stops[at].focus()
            if isinstance(grid := stops[at], Grid):
                grid.go(0 if way > 0 else len(grid.sheet))
        else:
            self.scroll_relative(y=3 * way, animate=False)


class Title(Static):
    """The heading of a table, with how many of its rows a filter leaves; without one where there is none to say."""

    def __init__(self, sheet: Sheet) -> None:
        super().__init__(markup=False, classes="title")
        self.show(sheet)

    def show(self, sheet: Sheet) -> None:
        """Say what is left."""
        rows = f"{len(sheet):,} of {sheet.table.num_rows:,} rows hold “{sheet.pattern}”" if sheet.pattern else ""
        said = " · ".join(filter(None, (rows, sheet.title)))
        self.display = bool(said)
        self.update(Text(said, no_wrap=True, overflow="ellipsis"), layout=False)


class Paragraphs(Static):
    """Sentences."""

    def __init__(self, piece: Prose) -> None:
        super().__init__(markup=False)
        self.show(piece)

    def show(self, piece: Prose) -> None:
        """Show others."""
        self.set_classes(f"prose {piece.tone}")
        self.update(_text(piece))


def _parts(content: Content) -> Iterator[tuple[Any, Any]]:
    """Which widgets show it, and what of it each of them shows."""
    for piece in content.pieces:
        match piece:
            case Sheet():
                yield from ((Title, piece), (Grid, piece))
            case Code():
                yield from ((Title, piece.sheet), (Grid, piece.sheet))
            case Prose():
                yield Paragraphs, piece
            case BucketTable():
                yield Bars, piece
            case StepStrip():
                yield Steps, piece
            case _:
                raise TypeError(f"{type(piece).__name__}: is no piece that is drawn")


def _showing(widget: Any, piece: object) -> Widget:
    widget.display = True
    widget.show(piece)
    return widget  # type: ignore[no-any-return]


def _hide(widgets: list[Widget]) -> None:
    for widget in widgets:
        widget.display = False


def _text(piece: Prose) -> Text:
    style = _STYLES[piece.tone]
    lines = [Text(line, style) for line in piece.lines]
    if piece.title and lines:
        lines[0] = Text.assemble((f"{piece.title}: ", "bold"), lines[0])
    return Text("\n").join(lines)
