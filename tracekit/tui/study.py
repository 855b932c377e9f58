"""The terminal UI of a study: its cells and tables; Enter opens the run of a cell, and leaving that leads back."""

from pathlib import Path
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal
from textual.widgets import Input, Static

from tracekit.errors import TracekitError
from tracekit.sanitize import sanitize
from tracekit.tui.lifecycle import leave_with_the_terminal
from tracekit.tui.model.study_cells import Page, StudyPages, study_pages
from tracekit.tui.widgets.below import Below
from tracekit.tui.widgets.chips import Chips
from tracekit.tui.widgets.grid import Grid
from tracekit.tui.widgets.key_bar import KeyBar

_LOW = 36  # lines of a screen: below, what the row is gets few of them


def browse(folder: Path) -> int:
    """Show a study, and the runs of the cells that are opened, until the user leaves. Raises TracekitError."""
    from tracekit.tui.app import build_app

    pages, row = study_pages(folder), 0
    while True:
        app = StudyApp(pages, row)
        app.run()
        if app.chosen is None:
            return app.return_code or 0
        row, opened = app.chosen, build_app([_run_of(pages, app.chosen)])
        opened.run()
        if isinstance(opened.failure, Exception) and not isinstance(opened.failure, TracekitError):
            raise opened.failure


class StudyApp(App[None]):
    """The pages of a study; `chosen` is the row of the cell whose run is to be opened."""

    TITLE = "tracekit"
    CSS_PATH = "app.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit", id="quit", tooltip="Leave; so does Ctrl-C"),
        Binding("ctrl+c", "quit", id="interrupt", show=False, priority=True, system=True),
        Binding(
            "slash", "filter", "Filter", key_display="/", id="filter", tooltip="Only rows that contain these words"
        ),
        Binding("escape", "all_rows", "All rows", key_display="esc", id="widen", tooltip="Show all rows again"),
        Binding("left_square_bracket", "turn(-1)", id="previous", show=False),
        Binding("right_square_bracket", "turn(1)", "Next page", key_display="[ ]", id="next"),
        *(Binding(str((k + 1) % 10), f"page({k})", id=f"page-{k + 1}", show=False) for k in range(10)),
    ]

    def __init__(self, pages: StudyPages, row: int = 0) -> None:
        super().__init__()
        self._pages = pages
        self._at = 0
        self._begin = row
        self.chosen: int | None = None

    @property
    def page(self) -> Page:
        """The one on screen."""
        return self._pages.pages[self._at]

    @property
    def grid(self) -> Grid:
        """Its table."""
        return self.query_one(Grid)

    def compose(self) -> ComposeResult:
        """The study's name, the pages' chips, the table, what its row is, the keys."""
        study = self._pages.study
        with Horizontal(id="top"):
            yield Static("tracekit", id="brand", markup=False)
            yield Static(sanitize(f"study {study.folder.resolve().name}"), id="crumbs", markup=False)
            yield Static(_counts(self._pages), id="state", markup=False)
        yield Chips()
        with Container(id="stage"):
            yield Grid(self.page.sheet, self._begin)
        yield Below(id="below")
        yield Input(placeholder="words that a row must contain; Enter keeps, Esc shows all", id="filter")
        yield KeyBar()

    def on_mount(self) -> None:
        """The table has the keys."""
        self.animation_level = "none"
        leave_with_the_terminal(self)
        self.set_class(self.size.height < _LOW, "-low")
        self.grid.styles.height = "1fr"
        self.grid.focus()
        self._tell()

    def on_grid_moved(self) -> None:
        """Tell the row under the cursor in full."""
        self.query_one(Below).show(self.grid.sheet, self.grid.cursor, None, lambda _: None)

    def on_grid_entered(self) -> None:
        """Open the run of a cell."""
        if self.page.name != "cells":
            return
        row = self.grid.sheet.row_at(self.grid.cursor)
        if self._pages.runs[row] is None:
            self.notify("This cell has no run: nothing was measured.", severity="warning")
        else:
            self.chosen = row
            self.exit()

    def on_chips_picked(self, message: Chips.Picked) -> None:
        """Go to the page that was clicked."""
        self._go(next(k for k, page in enumerate(self._pages.pages) if page.name == message.name))

    def action_page(self, number: int) -> None:
        """Go to the page of that number."""
        if number < len(self._pages.pages):
            self._go(number)

    def action_turn(self, way: int) -> None:
        """Go to the next page, or the one before, round and round."""
        self._go((self._at + way) % len(self._pages.pages))

    def action_filter(self) -> None:
        """Ask for the words that a row must hold."""
        field = self.query_one("#filter", Input)
        field.display = True
        field.value = self.grid.sheet.pattern
        field.focus()

    def action_all_rows(self) -> None:
        """Show all rows again."""
        self.query_one("#filter", Input).display = False
        self._filter("")
        self.grid.focus()

    def on_input_changed(self, message: Input.Changed) -> None:
        """Filter as it is typed."""
        if message.input.display:
            self._filter(message.value)

    def on_input_submitted(self) -> None:
        """Keep the filter."""
        self.query_one("#filter", Input).display = False
        self.grid.focus()

    def _filter(self, pattern: str) -> None:
        if self.grid.sheet.pattern != pattern:
            self.grid.change(self.grid.sheet.filtered(pattern))

    def _go(self, number: int) -> None:
        if number != self._at:
            self._at = number
            self.grid.change(self.page.sheet)
            self._tell()

    def _tell(self) -> None:
        chips = [(page.name, page.title) for page in self._pages.pages]
        self.query_one(Chips).show(chips, self.page.name)


def _run_of(pages: StudyPages, row: int) -> Path:
    path = pages.runs[row]
    assert path is not None
    return path


def _counts(pages: StudyPages) -> str:
    results = pages.study.results
    succeeded = sum(each.outcome == "ok" for each in results)
    return f"{succeeded} of {len(results)} cells succeeded"
