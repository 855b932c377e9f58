"""The lines of a table as they are drawn: the heading, the rows, and a scroll bar beside them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from tracekit.faces.shared.cells import DELTA, role
from tracekit.tui.model.sheet import Sheet
from tracekit.tui.widgets.columns import GAP, on
from tracekit.tui.widgets.fitted_rows import FittedRows
from tracekit.tui.widgets.scroll_bar import WIDTH, thumb
from tracekit.tui.widgets.syntax import Part, parts, pieces

_NOTHING = ("·", "–")


@dataclass(frozen=True)
class Styles:
    """The styles of the parts of a table; those from `dim` on are added to the style of a row."""

    row: Style
    cursor: Style
    head: Style
    dim: Style
    more: Style
    less: Style
    bar: Style
    code: Mapping[str, Style]  # by kind of part


@dataclass(frozen=True)
class Window:
    """The visible part of a table: its first cell, its first row, and the number of rows."""

    left: int
    top: int
    height: int


class TableLines:
    """A sheet, drawn with a given width."""

    def __init__(self, sheet: Sheet, width: int, styles: Styles) -> None:
        self.sheet, self.width, self.styles = sheet, width, styles
        self.rows = FittedRows(sheet, max(width - WIDTH, 1))
        self._deltas = [each.name.startswith(DELTA) for each in sheet.fields]
        self._roles = [role(each) for each in sheet.fields]

    def heading(self, left: int) -> Strip:
        """The titles, with a sign on each side that has more columns."""
        room, style = self.rows.room, self.styles.head
        before, after = left > 0, left + room < self.rows.width
        titles = Strip([Segment(self.rows.heading, style)]).crop_extend(left, left + room, self.styles.row)
        signs = [Strip([Segment(sign * shown, style)]) for sign, shown in (("‹", before), ("›", after))]
        return Strip.join([signs[0], titles.crop(before, room - after), signs[1], self._bar(False)])

    def row(self, number: int, window: Window, is_under_cursor: bool) -> Strip:
        """A row, or nothing below the last one, with the bar beside it."""
        base, room = self.styles.cursor if is_under_cursor else self.styles.row, self.rows.room
        seen = number - window.top in thumb(window.height, len(self.sheet), window.top)
        if number >= len(self.sheet) or not self.rows.widths:
            return Strip.join([Strip.blank(room, self.styles.row), self._bar(seen)])
        cells = Strip(self._cells(number, window, base)).crop_extend(window.left, window.left + room, base)
        return Strip.join([cells, self._bar(seen)])

    def _bar(self, seen: bool) -> Strip:
        return Strip([Segment("▐" if seen else " ", self.styles.row + self.styles.bar)], WIDTH)

    def _cells(self, number: int, window: Window, base: Style) -> list[Segment]:
        segments = []
        if self.sheet.marks:
            mark = self.sheet.marks.get(self.sheet.row_at(number))
            segments = [Segment(mark[0], on(mark[1])) if mark is not None else Segment(" ", base), Segment(" ", base)]
        texts = self.rows.texts(number, window.top, window.height)
        for k, (text, width, is_number) in enumerate(zip(texts, self.rows.widths, self.sheet.numbers, strict=True)):
            shown = (text.rjust(width) if is_number else text.ljust(width)) + " " * GAP
            if self._roles[k] == "code":
                of = self._code[self.sheet.row_at(number)]
                segments += [
                    Segment(part, base + self.styles.code.get(kind, Style())) for part, kind in pieces(shown, of)
                ]
            else:
                style = (
                    base + self.styles.more
                    if self._roles[k] == "bar"
                    else self._style(text.strip(), self._deltas[k], base)
                )
                segments.append(Segment(shown, style))
        return segments

    @cached_property
    def _code(self) -> list[list[Part]]:
        """The parts of each line of source, by row of the table."""
        return parts(tuple(self.sheet.table[self.sheet.fields[self._roles.index("code")].name].to_pylist()))

    def _style(self, text: str, is_delta: bool, base: Style) -> Style:
        if text in _NOTHING:
            return base + self.styles.dim
        if is_delta:
            return base + (self.styles.less if text.startswith("−") else self.styles.more)
        return base
