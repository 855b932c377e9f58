"""The progress of reading, shown on a terminal once it has taken more than a second."""

import sys
import time
from typing import Any, Self

from tracekit.base.units import count, size
from tracekit.trace.reading.convert import Seen

_PATIENCE = 1.0  # seconds before anything is shown


class Progress:
    """A line on stderr while traces are read, if stderr is a terminal. It is called with what has been read."""

    def __init__(self) -> None:
        self._wanted = sys.stderr.isatty()
        self._began = time.monotonic()
        self._bar: Any = None
        self._task: Any = None
        self._last = 0

    def __call__(self, reading: Seen) -> None:
        """Show how far reading has come."""
        if reading.bytes_read < self._last:  # the next file
            self._began = time.monotonic()
        self._last = reading.bytes_read
        rate = count(round(reading.events / max(time.monotonic() - self._began, 1e-3)))
        text = f"{size(reading.bytes_read)} of {size(reading.size)}, {count(reading.events)} events, {rate} a second"
        self._show(reading.bytes_read, max(reading.size, 1), text)

    def ranks(self, ranks_read: int, total: int) -> None:
        """Show how many of the ranks have been read."""
        self._show(ranks_read, total, f"{count(ranks_read)} of {count(total)} ranks")

    def _show(self, completed: int, total: int, text: str) -> None:
        if not self._wanted or time.monotonic() - self._began < _PATIENCE:
            return
        if self._bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (TextColumn("reading"), BarColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task("")
            self._bar.start()
        self._bar.update(self._task, completed=completed, total=total, description=text)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
