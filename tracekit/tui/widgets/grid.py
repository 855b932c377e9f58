"""A table of any length: only the rows on screen are turned into text that fits the columns, and drawn below a heading,
beside a scroll bar.

No library's table offers what these need: every cell has a unit of its own, differences are coloured, names are cut so
that those on screen remain distinguishable, and texts give way to numbers. Two million rows appear without delay and
are sorted in 0.3 s, where textual-fastdatatable 0.19.5 takes 0.8 s and 1.9 s; `make bench-tui` measures this.
"""

from collections.abc import Mapping
from functools import cached_property, partial
from typing import ClassVar

from msgspec import Struct
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tracekit.faces.shared.cells import DELTA, role
from tracekit.tui.model.sheet import Sheet
from tracekit.tui.widgets.columns import (
    CODE,
    GAP,
    Part,
    column_at,
    column_widths,
    cut_columns,
    heading,
    needed,
    on,
    parts,
    pieces,
)
from tracekit.tui.widgets.scroll_bar import WIDTH, Scrolled, thumb

LEAST = 6  # lines that a table gets at least, if it has that many
_STRIDE = 16
_NOTHING = ("·", "–")
_SIGN = 2  # cells before the first column, if rows have signs


class Styles(Struct, frozen=True):
    """The styles of the parts of a table; those from `dim` on are added to the style of a row."""

    row: Style
    cursor: Style
    head: Style
    dim: Style
    increase: Style
    decrease: Style
    bar: Style
    code: Mapping[str, Style]  # by kind of part

    def scroll_bar(self, is_thumb: bool) -> Strip:
        """The part of the bar that is beside a line."""
        return Strip([Segment("▐" if is_thumb else " ", self.row + self.bar)], WIDTH)


class Window(Struct, frozen=True):
    """The visible part of a table: its first cell, its first row, and the number of rows."""

    first_cell: int
    top: int
    height: int


class TableLines:
    """A sheet, drawn with a given width; its columns are fitted to the `room` beside the scroll bar."""

    def __init__(self, sheet: Sheet, width: int, styles: Styles) -> None:
        self.sheet, self.width, self.styles = sheet, width, styles
        self.room = max(width - WIDTH, 1)
        self._signs = _SIGN if sheet.marks else 0
        self._widths = column_widths(sheet, max(self.room - self._signs, 1))
        self._texts: dict[int, list[str]] = {}
        self._deltas = [field.name.startswith(DELTA) for field in sheet.fields]
        self._roles = [role(field) for field in sheet.fields]

    @property
    def needed(self) -> int:
        """The cells of a row, which are more than fit if there are too many columns."""
        return needed(self._widths) + self._signs

    def column_at(self, cell: int) -> int | None:
        """The column to which a cell of the heading belongs."""
        return column_at(self._widths, cell - self._signs)

    def heading(self, first_cell: int) -> Strip:
        """The titles, with a sign on each side that has more columns."""
        room, style = self.room, self.styles.head
        before, after = first_cell > 0, first_cell + room < self.needed
        titles = Strip([Segment(self._titles, style)]).crop_extend(first_cell, first_cell + room, self.styles.row)
        signs = [Strip([Segment(sign * has_more, style)]) for sign, has_more in (("‹", before), ("›", after))]
        return Strip.join([signs[0], titles.crop(before, room - after), signs[1], self.styles.scroll_bar(False)])

    @cached_property
    def _titles(self) -> str:
        return " " * self._signs + heading(self.sheet, self._widths)

    def row(self, number: int, window: Window, is_under_cursor: bool) -> Strip:
        """A row, or nothing below the last one, with the bar beside it."""
        base = self.styles.cursor if is_under_cursor else self.styles.row
        bar = self.styles.scroll_bar(number - window.top in thumb(window.height, len(self.sheet), window.top))
        if number >= len(self.sheet) or not self._widths:
            return Strip.join([Strip.blank(self.room, self.styles.row), bar])
        end = window.first_cell + self.room
        return Strip.join([Strip(self._cells(number, window, base)).crop_extend(window.first_cell, end, base), bar])

    def _cells(self, number: int, window: Window, base: Style) -> list[Segment]:
        segments = []
        if self.sheet.marks:
            mark = self.sheet.marks.get(self.sheet.row_at(number))
            segments = [Segment(mark[0], on(mark[1])) if mark is not None else Segment(" ", base), Segment(" ", base)]
        if number not in self._texts:  # cut to the columns so that they differ from those of the rows on screen
            start = min(max(window.top - window.height, 0), number)
            stop = max(start + 3 * max(window.height, 1), number + 1)
            columns = cut_columns(self.sheet, self.sheet.cells(start, stop), self._widths)
            self._texts = dict(enumerate(map(list, zip(*columns, strict=True)), start)) if columns else {number: []}
        texts = self._texts[number]
        for k, (text, width, is_number) in enumerate(zip(texts, self._widths, self.sheet.numbers, strict=True)):
            cell = (text.rjust(width) if is_number else text.ljust(width)) + " " * GAP
            if self._roles[k] == "code":
                line_parts = self._code[self.sheet.row_at(number)]
                segments += [
                    Segment(part, base + self.styles.code.get(kind, Style())) for part, kind in pieces(cell, line_parts)
                ]
            else:
                segments.append(Segment(cell, self._style(k, text.strip(), base)))
        return segments

    @cached_property
    def _code(self) -> list[list[Part]]:
        """The parts of each line of source, by row of the table."""
        return parts(tuple(self.sheet.table[self.sheet.fields[self._roles.index("code")].name].to_pylist()))

    def _style(self, column: int, text: str, base: Style) -> Style:
        if self._roles[column] == "bar":
            return base + self.styles.increase
        if text in _NOTHING:
            return base + self.styles.dim
        if self._deltas[column]:
            return base + (self.styles.decrease if text.startswith("−") else self.styles.increase)
        return base


class Left(Message):
    """An arrow key went beyond the first row of a widget (`way` −1) or the last row (1)."""

    def __init__(self, widget: Widget, way: int) -> None:
        super().__init__()
        self.widget, self.way = widget, way


class Grid(Scrolled, can_focus=True):
    """Rows of a sheet below a heading; one is under the cursor. An arrow key beyond the first or last row leaves it."""

    HELP = (
        "Arrows move; Enter narrows to the row; / filters, o sorts by the next column, R reverses the order; y copies."
    )
    SEARCH = "words that a row must contain; Enter keeps, Esc shows all"
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "grid--head",
        "grid--cursor",
        "grid--dim",
        "grid--more",
        "grid--less",
        "grid--bar",
        *(f"grid--{kind}" for kind in CODE),
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", "Up", id="grid.up", show=False, key_display="↑ ↓", tooltip="Move through a table"),
        Binding("down", "move(1)", "Down", id="grid.down", show=False),
        Binding("pageup", "page(-1)", id="grid.page-up", show=False),
        Binding("pagedown", "page(1)", id="grid.page-down", show=False),
        Binding("home", "end(0)", id="grid.home", show=False),
        Binding("end", "end(1)", id="grid.end", show=False),
        Binding("left", "aside(-1)", id="grid.left", show=False, key_display="← →", tooltip="Scroll a wide table"),
        Binding("right", "aside(1)", id="grid.right", show=False),
        Binding("enter", "enter", "Narrow", key_display="⏎", id="grid.enter", tooltip="Narrow to the row"),
        Binding(
            "o", "sort", "Sort", id="grid.sort", tooltip="Sort by the next column; a click on a heading sorts by it"
        ),
        Binding("R", "turn", id="grid.turn", show=False, tooltip="Reverse the order"),
    ]

    class Moved(Message):
        """Another row is under the cursor, or another table has the focus."""

        def __init__(self, grid: "Grid") -> None:
            super().__init__()
            self.grid = grid

    class Changed(Moved):
        """Other rows are shown, or in another order."""

    class Entered(Moved):
        """Enter was pressed on a row."""

    def __init__(self, sheet: Sheet, cursor: int = 0) -> None:
        super().__init__()
        self.sheet = sheet
        self.cursor = min(cursor, max(len(sheet) - 1, 0))
        self._leads_on = sheet.destination(self.cursor) is not None
        self._is_centred = False
        self._lines: TableLines | None = None
        self.set_reactive(Grid.virtual_size, Size(0, len(sheet) + 1))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """The height, in lines, at which all rows are shown."""
        return len(self.sheet) + 1

    def least(self, width: int) -> int:
        """The lines without which it is of no use."""
        return min(len(self.sheet) + 1, LEAST)

    def on_resize(self, event: events.Resize) -> None:
        """Scroll so that the row under the cursor is in the middle, the first time."""
        if event.size.height > 2 and not self._is_centred:
            self._is_centred = True
            self._centre(event.size.height)
        self.show_cursor()

    def show(self, sheet: Sheet) -> None:
        """Show another sheet, starting at its first row."""
        self._become(sheet)
        self.start_at(0)

    def start_at(self, row: int) -> None:
        """Put the cursor on a row, and scroll that row to the middle."""
        self.cursor = min(row, max(len(self.sheet) - 1, 0))
        self._leads_on = self.sheet.destination(self.cursor) is not None
        self._is_centred = False
        self._centre(self.size.height)

    def _centre(self, height: int) -> None:
        self.scroll_to(x=0, y=max(self.cursor - height // 2, 0), animate=False, force=True)

    @property
    def pattern(self) -> str:
        """The words that all rows contain."""
        return self.sheet.pattern

    def search(self, pattern: str) -> None:
        """Show only the rows that contain these words."""
        self.change(self.sheet.filtered(pattern))

    def change(self, sheet: Sheet) -> None:
        """Show other rows of the sheet, or the same rows in another order, starting at the first."""
        self._become(sheet)
        self.cursor = 0
        self.show_cursor()
        self.post_message(self.Changed(self))
        self._moved()

    def _become(self, sheet: Sheet) -> None:
        before, self.sheet = len(self.sheet), sheet
        if self.size.width:
            self._drawn()
        self.refresh(layout=len(sheet) != before)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:
        """Offer Enter only on rows that lead somewhere."""
        return action != "enter" or self._leads_on

    def _moved(self) -> None:
        """Update what depends on the row under the cursor, such as whether Enter leads somewhere."""
        leads_on = self.sheet.destination(self.cursor) is not None
        if leads_on != self._leads_on:
            self._leads_on = leads_on
            self.refresh_bindings()
        self.post_message(self.Moved(self))

    def _drawn(self) -> TableLines:
        """What is drawn, made anew whenever the sheet, the width or the colours change."""
        width, lines = self.size.width, self._lines
        if lines is None or lines.sheet is not self.sheet or lines.width != width:
            lines = self._lines = TableLines(self.sheet, width, self._styles())
            # Set without letting Textual lay out the screen anew, which only another number of rows requires.
            self.set_reactive(Grid.virtual_size, Size(lines.needed + WIDTH, len(self.sheet) + 1))
        return lines

    def _styles(self) -> Styles:
        full_style, added = self.get_component_rich_style, partial(self.get_component_rich_style, partial=True)
        dim, increase, decrease, bar = (added(f"grid--{name}") for name in ("dim", "more", "less", "bar"))
        code = {kind: added(f"grid--{kind}") for kind in CODE}
        return Styles(
            self.rich_style, full_style("grid--cursor"), full_style("grid--head"), dim, increase, decrease, bar, code
        )

    def notify_style_update(self) -> None:
        """Draw anew, as another theme has other colours."""
        super().notify_style_update()
        self._lines = None

    def watch_has_focus(self, _has_focus: bool) -> None:
        """Do nothing: no style depends on the focus, but Textual would compute all styles anew."""

    def show_cursor(self) -> None:
        """Scroll so that the row under the cursor is visible."""
        self.scroll_to_region(Region(self.scroll_offset.x, self.cursor, 1, 2), animate=False, force=True)

    def render_line(self, y: int) -> Strip:
        """The heading on top, or one of the rows that are visible below it."""
        first_cell, top = self.scroll_offset
        if y == 0:
            return self._drawn().heading(first_cell)
        row = y - 1 + top
        return self._drawn().row(
            row, Window(first_cell, top, self.size.height - 1), row == self.cursor and self.has_focus
        )

    def on_focus(self) -> None:
        """Announce the row under the cursor, and draw the cursor."""
        self.refresh_line(self.cursor + 1)
        self._moved()

    def on_blur(self) -> None:
        """Draw no cursor without the focus."""
        self.refresh_line(self.cursor + 1)

    def action_move(self, way: int) -> None:
        """Go a row further, or beyond the ends to the next or the previous table."""
        if not 0 <= self.cursor + way < len(self.sheet):
            self.post_message(Left(self, way))
        else:
            self.go(self.cursor + way)

    def action_page(self, way: int) -> None:
        """Go further by as many rows as are on screen."""
        self.go(self.cursor + way * max(self.size.height - 2, 1))

    def action_end(self, end: int) -> None:
        """Go to the first or the last row."""
        self.go(end * len(self.sheet))

    def action_aside(self, way: int) -> None:
        """Scroll a wide table by some cells."""
        self.scroll_relative(x=way * _STRIDE, animate=False, force=True)

    def go(self, row: int) -> None:
        """Put the cursor on that row, or on the nearest one."""
        self.refresh_line(self.cursor + 1)  # below the heading
        self.cursor = min(max(row, 0), max(len(self.sheet) - 1, 0))
        self.refresh_line(self.cursor + 1)
        self.show_cursor()
        self._moved()

    def action_enter(self) -> None:
        """Narrow to the row under the cursor."""
        if self._leads_on:
            self.post_message(self.Entered(self))

    def action_sort(self) -> None:
        """Sort by the next column, with the largest numbers first."""
        names = [field.name for field in self.sheet.fields]
        now = names.index(self.sheet.sort[0]) if self.sheet.sort and self.sheet.sort[0] in names else -1
        self.sort_by((now + 1) % len(names))

    def action_turn(self) -> None:
        """Reverse the order."""
        if self.sheet.sort is not None:
            self.change(self.sheet.sorted_by(self.sheet.sort[0], not self.sheet.sort[1]))

    def sort_by(self, column: int) -> None:
        """Sort by that column; if it is sorted by that column already, reverse the order."""
        name, sort = self.sheet.fields[column].name, self.sheet.sort
        down = not sort[1] if sort is not None and sort[0] == name else self.sheet.numbers[column]
        self.change(self.sheet.sorted_by(name, down))

    def on_click(self, event: events.Click) -> None:
        """A click on a heading sorts; one on a row puts the cursor there; a second one narrows."""
        if self.is_on_bar(event):
            return
        if event.y == 0:
            column = self._column_at(event.x + self.scroll_offset.x)
            if column is not None:
                self.sort_by(column)
            return
        row = self._row_at(event.y - 1 + self.scroll_offset.y)
        if row < len(self.sheet):
            self.go(row)
            if event.chain > 1:
                self.action_enter()

    def _column_at(self, cell: int) -> int | None:
        """The column to which a cell of the heading belongs."""
        return self._drawn().column_at(cell)

    def _row_at(self, line: int) -> int:
        """The row that is drawn on a line below the heading."""
        return line
