"""The terminal UI of a study: its cells and tables; Enter opens the run of a cell, and quitting that leads back."""

from pathlib import Path
from typing import ClassVar

from textual import events
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Horizontal
from textual.widgets import Static

from tracekit.sanitize import sanitize
from tracekit.tui.keys import STUDY_KEYS
from tracekit.tui.lifecycle import leave_with_the_terminal
from tracekit.tui.model.study_cells import Page, StudyPages, study_pages
from tracekit.tui.widgets.below import LOW, Below
from tracekit.tui.widgets.chips import Chips
from tracekit.tui.widgets.filter_line import FilterLine
from tracekit.tui.widgets.grid import Grid
from tracekit.tui.widgets.key_bar import KeyBar


def browse(folder: Path) -> int:
    """Show a study, and the runs of the cells that the user opens, until the user quits. Raises TracekitError."""
    from tracekit.tui.app import build_app

    pages, row = study_pages(folder), 0
    while True:
        app = StudyApp(pages, row)
        app.run()
        if app.chosen is None:
            return app.return_code or 0
        row, opened = app.chosen, build_app([_run_of(pages, app.chosen)])
        opened.run()
        if opened.return_code and opened.failure is None:  # a signal or a bug in tracekit ended it
            return opened.return_code


class StudyApp(App[None]):
    """The pages of a study; `chosen` is the row of the cell whose run the user wants to open."""

    TITLE = "tracekit"
    CSS_PATH = "app.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [*STUDY_KEYS]

    def __init__(self, pages: StudyPages, row: int = 0) -> None:
        super().__init__()
        self._pages = pages
        self._page = 0
        self._begin = row
        self.chosen: int | None = None

    @property
    def page(self) -> Page:
        """The page on screen."""
        return self._pages.pages[self._page]

    @property
    def grid(self) -> Grid:
        """The table of that page."""
        return self.query_one(Grid)

    def compose(self) -> ComposeResult:
        """The study's name, the pages' chips, the table, details of its row, the keys."""
        study = self._pages.study
        with Horizontal(id="top"):
            yield Static("tracekit", id="brand", markup=False)
            yield Static(sanitize(f"study {study.folder.resolve().name}"), id="crumbs", markup=False)
            yield Static(_counts(self._pages), id="state", markup=False)
        yield Chips()
        with Container(id="stage"):
            yield Grid(self.page.sheet, self._begin)
        yield Below()
        yield FilterLine()
        yield KeyBar()

    def on_mount(self) -> None:
        """Give the table the focus."""
        self.animation_level = "none"
        leave_with_the_terminal(self)
        self.grid.styles.height = "1fr"
        self.grid.focus()
        self._show_chips()

    def on_resize(self, event: events.Resize) -> None:
        """Leave fewer lines for the details of the row on a small screen."""
        self.set_class(event.size.height < LOW, "-low")

    def on_grid_moved(self) -> None:
        """Show the row under the cursor in full."""
        self.query_one(Below).show(self.grid.sheet, self.grid.cursor, None)

    def on_grid_entered(self) -> None:
        """Open the run of a cell."""
        self.chosen = self.grid.sheet.row_at(self.grid.cursor)
        self.exit()

    def on_chips_picked(self, message: Chips.Picked) -> None:
        """Go to the page that was clicked."""
        self._go(next(k for k, page in enumerate(self._pages.pages) if page.name == message.name))

    def action_pane(self, key: str) -> None:
        """Go to the page of that digit."""
        number = "1234567890".index(key)
        if number < len(self._pages.pages):
            self._go(number)

    def action_turn(self, way: int) -> None:
        """Go to the next or the previous page, wrapping around at the ends."""
        self._go((self._page + way) % len(self._pages.pages))

    def action_filter(self) -> None:
        """Ask for the words that rows must contain."""
        self.query_one(FilterLine).ask(self.grid)

    def action_widen(self) -> None:
        """Show all rows again."""
        self.query_one(FilterLine).drop(self.grid)

    def _go(self, number: int) -> None:
        if number != self._page:
            self._page = number
            self.grid.change(self.page.sheet)
            self._show_chips()

    def _show_chips(self) -> None:
        digits = [*"1234567890"] + [""] * len(self._pages.pages)
        chips = [(digit, page.name, page.title) for digit, page in zip(digits, self._pages.pages, strict=False)]
        self.query_one(Chips).show(chips, self.page.name)


def _run_of(pages: StudyPages, row: int) -> Path:
    path = pages.runs[row]
    assert path is not None
    return path


def _counts(pages: StudyPages) -> str:
    results = pages.study.results
    succeeded = sum(result.outcome == "ok" for result in results)
    return f"{succeeded} of {len(results)} cells succeeded"
