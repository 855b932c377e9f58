"""A word at the right of the top line, which is asked for again for as long as it is about to change."""

from collections.abc import Callable

from textual.timer import Timer
from textual.widgets import Static

_SOON_S = 0.25  # an answer that comes sooner is not said to be worked out


class Status(Static):
    """`ask` gives the text, and whether there will be another one soon."""

    def __init__(self, ask: Callable[[], tuple[str, bool]]) -> None:
        super().__init__("", id="state", markup=False)
        self._ask, self._said = ask, ""
        self._timer: Timer | None = None

    def show(self) -> None:
        """Say it now."""
        if self._timer is not None:
            self._timer.stop()
        text, will_change = self._ask()
        if text != self._said:
            self._said = text
            self.update(text)
        if will_change:
            self.show_soon()

    def show_soon(self) -> None:
        """Say it if it still holds in a moment."""
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(_SOON_S, self.show)
