"""The lines around a pane: above it, what was opened and every narrowing as a path, with a word at the right, and the
panes as chips; below it, the words to search for, and the keys that do something now. The progress of reading takes
the place of the first pane.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, takewhile
from pathlib import Path
from typing import ClassVar, Protocol

from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input, Static

from tracekit.base.names import sanitize, short
from tracekit.profile.names import stem
from tracekit.tui.model.opening import Reading

_SOON_S = 0.25  # an answer that arrives sooner is not announced as being in preparation
_INTERVAL_S = 0.2  # between two looks at the progress of reading
_SEPARATOR, _ELLIPSIS = " ▸ ", "…"
_NAMES = (40, 24, 16, 10, 6)  # characters of a name: the largest that leaves room for the path is used
_TITLE = 16  # cells of a chip's title
_HELP = "question_mark"


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


class Chips(Widget):
    """Titles with the keys that lead to them, always with that of the current pane; a click on one goes to its pane."""

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
        chips = self._panes[start:]
        chips = chips[: _fitting_count((len(text) for _, text in chips), room)]
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


class Searched(Protocol):
    """A widget whose rows or events can be searched; `SEARCH` says for what."""

    SEARCH: str

    @property
    def pattern(self) -> str:
        """The words it is searched by."""

    def search(self, pattern: str) -> None:
        """Search by these words."""

    def focus(self, scroll_visible: bool = True) -> object:
        """Give it the focus."""


class FilterLine(Input):
    """Filters a table, or searches a timeline, while the user types; Enter keeps what was typed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", "Keep", key_display="⏎", id="filter.keep", tooltip="Keep the filter"),
        Binding("escape", "drop", "All rows", key_display="esc", id="filter.drop", tooltip="Show all rows again"),
    ]

    def __init__(self) -> None:
        super().__init__(id="filter")
        self._searched: Searched | None = None

    def ask(self, searched: Searched | None) -> None:
        """Ask for the words by which to search this."""
        self._searched = searched
        self.value = searched.pattern if searched is not None else ""
        self.placeholder = searched.SEARCH if searched is not None else ""
        self.display = True
        self.focus()

    def drop(self, searched: Searched | None) -> bool:
        """Show everything of what is being searched, or else of this; False if it is shown already."""
        searched = self._searched if self.display else searched
        if not self.display and (searched is None or not searched.pattern):
            return False
        self._searched = searched
        self._search("")
        self._close()
        return True

    def action_drop(self) -> None:
        """Show all rows again."""
        self.drop(None)

    def forget(self) -> None:
        """Forget what was searched, which is no longer on screen."""
        self._searched, self.display = None, False

    def on_input_changed(self, message: Input.Changed) -> None:
        """Search."""
        message.stop()
        if self.display:
            self._search(message.value)

    def on_input_submitted(self, message: Input.Submitted) -> None:
        """Keep the filter."""
        message.stop()
        self._close()

    def _search(self, pattern: str) -> None:
        if self._searched is not None and self._searched.pattern != pattern:
            self._searched.search(pattern)

    def _close(self) -> None:
        """Give the focus back."""
        self.display = False
        if self._searched is not None:
            self._searched.focus()


class KeyBar(Widget):
    """As many keys as fit, first those of the widget that has the focus; a click acts as a key. The help lists all.

    Textual's own footer has a widget for each key, and makes all of them anew whenever the focus moves.
    """

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
        keys, room = self._drawn_keys, self.size.width
        widths = [len(display) + len(text) + 4 for display, text, _ in keys]
        help_keys = [k for k in range(_fitting_count(widths, room), len(keys)) if keys[k][2] == _HELP]
        count = _fitting_count(widths, room - sum(widths[k] for k in help_keys))
        return [*keys[:count], *(keys[k] for k in help_keys)]

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


def _fitting_count(widths: Iterable[int], room: int) -> int:
    """How many of them, from the first on, fit into the room."""
    return sum(1 for _ in takewhile(lambda end: end <= room, accumulate(widths)))
