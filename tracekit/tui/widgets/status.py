"""A word at the right of the top line, which is refreshed for as long as it is about to change."""

from collections.abc import Callable

from textual.timer import Timer
from textual.widgets import Static

_SOON_S = 0.25  # an answer that arrives sooner is not announced as being in preparation


class Status(Static):
    """`ask` returns the text, and whether it will change soon."""

    def __init__(self, ask: Callable[[], tuple[str, bool]]) -> None:
        super().__init__("", id="state", markup=False)
        self._ask, self._said = ask, ""
        self._timer: Timer | None = None

    def show(self) -> None:
        """Show the text now."""
        if self._timer is not None:
            self._timer.stop()
        text, will_change = self._ask()
        if text != self._said:
            self._said = text
            self.update(text)
        if will_change:
            self.show_soon()

    def show_soon(self) -> None:
        """Show the text if it is still true in a moment."""
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(_SOON_S, self.show)
