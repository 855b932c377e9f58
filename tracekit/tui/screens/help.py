"""What the keys do and what the words mean, made from the declarations of both."""

from collections.abc import Iterable, Iterator
from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import Static

from tracekit.engine.buckets import BUCKETS
from tracekit.tui.model.panes.pane import Pane
from tracekit.tui.model.sheet import Sheet
from tracekit.tui.screens.over import Over


class HelpScreen(Over[None]):
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

    def on_mount(self) -> None:
        """Give the text the focus, so that the arrow keys scroll it."""
        super().on_mount()
        self.query_one("#help").focus()


def explaining(
    pane: Pane | None, focused: Widget | None, sheets: Iterable[Sheet], keys: Iterable[Binding]
) -> HelpScreen:
    """The help for a pane, for the widget that has the focus, and for the words in its tables."""
    if pane is None:
        return HelpScreen("tracekit", ["Nothing is open yet."], keys, {})
    about, first, words = [pane.help], list[Binding](), dict[str, str]()
    if focused is not None and hasattr(focused, "HELP"):
        about.append(str(focused.HELP))
        first = [each for each in type(focused).BINDINGS if isinstance(each, Binding)]
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
