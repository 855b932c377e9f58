"""What is done to the terminal beside Textual: before anything slow is imported, a bare frame appears on it; an Esc is
answered soon; and when the terminal goes away, no process stays behind and waits for keys that cannot come.
"""

import os
import select
import selectors
import signal
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tracekit.base.names import sanitize

if TYPE_CHECKING:
    from textual.app import App

_ENTER, _LEAVE = "\x1b[?1049h\x1b[2J\x1b[H", "\x1b[?1049l"  # the alternate screen, on which the app will draw
DELAY_MS = 10  # enough for the rest of another key's code even over a slow connection: it is sent in one piece
_WAIT_S = 1.2 * DELAY_MS / 1000
_PATIENCE_S = 0.5  # for an orderly exit
_CODES = {"SIGHUP": 129, "SIGTERM": 143, "SIGINT": 130}  # 128 and the number of the signal, as shells have it


def show_frame(paths: Sequence[Path]) -> None:
    """Say what is being opened, in the line where the app will say it."""
    width = os.get_terminal_size(sys.__stderr__.fileno() if sys.__stderr__ is not None else 2).columns
    names = sanitize("  ".join(path.name for path in paths), max(width - 14, 8))
    _write(f"{_ENTER}\x1b[1m tracekit \x1b[0m {names}\r\n\r\n  Reading {names} …")


def leave_frame() -> None:
    """Restore the terminal's main screen, if the app failed before it could do so."""
    _write(_LEAVE)


def _write(text: str) -> None:
    if sys.__stderr__ is not None:  # Textual draws there, too
        sys.__stderr__.write(text)
        sys.__stderr__.flush()


class SoonAgain(selectors.SelectSelector):
    """Waits only a moment for more input after some has arrived: the codes of other keys begin with Esc, too.

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


def leave_with_the_terminal(app: "App[Any]") -> None:
    """Quit in an orderly way on a signal that asks for it, and immediately if the terminal has hung up.

    Otherwise Textual's input thread would read the end of the input forever.
    """
    if app.is_headless:
        return
    import asyncio  # which Textual has imported; a bare frame need not wait for it

    loop = asyncio.get_running_loop()
    for name, code in _CODES.items():
        if hasattr(signal, name):
            loop.add_signal_handler(getattr(signal, name), partial(app.exit, return_code=code))
    if hasattr(select, "poll") and sys.__stdin__ is not None:
        Thread(target=_watch, args=(sys.__stdin__.fileno(),), daemon=True, name="tracekit-hangup").start()


def _watch(terminal: int) -> None:
    poll = select.poll()
    poll.register(terminal, 0)  # only hang-ups and errors are of interest
    while not any(event_mask & (select.POLLHUP | select.POLLERR | select.POLLNVAL) for _, event_mask in poll.poll()):
        pass
    time.sleep(_PATIENCE_S)
    os._exit(_CODES["SIGHUP"])
