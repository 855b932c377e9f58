"""Esc is answered soon: terminals send it as the beginning of other keys, too, so that it takes a moment to be sure."""

import os
import selectors
from types import SimpleNamespace
from typing import Any

DELAY_MS = 10  # within which the rest of another key arrives, even over a slow line: it is sent in one piece
_WAIT_S = 1.2 * DELAY_MS / 1000


class SoonAgain(selectors.SelectSelector):
    """Waits only a moment for more input after some has come.

    Textual looks whether an Esc stands alone when its wait for input ends, which takes 100 ms where nothing else comes,
    whatever ESCDELAY says (8.2.8).
    """

    _came = False

    def select(self, timeout: float | None = None) -> list[Any]:
        """What has come, in the end nothing."""
        events = super().select(_WAIT_S if self._came else timeout)
        self._came = bool(events)
        return events


def answer_escape_soon() -> None:
    """Before Textual is imported. What the user has set holds."""
    os.environ.setdefault("ESCDELAY", str(DELAY_MS))
    if os.name == "posix":
        from textual.drivers import linux_driver

        replaced = SimpleNamespace(SelectSelector=SoonAgain, EVENT_READ=selectors.EVENT_READ)
        setattr(linux_driver, "selectors", replaced)  # noqa: B010 - it is theirs, and typed as a module
