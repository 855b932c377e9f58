"""Whoever asks a capture to end gets what Ctrl-C gives: what is finished is kept, what runs is stopped."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_ASKING = ("SIGINT", "SIGTERM", "SIGHUP")  # by their names: Windows has no SIGHUP


@contextmanager
def by_any_signal() -> Iterator[None]:
    """While entered, SIGTERM and SIGHUP raise KeyboardInterrupt, except where they are ignored (nohup) or handled."""
    ours = [each for each in _settable() if signal.getsignal(each) is signal.SIG_DFL]

    def interrupt(number: int, _: FrameType | None) -> None:
        for each in ours:  # the end of a session sends several: one is enough, and the next would stop the tidying up
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt(signal.Signals(number).name)

    for each in ours:
        signal.signal(each, interrupt)
    try:
        yield
    finally:
        for each in ours:
            signal.signal(each, signal.SIG_DFL)


@contextmanager
def held_back() -> Iterator[None]:
    """While entered, what would interrupt waits: a process just begun must be known before it can be stopped."""
    came: list[int] = []
    handlers = {each: handler for each in _settable() if callable(handler := signal.getsignal(each))}
    for each in handlers:
        signal.signal(each, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for each, handler in handlers.items():
            signal.signal(each, handler)
        for number in came[:1]:
            signal.raise_signal(number)


def _settable() -> list[signal.Signals]:
    if threading.current_thread() is not threading.main_thread():
        return []  # only that one may set handlers
    return [getattr(signal, name) for name in _ASKING if hasattr(signal, name)]
