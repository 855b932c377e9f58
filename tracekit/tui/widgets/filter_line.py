"""The words that rows of a table must contain, typed into a line that is visible only while it has the focus."""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widgets import Input

from tracekit.tui.widgets.grid import Grid


class FilterLine(Input):
    """Filters a table while the user types; Enter keeps the filter."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", "Keep", key_display="⏎", id="filter.keep", tooltip="Keep the filter"),
        Binding("escape", "drop", "All rows", key_display="esc", id="filter.drop", tooltip="Show all rows again"),
    ]

    def __init__(self) -> None:
        super().__init__(placeholder="words that a row must contain; Enter keeps, Esc shows all", id="filter")
        self._grid: Grid | None = None

    def ask(self, grid: Grid | None) -> None:
        """Ask for the words by which to filter this table."""
        self._grid = grid
        self.value = grid.sheet.pattern if grid is not None else ""
        self.display = True
        self.focus()

    def drop(self, grid: Grid | None) -> bool:
        """Show all rows of the table that is being filtered, or else of this one; False if it shows them already."""
        grid = self._grid if self.display else grid
        if not self.display and (grid is None or not grid.sheet.pattern):
            return False
        self._grid = grid
        self._filter("")
        self._close()
        return True

    def action_drop(self) -> None:
        """Show all rows again."""
        self.drop(None)

    def forget(self) -> None:
        """Forget the table, which is no longer on screen."""
        self._grid, self.display = None, False

    def on_input_changed(self, message: Input.Changed) -> None:
        """Filter."""
        message.stop()
        if self.display:
            self._filter(message.value)

    def on_input_submitted(self, message: Input.Submitted) -> None:
        """Keep the filter."""
        message.stop()
        self._close()

    def _filter(self, pattern: str) -> None:
        if self._grid is not None and self._grid.sheet.pattern != pattern:
            self._grid.change(self._grid.sheet.filtered(pattern))

    def _close(self) -> None:
        """Give the focus back to the table."""
        self.display = False
        if self._grid is not None:
            self._grid.focus()
