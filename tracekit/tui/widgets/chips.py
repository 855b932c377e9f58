"""The panes as chips in one line that includes the current one; those that do not fit are a click or a key away."""

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tracekit.sanitize import sanitize

_TITLE = 16  # cells of a title
_ELLIPSIS = "…"


class Chips(Widget):
    """Titles with the keys that lead to them; a click on one goes to its pane."""

    COMPONENT_CLASSES = {"chips--here", "chips--other"}  # noqa: RUF012 - as Textual declares it

    class Picked(Message):
        """The user asks for that pane."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    def __init__(self) -> None:
        super().__init__(id="chips")
        self._panes: list[tuple[str, str]] = []  # name and title
        self._current = ""

    def show(self, panes: list[tuple[str, str, str]], current: str) -> None:
        """Show these panes, each a key, a name and a title."""
        before = self._panes, self._current
        self._panes = [(name, f" {key} {sanitize(title, _TITLE)} ".replace("  ", " ")) for key, name, title in panes]
        self._current = current
        if before != (self._panes, self._current):
            self.refresh()

    @property
    def in_sight(self) -> list[tuple[str, str]]:
        """As many chips as fit, including that of the current pane."""
        room = max(self.size.width - 2 * len(_ELLIPSIS), 1)
        position = next((k for k, (name, _) in enumerate(self._panes) if name == self._current), 0)
        start = 0
        while start < position and sum(len(text) for _, text in self._panes[start : position + 1]) > room:
            start += 1
        chips: list[tuple[str, str]] = []
        for pane in self._panes[start:]:
            if sum(len(text) for _, text in chips) + len(pane[1]) > room:
                break
            chips.append(pane)
        before = [("", _ELLIPSIS)] * (start > 0)
        return [*before, *chips, *[("", _ELLIPSIS)] * (start + len(chips) < len(self._panes))]

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """One line."""
        return 1

    def render_line(self, y: int) -> Strip:
        """The chips."""
        styles = {True: self._component("chips--here"), False: self._component("chips--other")}
        segments = [Segment(text, styles[name == self._current and bool(name)]) for name, text in self.in_sight]
        return Strip(segments).crop_extend(0, self.size.width, self.rich_style)

    def _component(self, name: str) -> Style:
        return self.get_component_rich_style(name)

    def on_click(self, event: events.Click) -> None:
        """Go to the pane that was clicked."""
        cell = event.x
        for name, text in self.in_sight:
            if cell < len(text):
                if name:
                    self.post_message(self.Picked(name))
                return
            cell -= len(text)
