"""Quitting when the terminal goes away: no process may stay behind and wait for keys that cannot come."""

import asyncio
import os
import select
import signal
import sys
import time
from functools import partial
from threading import Thread
from typing import Any

from textual.app import App

_PATIENCE = 0.5  # seconds for an orderly exit
_CODES = {"SIGHUP": 129, "SIGTERM": 143, "SIGINT": 130}  # 128 and the number of the signal, as shells have it


def leave_with_the_terminal(app: App[Any]) -> None:
    """Quit in an orderly way on a signal that asks for it, and immediately if the terminal has hung up.

    Otherwise Textual's input thread would read the end of the input forever.
    """
    if app.is_headless:
        return
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
    time.sleep(_PATIENCE)
    os._exit(_CODES["SIGHUP"])
