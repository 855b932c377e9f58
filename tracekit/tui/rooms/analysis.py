"""The room of one analysis: a sentence and a table for each variant."""

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static

from tracekit.sanitize import sanitize
from tracekit.tui.answers_view import Asked, Column, Reply
from tracekit.tui.rooms.room import Room, text
from tracekit.tui.rows import Page, Rows
from tracekit.tui.view import View

_MARGIN = 4  # the page's padding, and a scrollbar
_LEAST_ROWS = 8


class AnalysisRoom(Room):
    """What one question found, variant by variant."""

    HELP = "What one question found in each variant; – is what the trace does not say."

    def __init__(self, number: int, asked: Asked) -> None:
        super().__init__(number, asked.title)
        self._asked = asked
        self._width = 0

    def compose(self) -> ComposeResult:
        """A section for each variant; the tables are filled when they are first looked at."""
        with Page():
            for reply in self._asked.replies:
                with Vertical(classes="reply"):
                    yield text(Text.assemble((reply.name, "bold"), f": {reply.sentence}"), "sentence")
                    if reply.rows:
                        yield Rows()
                    if reply.cut:
                        yield text(reply.cut, "cut")

        yield text("", "uncut")

    def show(self, view: View, clock: str) -> None:
        """Nothing here changes with the baseline or the clock."""

    def on_resize(self) -> None:
        """Cut texts to the width there is, and share the height among the tables."""
        tables = self._tables()
        for table, _ in tables:
            table.styles.max_height = max(_LEAST_ROWS, self.size.height // len(tables) - 4)
        if self.size.width != self._width:
            self._width = self.size.width
            for table, reply in tables:
                _fill(table, reply, self._room)

    def on_data_table_row_highlighted(self, event: Rows.RowHighlighted) -> None:
        """Tell in full what the row under the cursor has no room for."""
        for table, reply in self._tables():
            if table is event.data_table and table.has_focus:
                cut = reply.uncut(event.cursor_row, reply.widths(self._room))
                lines = [Text.assemble((title, "bold"), f" {sanitize(value, 2 * self._room)}") for title, value in cut]
                self.query_one(".uncut", Static).update(Text("\n").join(lines))

    def explained(self) -> list[tuple[str, str]]:
        """What the columns mean."""
        return [*self._asked.meanings.items()]

    @property
    def _room(self) -> int:
        return self._width - _MARGIN

    def _tables(self) -> list[tuple[Rows, Reply]]:
        replies = [reply for reply in self._asked.replies if reply.rows]
        return [*zip(self.query(Rows), replies, strict=True)]


def _fill(table: Rows, reply: Reply, room: int) -> None:
    cursor, widths = table.cursor_row, reply.widths(room)
    table.clear(columns=True)
    for column, width in zip(reply.columns, widths, strict=True):
        table.add_column(_cell(column.title, column, width), width=width)
    for row in reply.rows:
        table.add_row(*map(_cell, row, reply.columns, widths))
    table.move_cursor(row=cursor)


def _cell(value: str, column: Column, width: int) -> Text:
    return Text(sanitize(value, width), justify="right" if column.number else "left")
