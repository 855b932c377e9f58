"""SIGTERM and SIGHUP end a capture as Ctrl-C does: finished work remains, and running children are stopped."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_stopping = threading.Event()
_ASKING = ("SIGINT", "SIGTERM", "SIGHUP")  # by name, because Windows has no SIGHUP


@contextmanager
def by_any_signal() -> Iterator[None]:
    """In this context SIGTERM and SIGHUP raise KeyboardInterrupt, unless they are ignored (nohup) or handled."""
    ours = [number for number in _settable() if signal.getsignal(number) is signal.SIG_DFL]

    def interrupt(number: int, _: FrameType | None) -> None:
        for signal_number in ours:  # a session that ends sends several, and a second one would interrupt the clean-up
            signal.signal(signal_number, signal.SIG_IGN)
        raise KeyboardInterrupt(signal.Signals(number).name)

    for signal_number in ours:
        signal.signal(signal_number, interrupt)
    try:
        yield
    finally:
        for signal_number in ours:
            signal.signal(signal_number, signal.SIG_DFL)


@contextmanager
def deferred() -> Iterator[None]:
    """In this context interrupting signals are deferred: a child process must be known before it can be stopped."""
    received: list[int] = []
    handlers = {number: handler for number in _settable() if callable(handler := signal.getsignal(number))}
    for signal_number in handlers:
        signal.signal(signal_number, lambda number, _: received.append(number))
    try:
        yield
    finally:
        for signal_number, handler in handlers.items():
            signal.signal(signal_number, handler)
        for number in received[:1]:
            signal.raise_signal(number)


@contextmanager
def reaching_threads() -> Iterator[None]:
    """In this context an exception of the main thread also interrupts other threads, at their next `check`.

    Signals reach the main thread only: without this, Ctrl-C would wait for the passes that other threads run.
    """
    _stopping.clear()
    try:
        yield
    except BaseException:
        _stopping.set()
        raise


def check() -> None:
    """Raise KeyboardInterrupt if the main thread was interrupted while other threads work for it."""
    if _stopping.is_set():
        raise KeyboardInterrupt


def _settable() -> list[signal.Signals]:
    if threading.current_thread() is not threading.main_thread():
        return []  # only the main thread may set handlers
    return [getattr(signal, name) for name in _ASKING if hasattr(signal, name)]
