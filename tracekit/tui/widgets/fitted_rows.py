"""The rows of a sheet as text that fits the columns of a screen; only the rows on screen are turned into text."""

from functools import cached_property

from tracekit.tui.model.sheet import Sheet
from tracekit.tui.widgets.columns import GAP, column_widths, cut_columns, heading, needed

_SIGN = 2  # cells before the first column, if rows have signs


class FittedRows:
    """A sheet that is fitted to a number of cells."""

    def __init__(self, sheet: Sheet, room: int) -> None:
        self.sheet, self.room = sheet, room
        self.signs = _SIGN if sheet.marks else 0
        self.widths = column_widths(sheet, max(room - self.signs, 1))
        self._texts: dict[int, list[str]] = {}

    @property
    def width(self) -> int:
        """The cells of a row, which are more than fit if there are too many columns."""
        return needed(self.widths) + self.signs

    @cached_property
    def heading(self) -> str:
        """The line above the rows."""
        return " " * self.signs + heading(self.sheet, self.widths)

    def texts(self, row: int, top: int, height: int) -> list[str]:
        """A row's values cut to the columns so that they differ from those of the rows on screen, from `top` on."""
        if row not in self._texts:
            start = min(max(top - height, 0), row)
            stop = max(start + 3 * max(height, 1), row + 1)
            columns = cut_columns(self.sheet, self.sheet.cells(start, stop), self.widths)
            self._texts = dict(enumerate(map(list, zip(*columns, strict=True)), start)) if columns else {row: []}
        return self._texts[row]

    def column_at(self, cell: int) -> int | None:
        """The column to which a cell of the heading belongs."""
        left = cell - self.signs
        for column, width in enumerate(self.widths):
            if left < width + GAP:
                return column
            left -= width + GAP
        return None
