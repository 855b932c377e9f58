"""What is selected, as a path: what was opened first, then every narrowing."""

from pathlib import Path

from textual.widgets import Static

from tracekit.names import short
from tracekit.profile.names import stem
from tracekit.sanitize import sanitize

_SEPARATOR, _MORE = " ▸ ", "…"
_NAMES = (40, 24, 16, 10, 6)  # characters of a name: the largest that leaves room for the path is used


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
        line = _SEPARATOR.join(["  ".join(names), *(sanitize(each, max(longest, 16)) for each in path)])
        if len(line) <= width:
            return line
    for start in range(len(path)):
        line = _SEPARATOR.join([_MORE, *(sanitize(each, 24) for each in path[start:])])
        if len(line) <= width:
            return line
    return sanitize(line, width)
