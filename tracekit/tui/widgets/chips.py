"""Two lines of what can be pressed: the panes as chips, including the current one – those that do not fit are a click
or a key away – and the keys that do something now, first those of the widget that has the focus. A click acts as a key.

Textual's own footer has a widget for each key, and makes all of them anew whenever the focus moves.
"""

from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tracekit.base.names import sanitize

_TITLE = 16  # cells of a title
_ELLIPSIS = "…"
_HELP = "question_mark"


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
        """The chips that fit into the width, among them that of the current pane."""
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
        styles = [self.get_component_rich_style(f"chips--{kind}") for kind in ("other", "here")]
        segments = [Segment(text, styles[name != "" and name == self._current]) for name, text in self.in_sight]
        return Strip(segments).crop_extend(0, self.size.width, self.rich_style)

    def on_click(self, event: events.Click) -> None:
        """Go to the pane that was clicked."""
        cell = event.x
        for name, text in self.in_sight:
            if cell < len(text):
                if name:
                    self.post_message(self.Picked(name))
                return
            cell -= len(text)


class KeyBar(Widget):
    """As many keys as fit; the help lists all of them."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"key-bar--key", "key-bar--text"}

    def __init__(self) -> None:
        super().__init__()
        self._drawn_keys: list[tuple[str, str, str]] = []

    def on_mount(self) -> None:
        """Watch for changes of the keys that apply."""
        self.screen.bindings_updated_signal.subscribe(self, lambda _: self.look())

    def look(self) -> None:
        """Draw anew if other keys apply now."""
        keys = self.keys
        if keys != self._drawn_keys:
            self._drawn_keys = keys
            self.refresh()

    @property
    def keys(self) -> list[tuple[str, str, str]]:
        """For each key that is shown: its name on screen, what it does, and its action; the most important first."""
        active = self.app.screen.active_bindings.values()  # of the screen that covers the panes, if there is one
        visible = [key for key in active if key.binding.show and key.enabled]
        visible.sort(key=lambda key: key.node is self.app)
        keys = {(self.app.get_key_display(key.binding), key.binding.description): key.binding.key for key in visible}
        return [(display, text, key) for (display, text), key in keys.items()]

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """One line."""
        return 1

    @property
    def _fitting(self) -> list[tuple[str, str, str]]:
        """As many keys as fit, always including that of the help, which lists the others."""
        keys, width = self._drawn_keys, self.size.width
        fitting = _keys_that_fit(keys, width)
        left_out = [key for key in keys[len(fitting) :] if key[2] == _HELP]
        return [*_keys_that_fit(keys, width - sum(map(_width, left_out))), *left_out]

    def render_line(self, y: int) -> Strip:
        """The keys."""
        key_style = self.get_component_rich_style("key-bar--key")
        text_style = self.get_component_rich_style("key-bar--text")
        segments = []
        for display, text, _ in self._fitting:
            segments += [Segment(f" {display} ", key_style), Segment(f"{text} ", text_style)]
        return Strip(segments).crop_extend(0, self.size.width, self.rich_style)

    def on_click(self, event: events.Click) -> None:
        """Act as if the key had been pressed."""
        cell = event.x
        for display, text, key in self._fitting:
            cell -= len(display) + len(text) + 3
            if cell < 0:
                self.app.simulate_key(key)
                return


def _keys_that_fit(keys: list[tuple[str, str, str]], room: int) -> list[tuple[str, str, str]]:
    fitting = []
    for key in keys:
        room -= _width(key)
        if room < 0:
            break
        fitting.append(key)
    return fitting


def _width(key: tuple[str, str, str]) -> int:
    return len(key[0]) + len(key[1]) + 4
