"""What the keys do and what the words mean, made from the declarations of both."""

from collections.abc import Iterable
from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from tracekit.tui.rooms.room import Room


class HelpScreen(ModalScreen[None]):
    """Over the room it explains."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark", "dismiss", "Close", key_display="esc", id="help.close", tooltip="Back")
    ]

    def __init__(self, keys: Iterable[Binding], room: Room | None) -> None:
        super().__init__()
        self._keys = [(key.key_display or key.key, key.tooltip) for key in keys if key.tooltip]
        self._room = room

    def compose(self) -> ComposeResult:
        """The room first, then the keys, then the words."""
        with VerticalScroll(id="help"):
            if self._room is not None:
                yield Static(Text(self._room.heading, "bold underline"), markup=False)
                yield Static(Text(self._room.HELP), markup=False)
            yield Static(Text("\nKeys", "bold underline"), markup=False)
            yield Static(_pairs(self._keys), markup=False)
            if self._room is not None and self._room.explained():
                yield Static(Text("\nWords", "bold underline"), markup=False)
                yield Static(_pairs(self._room.explained()), markup=False)

    def on_mount(self) -> None:
        """Arrows scroll it at once."""
        self.query_one("#help").focus()


def _pairs(pairs: Iterable[tuple[str, str]]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style="bold")
    table.add_column()
    for name, meaning in pairs:
        table.add_row(Text(name), Text(meaning))
    return table
