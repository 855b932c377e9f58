"""The words that a row of a table must hold, asked for in a line that is there only while it has the keys."""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widgets import Input

from tracekit.tui.widgets.grid import Grid


class FilterLine(Input):
    """Filters a table as it is typed; Enter keeps the filter."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", "Keep", key_display="⏎", id="filter.keep", tooltip="Keep the filter"),
        Binding("escape", "drop", "All rows", key_display="esc", id="filter.drop", tooltip="Show all rows again"),
    ]

    def __init__(self) -> None:
        super().__init__(placeholder="words that a row must hold; Enter keeps, Esc shows all", id="filter")
        self._grid: Grid | None = None

    def ask(self, grid: Grid | None) -> None:
        """Ask for the words for that table."""
        self._grid = grid
        self.value = grid.sheet.pattern if grid is not None else ""
        self.display = True
        self.focus()

    def drop(self, grid: Grid | None) -> bool:
        """Show all rows of that table again, or of the one that is being filtered; False where they are shown."""
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
        """The table is no longer on screen."""
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
        """Give the keys back to the table."""
        self.display = False
        if self._grid is not None:
            self._grid.focus()
