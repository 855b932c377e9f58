"""A screen that covers the panes: while it is open, the line of keys below shows its keys."""

from typing import TypeVar

from textual.screen import ModalScreen

from tracekit.tui.widgets.key_bar import KeyBar

Result = TypeVar("Result")


class Over(ModalScreen[Result]):
    """A screen over the panes."""

    def on_mount(self) -> None:
        """Show its keys in place of the pane's."""
        self._tell_keys()

    def on_unmount(self) -> None:
        """Show the pane's keys again."""
        self._tell_keys()

    def _tell_keys(self) -> None:
        for bar in self.app.screen_stack[0].query(KeyBar):
            bar.look()
