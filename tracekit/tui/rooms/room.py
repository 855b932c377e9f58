"""What a room is: a page behind a tab, which shows a part of the view model and explains what is on it."""

from typing import ClassVar

from textual.content import Content
from textual.visual import VisualType
from textual.widgets import Static, TabPane

from tracekit.tui.row_table import Page, RowTable
from tracekit.tui.view_model import ViewModel


class Room(TabPane):
    """One tab. `HELP` says what it is for, `explained` what the things on it mean."""

    HELP: ClassVar[str] = ""

    def __init__(self, number: int, title: str) -> None:
        self.heading = title
        super().__init__(Content(f"{number} {title}"), id=f"room-{number}")  # a str would be read as markup

    def show(self, model: ViewModel, view: str) -> None:
        """Draw it, or draw it anew."""
        raise NotImplementedError

    def explained(self) -> list[tuple[str, str]]:
        """Names on the page and their meanings, for the help."""
        return []

    def enter(self) -> None:
        """Give the keys to the first table, or to the page."""
        inside = [*self.query(RowTable), *self.query(Page)]
        if inside:
            inside[0].focus(scroll_visible=False)


def text(content: VisualType = "", classes: str = "") -> Static:
    """A paragraph that shows what it is given as it stands."""
    return Static(content, markup=False, classes=classes)
