"""A page, and the tables on it: only the rows on screen are drawn, and no text is read as markup."""

from rich.text import Text
from textual.actions import SkipAction
from textual.containers import VerticalScroll
from textual.geometry import Region
from textual.widgets import DataTable

_STRIDE = 8  # cells
_LEAPS = {"page_up", "page_down", "scroll_home", "scroll_end"}


class Page(VerticalScroll):
    """What scrolls as a whole."""


class RowTable(DataTable[Text]):
    """Arrows move through it; beyond its ends they go on to the next table, or scroll the page."""

    def __init__(self, classes: str = "") -> None:
        super().__init__(cursor_type="row", fixed_columns=1, classes=classes)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:
        """A table that is all in sight leaves the long leaps to its page."""
        return self.max_scroll_y > 0 if action in _LEAPS else True

    def action_scroll_home(self) -> None:
        """To the first row: a row, not a cell, is what the cursor is on."""
        self.action_scroll_top()

    def action_scroll_end(self) -> None:
        """To the last row."""
        self.action_scroll_bottom()

    def action_cursor_down(self) -> None:
        """A row down, or on to what follows."""
        if self.cursor_row >= self.row_count - 1:
            self._leave(1)
        super().action_cursor_down()

    def action_cursor_up(self) -> None:
        """A row up, or back to what stands before."""
        if self.cursor_row <= 0:
            self._leave(-1)
        super().action_cursor_up()

    def action_cursor_right(self) -> None:
        """Scroll a wide table by a column or so; at its edge, the key is the app's."""
        self._shift(_STRIDE)

    def action_cursor_left(self) -> None:
        """Scroll back."""
        self._shift(-_STRIDE)

    def on_data_table_row_highlighted(self) -> None:
        """A page that is taller than the screen follows the cursor."""
        if self.has_focus:
            row = self.region.y + self.header_height + self.cursor_row - self.scroll_offset.y
            top = row - self._page.region.y + self._page.scroll_offset.y
            self._page.scroll_to_region(Region(0, top, 1, 1), animate=False, force=True)

    def _shift(self, cells: int) -> None:
        end = self.max_scroll_x if cells > 0 else 0
        if not self.allow_horizontal_scroll or self.scroll_x == end:
            raise SkipAction
        self.scroll_relative(x=cells, animate=False)

    def on_focus(self) -> None:
        """A row under the cursor is news when the table gets the keys, too."""
        if self.is_valid_row_index(self.cursor_row):
            key = self.ordered_rows[self.cursor_row].key
            self.post_message(self.RowHighlighted(self, self.cursor_row, key))

    @property
    def _page(self) -> Page:
        return next(node for node in self.ancestors if isinstance(node, Page))

    def _leave(self, way: int) -> None:
        """Focus the table after or before this one; without one, the key is the page's."""
        tables = [*self._page.query(RowTable)]
        index = tables.index(self) + way
        if 0 <= index < len(tables):
            tables[index].focus()
        raise SkipAction
