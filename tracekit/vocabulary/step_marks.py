"""`tracekit.step()`, with which a script marks the end of a step. Outside of a capture it does nothing."""

from collections.abc import Callable

_listeners: list[Callable[[], None]] = []


def step() -> None:
    """Mark the end of a training step; what follows belongs to the next one."""
    for listener in _listeners:
        listener()


def listen(listener: Callable[[], None]) -> None:
    """Call `listener` at the end of each step."""
    _listeners.append(listener)


def stop_listening(listener: Callable[[], None]) -> None:
    """Stop calling `listener`; does nothing if it was not registered."""
    if listener in _listeners:
        _listeners.remove(listener)
