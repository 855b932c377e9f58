"""An app of pages, each a table: chips that lead to them, the table, the row under the cursor in full, and the keys."""

from collections.abc import Iterator
from typing import ClassVar

import pyarrow as pa
from textual import events
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Horizontal
from textual.widget import Widget
from textual.widgets import Static

from tracekit.base.names import sanitize
from tracekit.report.blocks import Sentences, Table
from tracekit.report.section import Section
from tracekit.trace.schema import column
from tracekit.tui.keys import STUDY_KEYS
from tracekit.tui.model.sheet import Sheet
from tracekit.tui.terminal import leave_with_the_terminal
from tracekit.tui.widgets.below import LOW, Below
from tracekit.tui.widgets.grid import Grid
from tracekit.tui.widgets.lines import Chips, FilterLine, KeyBar


def sheets(section: Section) -> Iterator[Sheet]:
    """The tables of a section; if it has none, its sentences as a table."""
    tables = [block for block in section.blocks if isinstance(block, Table) and len(block.rows)]
    for table in tables:
        title = section.title if table is tables[0] else table.name.replace("_", " ")
        yield Sheet(table.name, table.rows, sanitize(title))
    sentences = [line for block in section.blocks if isinstance(block, Sentences) for line in block.lines]
    if sentences and not tables:
        rows = pa.table({"sentence": sentences}, schema=pa.schema([column("sentence", pa.string(), section.title)]))
        yield Sheet(section.id, rows, sanitize(section.title))


class PagedApp(App[None]):
    """The pages, of which `number` is on screen; `chosen` is the row of it that the user wants to open."""

    TITLE = "tracekit"
    CSS_PATH = "app.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [*STUDY_KEYS]

    def __init__(self, name: str, pages: list[Sheet], row: int = 0, page: int = 0) -> None:
        super().__init__()
        self._opened, self.pages = name, pages
        self.number, self._begin = page, row
        self.chosen: int | None = None

    @property
    def state(self) -> str:
        """What the upper right corner says."""
        return ""

    @property
    def page(self) -> Sheet:
        """The page on screen."""
        return self.pages[self.number]

    @property
    def grid(self) -> Grid:
        """The table of that page."""
        return self.query_one(Grid)

    def above(self) -> Iterator[Widget]:
        """What stands between the chips and the table, whichever page is on screen."""
        yield from ()

    def compose(self) -> ComposeResult:
        """What was opened, the pages' chips, the table, details of its row, the keys."""
        with Horizontal(id="top"):
            yield Static("tracekit", id="brand", markup=False)
            yield Static(sanitize(self._opened), id="crumbs", markup=False)
            yield Static(self.state, id="state", markup=False)
        yield Chips()
        yield from self.above()
        with Container(id="stage"):
            yield Grid(self.page, self._begin)
        yield Below()
        yield FilterLine()
        yield KeyBar()

    def on_mount(self) -> None:
        """Give the table the focus."""
        self.animation_level = "none"
        leave_with_the_terminal(self)
        self.grid.styles.height = "1fr"
        self.grid.focus()
        self.show_chips()

    def on_resize(self, event: events.Resize) -> None:
        """Leave fewer lines for the details of the row on a small screen."""
        self.set_class(event.size.height < LOW, "-low")

    def on_grid_moved(self) -> None:
        """Show the row under the cursor in full."""
        self.query_one(Below).show(self.grid.sheet, self.grid.cursor, None)

    def on_grid_entered(self) -> None:
        """Open what the row leads to."""
        self.chosen = self.grid.sheet.row_at(self.grid.cursor)
        self.exit()

    def on_chips_picked(self, message: Chips.Picked) -> None:
        """Go to the page that was clicked."""
        self._go(next(k for k, page in enumerate(self.pages) if page.name == message.name))

    def action_pane(self, key: str) -> None:
        """Go to the page of that digit."""
        number = "1234567890".index(key)
        if number < len(self.pages):
            self._go(number)

    def action_turn(self, way: int) -> None:
        """Go to the next or the previous page, wrapping around at the ends."""
        self._go((self.number + way) % len(self.pages))

    def action_filter(self) -> None:
        """Ask for the words that rows must contain."""
        self.query_one(FilterLine).ask(self.grid)

    def action_widen(self) -> None:
        """Show all rows again."""
        self.query_one(FilterLine).drop(self.grid)

    def _go(self, number: int) -> None:
        if number != self.number:
            self.number = number
            self.grid.change(self.page)
            self.show_chips()

    def show_chips(self) -> None:
        """Show the pages' titles with their keys."""
        digits = [*"1234567890"] + [""] * len(self.pages)
        chips = [(digit, page.name, page.title) for digit, page in zip(digits, self.pages, strict=False)]
        self.query_one(Chips).show(chips, self.page.name)
