"""The name of a file to write, with a proposal that can be edited."""

from collections.abc import Iterator
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import Input, Static

from tracekit.tui.screens.over import Over


class FileNameScreen(Over[str]):
    """Returns the name that was entered, or None for Esc."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", "Write", key_display="⏎", id="file-name.write", tooltip="Write the file"),
        Binding("escape", "dismiss", "Close", key_display="esc", id="file-name.close", tooltip="Back"),
    ]

    def __init__(self, proposal: str) -> None:
        super().__init__()
        self._proposal = proposal

    def compose(self) -> Iterator[Widget]:
        """What is asked for, and the line to edit."""
        with Vertical(classes="box"):
            yield Static(Text("Write to", "bold underline"), markup=False)
            yield Input(self._proposal, select_on_focus=False)

    def on_mount(self) -> None:
        """Begin at the end of the name."""
        super().on_mount()
        self.query_one(Input).focus()

    def on_input_submitted(self, message: Input.Submitted) -> None:
        """Return the name."""
        self.dismiss(message.value.strip())
