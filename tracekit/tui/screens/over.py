"""What covers a pane: while it is open, the line of keys below shows its keys."""

from typing import TypeVar

from textual.screen import ModalScreen

from tracekit.tui.widgets.key_bar import KeyBar

Result = TypeVar("Result")


class Over(ModalScreen[Result]):
    """A screen over the panes."""

    def on_mount(self) -> None:
        """Its keys, and no longer those of the pane."""
        self._tell_keys()

    def on_unmount(self) -> None:
        """The pane's again."""
        self._tell_keys()

    def _tell_keys(self) -> None:
        for bar in self.app.screen_stack[0].query(KeyBar):
            bar.look()
