"""A few things to choose from, each by a letter: what to copy, what to write, where to go."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from rich.table import Table
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import Static

from tracekit.tui.screens.over import Over


class ChoiceScreen(Over[Any]):
    """Returns the value of the key that was pressed, or None for Esc."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "Close", key_display="esc", id="choice.close", tooltip="Back")
    ]

    def __init__(self, title: str, choices: Sequence[tuple[str, str, Any]]) -> None:
        super().__init__()
        self._title = title
        self._choices = choices  # key, text and value

    def compose(self) -> Iterator[Widget]:
        """One line for each choice."""
        table = Table.grid(padding=(0, 2))
        for key, text, _ in self._choices:
            table.add_row(Text(key, "bold"), Text(text))
        with VerticalScroll(classes="box"):
            yield Static(Text(self._title, "bold underline"), markup=False)
            yield Static(table, markup=False)

    def on_key(self, event: events.Key) -> None:
        """Choose."""
        for key, _, value in self._choices:
            if key in (event.character, event.key):
                event.stop()
                self.dismiss(value)
                return
