"""The top line: what was opened and every narrowing as a path, the progress of reading, and a word at the right."""

from collections.abc import Callable, Sequence
from pathlib import Path

from textual.timer import Timer
from textual.widgets import Static

from tracekit.base.names import sanitize, short
from tracekit.profile.names import stem
from tracekit.tui.model.opening import Reading

_SOON_S = 0.25  # an answer that arrives sooner is not announced as being in preparation
_SEPARATOR, _ELLIPSIS = " ▸ ", "…"
_NAMES = (40, 24, 16, 10, 6)  # characters of a name: the largest that leaves room for the path is used
_INTERVAL_S = 0.2


class Status(Static):
    """`ask` returns the text, and whether it will change soon."""

    def __init__(self, ask: Callable[[], tuple[str, bool]]) -> None:
        super().__init__("", id="state", markup=False)
        self._ask, self._last_text = ask, ""
        self._timer: Timer | None = None

    def show(self) -> None:
        """Show the text now."""
        if self._timer is not None:
            self._timer.stop()
        text, will_change = self._ask()
        if text != self._last_text:
            self._last_text = text
            self.update(text)
        if will_change:
            self.show_soon()

    def show_soon(self) -> None:
        """Show the text if it is still true in a moment."""
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(_SOON_S, self.show)


class Crumbs(Static):
    """One line that fits the width: the last narrowing matters most, and is cut last."""

    def __init__(self) -> None:
        super().__init__(id="crumbs", markup=False)
        self._opened: list[str] = []
        self._path: list[str] = []

    def show(self, opened: list[str], path: list[str]) -> None:
        """Show what was opened, and the narrowings."""
        self._opened, self._path = opened, path
        self.on_resize()

    def on_resize(self) -> None:
        """Fit the line to the new width."""
        line = fitting(self._opened, self._path, max(self.content_size.width, 20))
        if line != self.content:
            self.update(line, layout=False)


def fitting(opened: list[str], path: list[str], width: int) -> str:
    """The path, with shorter names of what was opened if needed; if that is not enough, only the last narrowings."""
    for longest in _NAMES:
        names = short(opened if longest == _NAMES[0] else [stem(Path(name)) for name in opened], longest)
        line = _SEPARATOR.join(["  ".join(names), *(sanitize(narrowing, max(longest, 16)) for narrowing in path)])
        if len(line) <= width:
            return line
    for start in range(len(path)):
        line = _SEPARATOR.join([_ELLIPSIS, *(sanitize(narrowing, 24) for narrowing in path[start:])])
        if len(line) <= width:
            return line
    return sanitize(line, width)


class Progress(Static):
    """The progress of reading, file by file."""

    def __init__(self, paths: Sequence[Path], reading: Reading) -> None:
        super().__init__(id="reading", markup=False)
        self._file_names = ", ".join(sanitize(path.name, 60) for path in paths)
        self._reading = reading

    def on_mount(self) -> None:
        """Ask regularly: the reading thread has no time for messages."""
        self.tell()
        self.set_interval(_INTERVAL_S, self.tell)

    def tell(self) -> None:
        """Say how far reading has come."""
        self.update("\n".join([f"Reading {self._file_names} …", "", *self._reading.lines(), "", "Press Esc to leave."]))
