"""A fast response to Esc, with which the codes of other keys begin, too: only a short wait tells them apart."""

import os
import selectors
from types import SimpleNamespace
from typing import Any

DELAY_MS = 10  # enough for the rest of another key's code even over a slow connection: it is sent in one piece
_WAIT_S = 1.2 * DELAY_MS / 1000


class SoonAgain(selectors.SelectSelector):
    """Waits only a moment for more input after some has arrived.

    Textual decides whether an Esc stands alone when its wait for input ends. Without further input that takes 100 ms,
    whatever ESCDELAY says (8.2.8).
    """

    _came = False

    def select(self, timeout: float | None = None) -> list[Any]:
        """Return the input that has arrived, or nothing once the wait is over."""
        events = super().select(_WAIT_S if self._came else timeout)
        self._came = bool(events)
        return events


def answer_escape_soon() -> None:
    """Shorten the wait; to be called before Textual is imported. A setting of the user's takes precedence."""
    os.environ.setdefault("ESCDELAY", str(DELAY_MS))
    if os.name == "posix":
        from textual.drivers import linux_driver

        replaced = SimpleNamespace(SelectSelector=SoonAgain, EVENT_READ=selectors.EVENT_READ)
        setattr(linux_driver, "selectors", replaced)  # noqa: B010 - it is theirs, and typed as a module
