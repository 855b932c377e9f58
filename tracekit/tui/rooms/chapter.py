"""The room of one chapter of the report: what it says of each variant, block by block."""

from collections.abc import Iterator

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import Static

from tracekit.sanitize import sanitize
from tracekit.tui.breakdown import Breakdown
from tracekit.tui.chapters import Chapter, Column, Entry, Grid, Piece, Prose, Pulses
from tracekit.tui.columns import fitting
from tracekit.tui.paint import Bars, Drawn
from tracekit.tui.paint import Pulses as PulseLines
from tracekit.tui.rooms.room import Room, text
from tracekit.tui.row_table import Page, RowTable
from tracekit.tui.view_model import ViewModel

_MARGIN = 4  # the page's padding, and a scrollbar
_LEAST_ROWS = 8


class ChapterRoom(Room):
    """What one question found, variant by variant."""

    HELP = "What one question found in each variant; – is what the trace does not say."

    def __init__(self, number: int, chapter: Chapter) -> None:
        super().__init__(number, chapter.title)
        self._chapter = chapter
        self._width = 0

    def compose(self) -> ComposeResult:
        """A section for each variant; the tables are filled when they are first looked at."""
        with Page():
            for entry in self._chapter.entries:
                with Vertical(classes="reply"):
                    yield from _widgets(entry)
        yield text("", "uncut")

    def show(self, model: ViewModel, view: str) -> None:
        """Draw it anew where another baseline changed it; switching between wall and host time changes nothing here."""
        chapter = model.chapter(self._chapter.name)
        if chapter is None or chapter == self._chapter:
            return
        if [len(entry.pieces) for entry in chapter.entries] == [len(entry.pieces) for entry in self._chapter.entries]:
            self._chapter = chapter
            self._refill()
        else:
            self._chapter = chapter
            self.run_worker(self.recompose(), exclusive=True)

    def on_resize(self) -> None:
        """Cut texts to the width there is, and share the height among the tables."""
        tables = self._tables()
        for table, _ in tables:
            table.styles.max_height = max(_LEAST_ROWS, self.size.height // len(tables) - 4)
        if self.size.width != self._width:
            self._width = self.size.width
            self._refill()

    def on_data_table_row_highlighted(self, event: RowTable.RowHighlighted) -> None:
        """Tell in full what the row under the cursor has no room for."""
        for table, grid in self._tables():
            if table is event.data_table and table.has_focus and event.cursor_row < len(grid.rows):
                cut = grid.uncut(event.cursor_row, grid.widths(self._room))
                lines = [Text.assemble((title, "bold"), f" {sanitize(value, 2 * self._room)}") for title, value in cut]
                self.query_one(".uncut", Static).update(Text("\n").join(lines))

    def explained(self) -> list[tuple[str, str]]:
        """What the columns mean."""
        return [*self._chapter.meanings.items()]

    @property
    def _room(self) -> int:
        return self._width - _MARGIN

    def _tables(self) -> list[tuple[RowTable, Grid]]:
        grids = [piece for entry in self._chapter.entries for piece in entry.pieces if isinstance(piece, Grid)]
        return [*zip(self.query(RowTable), [grid for grid in grids if grid.rows], strict=False)]

    def _refill(self) -> None:
        for table, grid in self._tables():
            _fill(table, grid, self._room)
        for widget, (entry, prose) in zip(self.query(".sentence").results(Static), _named(self._chapter), strict=False):
            widget.update(_prose(prose, entry))


def _named(chapter: Chapter) -> Iterator[tuple[str, Prose]]:
    """The paragraphs, each with the name that goes before it."""
    for entry in chapter.entries:
        for index, piece in enumerate(entry.pieces):
            if isinstance(piece, Prose):
                yield entry.name if index == 0 else "", piece


def _widgets(entry: Entry) -> Iterator[Widget]:
    if entry.name and not isinstance(entry.pieces[0], Prose):
        yield text(Text(entry.name, "bold"), "name")
    for index, piece in enumerate(entry.pieces):
        yield from _widget(piece, entry.name if index == 0 else "")


def _widget(piece: Piece, name: str) -> Iterator[Widget]:
    match piece:
        case Prose():
            yield text(_prose(piece, name), "sentence")
        case Grid():
            if piece.rows:
                yield RowTable()
            if piece.cut:
                yield text(piece.cut, "cut")
        case Breakdown():
            bars = Bars()
            bars.numbers = piece
            yield bars
            yield Buckets(piece)
        case Pulses():
            pulses = PulseLines()
            pulses.pulses = tuple(piece.pulses)
            yield pulses


class Buckets(Drawn):
    """The numbers of a breakdown."""

    def __init__(self, numbers: Breakdown) -> None:
        super().__init__()
        self._numbers = numbers

    def lines(self, width: int) -> list[Text]:
        """A line for each part."""
        columns = fitting(self._numbers, width)
        widths = [max(map(len, column)) for column in columns]
        return [
            Text("  ").join(
                cell if k == len(widths) - 1 else Text.assemble(cell, " " * (widths[k] - len(cell)))
                for k, cell in enumerate(row)
            )
            for row in zip(*columns, strict=True)
        ]


def _prose(piece: Prose, name: str) -> Text:
    lines = [Text.assemble((name, "bold"), f": {line}") if name else Text(line) for line in piece.lines]
    return Text("\n").join(lines)


def _fill(table: RowTable, grid: Grid, room: int) -> None:
    cursor, widths = table.cursor_row, grid.widths(room)
    table.clear(columns=True)
    for column, width in zip(grid.columns, widths, strict=True):
        table.add_column(_cell(column.title, column, width), width=width)
    for row in grid.rows:
        table.add_row(*map(_cell, row, grid.columns, widths))
    table.move_cursor(row=cursor)


def _cell(value: str, column: Column, width: int) -> Text:
    return Text(sanitize(value, width), justify="right" if column.number else "left")
