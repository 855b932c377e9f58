"""A scroll bar beside a long table, which shows what part of it is visible.

Textual's own is a widget, which is laid out and drawn again whenever the table beside it changes its height; this one
is a character at the end of each line below the heading.
"""

from textual import events
from textual.scroll_view import ScrollView

WIDTH = 1  # cells
_NOTCH, _ASIDE = 3, 8  # lines and cells for each notch of the wheel


def thumb(height: int, rows: int, top: int) -> range:
    """The lines of a bar of that height that stand for the rows visible from `top` on; none if all rows are visible."""
    if height <= 0 or rows <= height:
        return range(0)
    length = max(round(height * height / rows), 1)
    first = round((height - length) * top / (rows - height))
    return range(first, first + length)


def top_at(line: int, height: int, rows: int) -> int:
    """The first visible row once the middle of the thumb is on that line."""
    length = len(thumb(height, rows, 0))
    share = (line - length // 2) / max(height - length, 1)
    return round(min(max(share, 0.0), 1.0) * max(rows - height, 0))


class Scrolled(ScrollView):
    """Rows below a heading, scrolled by the wheel, and by pressing and dragging in the last column."""

    DEFAULT_CSS = "Scrolled { overflow: hidden hidden; }"

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll down, or with Shift to the right."""
        self._roll(event, 1)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll up, or with Shift to the left."""
        self._roll(event, -1)

    def _roll(self, event: events.MouseEvent, way: int) -> None:
        x, y = (way * _ASIDE, 0) if event.shift or event.ctrl else (0, way * _NOTCH)
        before = self.scroll_offset
        self.scroll_relative(x=x, y=y, animate=False, force=True)
        if self.scroll_offset != before:
            event.stop()

    def is_on_bar(self, event: events.MouseEvent) -> bool:
        """Whether the pointer is on the bar, and there is one."""
        return event.y > 0 and event.x >= self.size.width - WIDTH and self.max_scroll_y > 0

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """If the bar is pressed, scroll to that point and follow the pointer."""
        if self.is_on_bar(event):
            self.capture_mouse()
            self._follow(event.y)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Follow the pointer while the bar is pressed."""
        if self.app.mouse_captured is self:
            self._follow(event.y)

    def on_mouse_up(self) -> None:
        """Stop following the pointer."""
        self.release_mouse()

    def _follow(self, y: int) -> None:
        top = top_at(y - 1, self.size.height - 1, self.virtual_size.height - 1)
        self.scroll_to(y=top, animate=False, force=True)
