"""A pane's content, piece below piece; tables share the height that the other pieces leave."""

from collections.abc import Iterator

from rich.text import Text
from textual.containers import VerticalScroll
from textual.layout import Layout
from textual.widget import Widget
from textual.widgets import Static

from tracekit.tui.model.breakdown import Breakdown
from tracekit.tui.model.content import Code, Content, Piece, Prose
from tracekit.tui.model.sheet import Sheet
from tracekit.tui.model.strip import Strip
from tracekit.tui.widgets.bars import Bars
from tracekit.tui.widgets.grid import Grid
from tracekit.tui.widgets.shared_height import SharedHeight
from tracekit.tui.widgets.steps import Steps

_LOW = 30  # lines of a screen: below it, there are no bars over a table that says the same
_STYLES = {"lead": "bold", "plain": "", "quiet": "dim"}
_LAYOUT = SharedHeight()


class PaneView(VerticalScroll, can_focus=False):
    """One pane. Its tables and the line of steps get the keys in turn."""

    def __init__(self, content: Content, begin: tuple[int, int]) -> None:
        super().__init__()
        self.content = content
        self._begin = begin

    @property
    def layout(self) -> Layout:
        """From top to bottom."""
        return _LAYOUT

    def compose(self) -> Iterator[Widget]:
        """A widget for each piece."""
        number = 0
        for piece in self.content.pieces:
            if isinstance(piece, Sheet | Code):
                yield from self._table(piece, number)
                number += 1
            else:
                widget = _widget(piece)
                widget.display = not (isinstance(widget, Bars) and self._is_low)
                yield widget

    @property
    def _is_low(self) -> bool:
        return self.app.size.height < _LOW and bool(self.content.sheets)

    def _table(self, piece: Sheet | Code, number: int) -> Iterator[Widget]:
        sheet = piece.sheet if isinstance(piece, Code) else piece
        yield Title(sheet)
        yield Grid(sheet, self._begin[1] if number == self._begin[0] else 0)

    @property
    def grids(self) -> list[Grid]:
        """The tables."""
        return [*self.query(Grid)]

    @property
    def stops(self) -> list[Widget]:
        """What can have the keys, from top to bottom."""
        return [each for each in self.query("Grid, Steps") if each.can_focus]

    def on_mount(self) -> None:
        """The keys go to the table to begin at."""
        stops = self.stops
        if stops:
            first = self.grids[self._begin[0]] if self._begin[0] < len(self.grids) else stops[0]
            self.screen.set_focus(first, scroll_visible=False)  # at once, and not after the pane was drawn without it

    def on_resize(self) -> None:
        """Whether there are bars depends on the screen."""
        for bars in self.query(Bars):
            bars.display = not self._is_low

    def on_grid_changed(self) -> None:
        """Say over each table how many of its rows are shown."""
        for title, grid in zip(self.query(Title), self.grids, strict=True):
            title.tell(grid.sheet)

    def on_grid_left(self, message: Grid.Left) -> None:
        """On to the next table."""
        self._leave(message.grid, message.way)

    def on_steps_left(self, message: Steps.Left) -> None:
        """On to the next table."""
        self._leave(message.widget, message.way)

    def _leave(self, widget: Widget, way: int) -> None:
        """Give the keys to what stands after (1) or before (−1); at the ends, scroll the page."""
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
        self._text = sheet.title
        self.tell(sheet)

    def tell(self, sheet: Sheet) -> None:
        """Say what is left."""
        rows = f"{len(sheet):,} of {sheet.table.num_rows:,} rows hold “{sheet.pattern}”" if sheet.pattern else ""
        said = " · ".join(filter(None, (rows, self._text)))
        self.display = bool(said)
        self.update(Text(said, no_wrap=True, overflow="ellipsis"), layout=False)


def _widget(piece: Piece) -> Widget:
    match piece:
        case Prose():
            return Static(_text(piece), markup=False, classes=f"prose {piece.tone}")
        case Breakdown():
            return Bars(piece)
        case Strip():
            return Steps(piece)
        case _:
            raise TypeError(f"{type(piece).__name__}: is no piece that is drawn")


def _text(piece: Prose) -> Text:
    style = _STYLES[piece.tone]
    lines = [Text(line, style) for line in piece.lines]
    if piece.title and lines:
        lines[0] = Text.assemble((f"{piece.title}: ", "bold"), lines[0])
    return Text("\n").join(lines)
