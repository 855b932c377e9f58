"""The keys that do something now, in one line; first those of the widget that has the focus. A click acts as a key.

Textual's own footer has a widget for each key, and makes all of them anew whenever the focus moves.
"""

from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

_HELP = "question_mark"


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
        visible = (
            active_binding for active_binding in active if active_binding.binding.show and active_binding.enabled
        )
        first = sorted(visible, key=lambda active_binding: active_binding.node is self.app)
        keys_by_label = {
            (
                self.app.get_key_display(active_binding.binding),
                active_binding.binding.description,
            ): active_binding.binding.key
            for active_binding in first
        }
        return [(display, text, key) for (display, text), key in keys_by_label.items()]

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
