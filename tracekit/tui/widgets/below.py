"""Below a pane: the row under the cursor in full, and the source around its line."""

from collections.abc import Callable, Sequence

from rich.console import Console
from rich.style import Style
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.geometry import Size
from textual.widgets import Static

from tracekit.base.names import sanitize
from tracekit.faces.shared.cells import NOTHING, role, unit
from tracekit.tui.model.content import Code, Place
from tracekit.tui.model.sheet import Sheet

_DIM, _BOLD = Style(dim=True), Style(bold=True)
_LETTERS_OF_A_LONG_VALUE = 40  # characters of a value that gets a line of its own
_CONTEXT_LINES = 3  # lines of source above and below
LOW = 36  # lines of a screen: with fewer, this widget is small
_PADDING = 1  # cells on either side
_CELLS_FOR_TWO = 120  # cells that are enough for both side by side

CodeAt = Callable[[Place], Code | None]


class Below(Horizontal):
    """A widget of constant height, so that nothing jumps while the cursor moves."""

    def __init__(self, code_at: CodeAt = lambda _: None) -> None:
        super().__init__(id="below")
        self._code_at = code_at
        self._row: tuple[Sheet | None, int, Place | None, Size] | None = None
        self._drawn_content: object = None

    def compose(self) -> ComposeResult:
        """The row, with the source beside it."""
        yield Static("", id="row", markup=False)
        excerpt = Static("", id="excerpt", markup=False)
        excerpt.display = False
        yield excerpt

    def show(self, sheet: Sheet | None, index: int, place: Place | None) -> None:
        """Show a row of a sheet, and its line of source."""
        before, self._row = self._row, (sheet, index, place, self.size)
        if before is not None and before[0] is sheet and before[1:] == self._row[1:]:
            return
        row = sheet.row_in_full(index) if sheet is not None and 0 <= index < len(sheet) else []
        self._show(values(row), place)

    def explain(self, text: str) -> None:
        """Say what the pane is for, if there is no row to describe."""
        self._row = None
        self._show([Text(text, _DIM)], None)

    def tell(self, lines: Sequence[str], place: Place | None) -> None:
        """Show sentences, the first of them in bold, and a line of source."""
        self._row = None
        self._show([Text(line, Style() if k else _BOLD) for k, line in enumerate(lines)], place)

    def _show(self, lines: list[Text], place: Place | None) -> None:
        code = self._code_at(place) if place is not None else None
        content = [*lines], place, id(code), self.size
        if content == self._drawn_content:
            return
        self._drawn_content = content
        side_by_side = code is not None and self.app.size.width >= _CELLS_FOR_TWO and self.size.height > 4
        excerpt = self.query_one("#excerpt", Static)
        excerpt.display = side_by_side
        if code is not None and place is not None and side_by_side:
            excerpt.update(around(code, place.line, self.size.height), layout=False)
        elif place is not None:
            source = ""
            if code is not None and 0 < place.line <= len(code.sheet):
                source = code.sheet.cells(place.line - 1, place.line)[0][_text(code)].strip()
            lines.insert(0, Text.assemble((f"{sanitize(place.file, 60)}:{place.line} ", _BOLD), source))
        width = self.size.width // (2 if side_by_side else 1) - 2 * _PADDING
        if width > 0:
            lines = fitted(lines, self.app.console, width, self.size.height)
        self.query_one("#row", Static).update(Text("\n").join(lines), layout=False)


def fitted(lines: Sequence[Text], console: Console, width: int, height: int) -> list[Text]:
    """The lines that fit; if some do not, the last one that does ends in `…`."""
    wrapped = [*Text("\n").join(lines).wrap(console, width)]
    if len(wrapped) <= height:
        return [*lines]
    del wrapped[height:]
    wrapped[-1].rstrip()
    wrapped[-1].truncate(width - 1)
    wrapped[-1].append("…")
    return wrapped


def values(row: list[tuple[str, str]]) -> list[Text]:
    """First the long values on lines of their own, then the short ones one after another."""
    long = [
        Text.assemble((f"{title} ", _BOLD), value.strip())
        for title, value in row
        if len(value) > _LETTERS_OF_A_LONG_VALUE
    ]
    short = Text()
    for title, value in row:
        if len(value) <= _LETTERS_OF_A_LONG_VALUE and value.strip() not in ("", NOTHING, "–"):
            short.append(f"{title}\u00a0", _DIM).append(value.strip().replace(" ", "\u00a0")).append("   ")
    return [*long, *([short] if short else [])]


def around(code: Code, line: int, height: int) -> Text:
    """The lines of source around one, with their costs in the margin."""
    first = max(min(line - 1 - _CONTEXT_LINES, len(code.sheet) - height), 0)
    rows = code.sheet.cells(first, first + height)
    costs = [k for k, field in enumerate(code.sheet.fields) if unit(field) == "ns"]
    widths = [max(len(row[k]) for row in rows) for k in costs]
    text = Text(no_wrap=True, overflow="ellipsis")
    for number, row in enumerate(rows, first + 1):
        margin = " ".join(
            "".rjust(width) if row[k] == NOTHING else row[k].rjust(width)
            for k, width in zip(costs, widths, strict=True)
        )
        is_current = number == line
        text.append("▶" if is_current else " ").append(f"{margin} ", _BOLD if is_current else _DIM)
        text.append(f"{number:>4} ", _DIM).append(f"{row[_text(code)]}\n", _BOLD if is_current else Style())
    return text


def _text(code: Code) -> int:
    """The column that holds the source."""
    return [role(field) for field in code.sheet.fields].index("code")
