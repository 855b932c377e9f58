"""Where a script says itself that a step ends: `tracekit.step()`. Without a capture that listens, it does nothing."""

from collections.abc import Callable

_listeners: list[Callable[[], None]] = []


def step() -> None:
    """Say that a step of training ends here; what comes is the next."""
    for listener in _listeners:
        listener()


def listen(listener: Callable[[], None]) -> None:
    """Call that at each."""
    _listeners.append(listener)


def listen_no_more(listener: Callable[[], None]) -> None:
    """Where it was not listening, nothing happens."""
    if listener in _listeners:
        _listeners.remove(listener)
