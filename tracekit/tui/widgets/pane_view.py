"""A pane's content, piece below piece; tables share the height that the other pieces leave."""

from collections.abc import Iterator

from rich.text import Text
from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import Static

from tracekit.tui.model.breakdown import Breakdown
from tracekit.tui.model.content import Code, Content, Piece, Prose
from tracekit.tui.model.sheet import Sheet
from tracekit.tui.model.strip import Strip
from tracekit.tui.widgets.bars import Bars
from tracekit.tui.widgets.grid import Grid
from tracekit.tui.widgets.steps import Steps

_LEAST = 6  # lines of a table, if it has that many
_LOW = 30  # lines of a screen: below it, there are no bars over a table that says the same
_STYLES = {"lead": "bold", "plain": "", "quiet": "dim"}

_SETTLES_S = 0.05


class PaneView(VerticalScroll, can_focus=False):
    """One pane. Its tables and the line of steps get the keys in turn."""

    def __init__(self, content: Content, begin: tuple[int, int]) -> None:
        super().__init__()
        self.content = content
        self._begin = begin
        self._shared_with = (-1, -1)  # height of all else, and what that left, when it was last shared

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
            first.focus(scroll_visible=False)

    def on_resize(self) -> None:
        """Share the height anew."""
        for bars in self.query(Bars):
            bars.display = not self._is_low
            bars.refresh(layout=True)  # how high it is depends on the screen
        self.call_after_refresh(self.share_height)

    def share_height(self) -> None:
        """Each table gets what it needs; where that is too much, those that want most get less."""
        grids = self.grids
        if not grids:
            return
        others = sum(
            child.outer_size.height for child in self.children if child.display and not isinstance(child, Grid)
        )
        free = self.size.height - others
        wanted = [grid.height_wanted + bool(grid.max_scroll_x) for grid in grids]
        shares = shared(wanted, free)
        for grid, height in zip(grids, shares, strict=True):
            grid.styles.height = height
        if (others, free) != self._shared_with:  # what was just shown or hidden may not have its height yet
            self._shared_with = others, free
            self.set_timer(_SETTLES_S, self.share_height)

    def tell_rows(self) -> None:
        """Say over each table how many of its rows are shown."""
        for title, grid in zip(self.query(Title), self.grids, strict=True):
            title.tell(grid.sheet)
        self.call_after_refresh(self.share_height)

    def leave(self, widget: Widget, way: int) -> None:
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
        self._text = sheet.title
        self.tell(sheet)

    def tell(self, sheet: Sheet) -> None:
        """Say what is left."""
        rows = f"{len(sheet):,} of {sheet.table.num_rows:,} rows hold “{sheet.pattern}”" if sheet.pattern else ""
        said = " · ".join(filter(None, (rows, self._text)))
        self.display = bool(said)
        self.update(Text(said, no_wrap=True, overflow="ellipsis"))


def shared(wanted: list[int], free: int) -> list[int]:
    """So many lines for each: all that is wanted where there is room, else the most wanting give way first."""
    shares = [*wanted]
    least = [min(want, _LEAST) for want in wanted]
    while sum(shares) > free:
        able = [k for k, share in enumerate(shares) if share > least[k]]
        if not able:
            break
        shares[max(able, key=lambda k: shares[k])] -= 1
    return shares


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
