"""What opens over the panes: help, choices, and the name of a file. While one is open, the line of keys below shows
its keys.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, TypeVar

from rich.table import Table
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Input, Static

from tracekit.base.pages import Page, Part
from tracekit.engine.buckets import BUCKETS
from tracekit.tui.model.content import Pane
from tracekit.tui.model.sheet import Sheet
from tracekit.tui.widgets.lines import KeyBar

Result = TypeVar("Result")


class Over(ModalScreen[Result]):
    """A screen over the panes."""

    def on_mount(self) -> None:
        """Show its keys in place of the pane's."""
        self._tell_keys()

    def on_unmount(self) -> None:
        """Show the pane's keys again."""
        self._tell_keys()

    def _tell_keys(self) -> None:
        for bar in self.app.screen_stack[0].query(KeyBar):
            bar.look()


class ChoiceScreen(Over[Any]):
    """Returns the value of the key that was pressed, or None for Esc."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "Close", key_display="esc", id="choice.close", tooltip="Back")
    ]

    def __init__(self, title: str, choices: Sequence[tuple[str, str, Any]]) -> None:
        super().__init__()
        self._title = title
        self._choices = choices  # key, text and value

    def compose(self) -> Iterator[Widget]:
        """One line for each choice."""
        table = Table.grid(padding=(0, 2))
        for key, text, _ in self._choices:
            table.add_row(Text(key, "bold"), Text(text))
        with VerticalScroll(classes="box"):
            yield Static(Text(self._title, "bold underline"), markup=False)
            yield Static(table, markup=False)

    def on_key(self, event: events.Key) -> None:
        """Choose."""
        for key, _, value in self._choices:
            if key in (event.character, event.key):
                event.stop()
                self.dismiss(value)
                return


class FileNameScreen(Over[str]):
    """Returns the name that was entered, or None for Esc."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", "Write", key_display="⏎", id="file-name.write", tooltip="Write the file"),
        Binding("escape", "dismiss", "Close", key_display="esc", id="file-name.close", tooltip="Back"),
    ]

    def __init__(self, proposal: str) -> None:
        super().__init__()
        self._proposal = proposal

    def compose(self) -> Iterator[Widget]:
        """What is asked for, and the line to edit."""
        with Vertical(classes="box"):
            yield Static(Text("Write to", "bold underline"), markup=False)
            yield Input(self._proposal, select_on_focus=False)

    def on_mount(self) -> None:
        """Begin at the end of the name."""
        super().on_mount()
        self.query_one(Input).focus()

    def on_input_submitted(self, message: Input.Submitted) -> None:
        """Return the name."""
        self.dismiss(message.value.strip())


class ReadingScreen(Over[None]):
    """Shows a text that may be longer than the screen, in a widget called `help`."""

    def on_mount(self) -> None:
        """Give the text the focus, so that the arrow keys scroll it."""
        super().on_mount()
        self.query_one("#help").focus()


class HelpScreen(ReadingScreen):
    """Explains the pane below it: what the pane and the widget with the focus are for, the keys and the words."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark", "dismiss", "Close", key_display="esc", id="help.close", tooltip="Back")
    ]

    def __init__(self, title: str, about: Iterable[str], keys: Iterable[Binding], words: dict[str, str]) -> None:
        super().__init__()
        self._title, self._about = title, [*about]
        self._keys = [(key.key_display or key.key, key.tooltip) for key in keys if key.tooltip]
        self._words = [*words.items()]

    def compose(self) -> Iterator[Widget]:
        """The pane first, then the keys, then the words."""
        with VerticalScroll(classes="box", id="help"):
            yield Static(Text(self._title, "bold underline"), markup=False)
            yield Static(Text("\n".join(self._about)), markup=False)
            yield Static(Text("\nKeys", "bold underline"), markup=False)
            yield Static(_pairs(self._keys), markup=False)
            if self._words:
                yield Static(Text("\nWords", "bold underline"), markup=False)
                yield Static(_pairs(self._words), markup=False)


class PageScreen(ReadingScreen):
    """Shows the page of a finding or a bucket."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,m", "dismiss", "Close", key_display="esc", id="page.close", tooltip="Back")
    ]

    def __init__(self, page: Page) -> None:
        super().__init__()
        self._page = page

    def compose(self) -> Iterator[Widget]:
        """The title, then the parts."""
        with VerticalScroll(classes="box", id="help"):
            yield Static(Text(f"{self._page.id} – {self._page.title}", "bold underline"), markup=False)
            for part in self._page.parts:
                yield Static(Text(f"\n{part.heading}", "bold"), markup=False)
                yield Static(Text("\n").join(_drawn(part)), markup=False)


def _drawn(part: Part) -> Iterator[Text]:
    """The texts of a part; what stands between backticks is bold, except in lines that are kept as they are."""
    for text in part.texts:
        if part.layout == "lines":
            yield Text(text)
            continue
        pieces = [Text(piece, "bold" if index % 2 else "") for index, piece in enumerate(text.split("`"))]
        yield Text.assemble("• " if part.layout == "points" else "", *pieces)


def explaining(
    pane: Pane | None, focused: Widget | None, sheets: Iterable[Sheet], keys: Iterable[Binding]
) -> HelpScreen:
    """The help for a pane, for the widget that has the focus, and for the words in its tables."""
    if pane is None:
        return HelpScreen("tracekit", ["Nothing is open yet."], keys, {})
    about, first, words = [pane.help], list[Binding](), dict[str, str]()
    if focused is not None and hasattr(focused, "HELP"):
        about.append(str(focused.HELP))
        first = [binding for binding in type(focused).BINDINGS if isinstance(binding, Binding)]
    for sheet in sheets:
        words |= sheet.meanings
        if sheet.name == "buckets":
            words |= {bucket.label: bucket.meaning for bucket in BUCKETS.values()}
    return HelpScreen(pane.title, about, [*first, *keys], words)


def _pairs(pairs: Iterable[tuple[str, str]]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style="bold")
    table.add_column()
    for name, meaning in pairs:
        table.add_row(Text(name), Text(meaning))
    return table
