"""The progress of reading, while it lasts."""

from collections.abc import Sequence
from pathlib import Path

from textual.widgets import Static

from tracekit.sanitize import sanitize
from tracekit.tui.model.opening import Reading

_EVERY = 0.2  # seconds


class Progress(Static):
    """The progress of reading, file by file."""

    def __init__(self, paths: Sequence[Path], reading: Reading) -> None:
        super().__init__(id="reading", markup=False)
        self._named = ", ".join(sanitize(path.name, 60) for path in paths)
        self._reading = reading

    def on_mount(self) -> None:
        """Ask regularly: the reading thread has no time for messages."""
        self.tell()
        self.set_interval(_EVERY, self.tell)

    def tell(self) -> None:
        """Say how far reading has come."""
        self.update("\n".join([f"Reading {self._named} …", "", *self._reading.lines(), "", "Press Esc to leave."]))
