"""The words to search for, typed into a line that is visible only while it has the focus."""

from typing import ClassVar, Protocol

from textual.binding import Binding, BindingType
from textual.widgets import Input


class Searched(Protocol):
    """A widget whose rows or events can be searched; `SEARCH` says for what."""

    SEARCH: str

    @property
    def pattern(self) -> str:
        """The words it is searched by."""

    def search(self, pattern: str) -> None:
        """Search by these words."""

    def focus(self, scroll_visible: bool = True) -> object:
        """Give it the focus."""


class FilterLine(Input):
    """Filters a table, or searches a timeline, while the user types; Enter keeps what was typed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", "Keep", key_display="⏎", id="filter.keep", tooltip="Keep the filter"),
        Binding("escape", "drop", "All rows", key_display="esc", id="filter.drop", tooltip="Show all rows again"),
    ]

    def __init__(self) -> None:
        super().__init__(id="filter")
        self._searched: Searched | None = None

    def ask(self, searched: Searched | None) -> None:
        """Ask for the words by which to search this."""
        self._searched = searched
        self.value = searched.pattern if searched is not None else ""
        self.placeholder = searched.SEARCH if searched is not None else ""
        self.display = True
        self.focus()

    def drop(self, searched: Searched | None) -> bool:
        """Show everything of what is being searched, or else of this; False if it is shown already."""
        searched = self._searched if self.display else searched
        if not self.display and (searched is None or not searched.pattern):
            return False
        self._searched = searched
        self._search("")
        self._close()
        return True

    def action_drop(self) -> None:
        """Show all rows again."""
        self.drop(None)

    def forget(self) -> None:
        """Forget what was searched, which is no longer on screen."""
        self._searched, self.display = None, False

    def on_input_changed(self, message: Input.Changed) -> None:
        """Search."""
        message.stop()
        if self.display:
            self._search(message.value)

    def on_input_submitted(self, message: Input.Submitted) -> None:
        """Keep the filter."""
        message.stop()
        self._close()

    def _search(self, pattern: str) -> None:
        if self._searched is not None and self._searched.pattern != pattern:
            self._searched.search(pattern)

    def _close(self) -> None:
        """Give the focus back."""
        self.display = False
        if self._searched is not None:
            self._searched.focus()
