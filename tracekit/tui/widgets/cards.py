"""Rows as cards: figures on the left, and beside them paragraphs that wrap; the cursor is on a card."""

import re
from functools import cached_property
from itertools import product
from textwrap import wrap

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region, Size
from textual.strip import Strip

from tracekit.tui.model.sheet import Sheet
from tracekit.tui.widgets.columns import GAP, arrow, column_at
from tracekit.tui.widgets.grid import LEAST, Grid
from tracekit.tui.widgets.scroll_bar import WIDTH, thumb

_MIN_ROOM = 24  # cells for paragraphs, whatever the figures need
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:ns|µs|ms|s|%|×|B|[KMG]i?B)\b|[%×])")
_NAME = 4  # the part of the width that the last column of figures, which are names, gets at most


class Cards(Grid):
    """Cards below a heading. Where there is not room for all that they say, last paragraphs are left out."""

    _laid: "Laid | None" = None

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As many lines as everything takes."""
        return Laid(self.sheet, Size(width, 1 << 20)).height

    def least(self, width: int) -> int:
        """The lines without which it is of no use: those of the titles."""
        return min(Laid(self.sheet, Size(width, 1)).height, LEAST)

    @property
    def laid_out(self) -> "Laid":
        """The lines that fit, made anew whenever the sheet or the room changes."""
        if self._laid is None or self._laid.sheet is not self.sheet or self._laid.size != self.size:
            self._laid = Laid(self.sheet, self.size)
            self.set_reactive(Grid.virtual_size, Size(self.size.width, self._laid.height))
        return self._laid

    def _become(self, sheet: Sheet) -> None:
        self.sheet = sheet
        self.refresh(layout=True)

    def _centre(self, height: int) -> None:
        self.show_cursor()

    def show_cursor(self) -> None:
        """Scroll so that the card under the cursor is visible."""
        if self.size.width and len(self.sheet):
            top, height = self.laid_out.span(self.cursor)
            self.scroll_to_region(Region(0, top, 1, height + 1), animate=False, force=True)

    def refresh_line(self, y: int) -> None:
        """Draw everything: a card has several lines, and there are few of them."""
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """The heading on top, or a line of a card."""
        laid, styles, top = self.laid_out, self._styles(), self.scroll_offset.y
        room = self.size.width - WIDTH
        if y == 0:
            head = Strip([Segment(laid.heading, styles.head)]).crop_extend(0, room, styles.row)
            return Strip.join([head, Strip.blank(WIDTH, styles.row)])
        line_number = y - 1 + top
        bar = styles.scroll_bar(y - 1 in thumb(self.size.height - 1, laid.height - 1, top))
        if line_number >= len(laid.lines):
            return Strip.join([Strip.blank(room, styles.row), bar])
        index, figures, text, is_title = laid.lines[line_number]
        base = styles.cursor if index == self.cursor and self.has_focus else styles.row
        bold = Style(bold=is_title)
        line = Strip([Segment(figures, base + bold), Segment(text, base + bold)]).crop_extend(0, room, base)
        return Strip.join([line, bar])

    def _column_at(self, cell: int) -> int | None:
        return self.laid_out.column_at(cell)

    def _row_at(self, line: int) -> int:
        lines = self.laid_out.lines
        return lines[line][0] if line < len(lines) else len(self.sheet)


class Laid:
    """The cards of a sheet within a width, with as many paragraphs as its height allows."""

    def __init__(self, sheet: Sheet, size: Size) -> None:
        self.sheet, self.size = sheet, size
        self._cards = [sheet.cards[row] for row in sheet.order.tolist()]
        width = max(size.width - WIDTH, 1)
        figures = [line for card in sheet.cards for line in card.figures]
        self._widths = [
            max(len(title) + 1, *map(len, column)) for title, *column in zip(sheet.titles, *figures, strict=False)
        ]
        if len(self._widths) > 2:
            self._widths[2] = min(self._widths[2], max(width // _NAME, 8))
        self._margin = 1 + sum(self._widths) + GAP * len(self._widths)
        self._room = max(width - self._margin, _MIN_ROOM)

    @cached_property
    def lines(self) -> list[tuple[int, str, str, bool]]:
        """Each line: the index of its card, its figures, its text, and whether that is the title."""
        part_counts = [0] * len(self._cards)  # paragraphs of each card
        line_count = sum(len(self._card_lines(index, 0)) for index in range(len(part_counts)))
        most_parts = max((len(card.parts) for card in self._cards), default=0)
        for parts, index in product(range(1, most_parts + 1), range(len(part_counts))):
            extra_lines = len(self._card_lines(index, parts)) - len(self._card_lines(index, part_counts[index]))
            if part_counts[index] == parts - 1 and line_count + extra_lines < self.size.height:
                part_counts[index], line_count = parts, line_count + extra_lines
        return [line for index, parts in enumerate(part_counts) for line in self._card_lines(index, parts)]

    @property
    def height(self) -> int:
        """The lines of the cards, and that of the heading."""
        return len(self.lines) + 1

    @property
    def heading(self) -> str:
        """The titles of the figures and of the paragraphs, with an arrow at the one by which the cards are sorted."""
        named = zip(self.sheet.titles, self.sheet.fields, strict=True)
        titles = [title + arrow(self.sheet, field.name) for title, field in named]
        return self._row(titles[: len(self._widths)]) + titles[len(self._widths)]

    def column_at(self, cell: int) -> int:
        """The column to which a cell of the heading belongs."""
        column = column_at(self._widths, cell - 1)  # after the margin
        return len(self._widths) if column is None else column

    def span(self, index: int) -> tuple[int, int]:
        """The first line of a card, and how many it has."""
        numbers = [number for number, line in enumerate(self.lines) if line[0] == index]
        return (numbers[0], len(numbers)) if numbers else (0, 1)

    def _card_lines(self, index: int, parts: int) -> list[tuple[int, str, str, bool]]:
        card = self._cards[index]
        title = self._wrapped(card.title)
        texts = [*title, *(line for part in card.parts[:parts] for line in self._wrapped(part))]
        figures = [self._row(line) for line in card.figures]
        count = max(len(texts), len(figures))
        texts += [""] * (count - len(texts))
        figures += [" " * self._margin] * (count - len(figures))
        return [(index, *pair, k < len(title)) for k, pair in enumerate(zip(figures, texts, strict=True))]

    def _row(self, cells: "tuple[str, ...] | list[str]") -> str:
        aligned = (
            cell.rjust(width) if k < 2 else cell[:width].ljust(width)
            for k, (cell, width) in enumerate(zip(cells, self._widths, strict=True))
        )
        return " " + "".join(text + " " * GAP for text in aligned)

    def _wrapped(self, text: str) -> list[str]:
        """The lines of a text, of which none ends between a number and its unit."""
        return wrap(_BEFORE_UNIT.sub("\u00a0", text), self._room) or [""]
