"""What may be seen of an input: everything or, while a report is confidential, what a filter leaves of it.

Whatever reads an input – a trace, a lines file, a run, a watch's record – passes what it has read through `current()`
before anyone else sees it, so that nobody who shows something can forget to hide it. Paths stay as they are, because
files are read again; whoever shows one asks `shown_path`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol


class Filter(Protocol):
    """What replaces secrets, in what the layers above this one read."""

    def trace(self, trace: Any) -> Any:
        """A trace without its secrets."""

    def lines(self, lines: Any) -> Any:
        """A lines file without its secrets."""

    def run(self, run: Any) -> Any:
        """A run without its secrets, but with the paths of its traces."""

    def watched(self, facts: Any) -> Any:
        """What a watch says of a process, without its secrets."""

    def name(self, name: str) -> str:
        """What stands for the name of an event of a trace that was read."""

    def place(self, file: str, function: str) -> tuple[str, str]:
        """What stands for a file of source, and for a function in it."""

    def path(self, path: Path) -> str:
        """What stands for the path of an input."""

    def text(self, text: str) -> str:
        """A sentence without its secrets."""

    def sentence(self) -> str:
        """What was replaced, and how much of it."""


_filters: list[Filter] = []


def current() -> Filter | None:
    """The filter through which inputs are read; None where everything may be seen."""
    return _filters[-1] if _filters else None


@contextmanager
def confidential(filter_: Filter) -> Iterator[None]:
    """A context in which inputs are read through this filter. Processes that are started in it do not know of it."""
    _filters.append(filter_)
    try:
        yield
    finally:
        _filters.pop()


def shown_path(path: Path) -> str:
    """The path of an input as it may be shown."""
    filter_ = current()
    return filter_.path(path) if filter_ is not None else str(path)
