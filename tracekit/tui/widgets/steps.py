"""The steps of every variant as lines of small bars; some of them can be selected."""

from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget

from tracekit.base.names import aligned
from tracekit.engine.buckets import BUCKETS
from tracekit.report.blocks import Line
from tracekit.tui.model.strip import COMPILES, OUTLIER, UNKNOWN, StepStrip
from tracekit.tui.widgets.grid import Left

_DIM, _SELECTED = Style(dim=True), Style(reverse=True)
_GLYPHS = {
    COMPILES: Style(color=BUCKETS["compile"].colour, bold=True),
    OUTLIER: Style(color=BUCKETS["dispatch"].colour, bold=True),
    UNKNOWN: _DIM,
}
_STEP = Style(color=BUCKETS["gpu_copy"].colour)


class Steps(Widget, can_focus=True):
    """A line for each variant. The cursor is on the same step in all lines; Shift with the arrow keys adds more."""

    HELP = (
        "← and → go from step to step; with Shift they select a range; Enter narrows everything to it. Clicks do the "
        "same."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "step(-1)", "Step", key_display="← →", id="steps.left", tooltip="Go from step to step"),
        Binding("right", "step(1)", id="steps.right", show=False),
        Binding("shift+left", "extend(-1)", "Range", key_display="⇧← ⇧→", id="steps.wider", tooltip="Select a range"),
        Binding("shift+right", "extend(1)", id="steps.wider-right", show=False),
        Binding("enter", "enter", "Narrow", key_display="⏎", id="steps.enter", tooltip="Narrow to these steps"),
        Binding("up", "leave(-1)", id="steps.up", show=False),
        Binding("down", "leave(1)", id="steps.down", show=False),
    ]

    class Chosen(Message):
        """The user wants to see only these steps."""

        def __init__(self, first: int, last: int) -> None:
            super().__init__()
            self.first, self.last = first, last

    def __init__(self, strip: StepStrip) -> None:
        super().__init__()
        self._rows: list[Line | None] = []  # the line on each row of the screen
        self.show(strip)

    def show(self, strip: StepStrip) -> None:
        """Show other steps."""
        self.strip = strip
        self.can_focus = strip.selectable and bool(strip.numbers)
        numbers = strip.numbers or [0]
        self._anchor, self._cursor = strip.selected or (numbers[0], numbers[0])
        self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As many lines as it takes at this width, and one more while the strip has the focus."""
        return sum(1 + text.plain.count("\n") for text in self.lines(width))

    def on_focus(self) -> None:
        """Show the cursor, and below the strip the step under it."""
        self.refresh(layout=True)

    def on_blur(self) -> None:
        """Hide both."""
        self.refresh(layout=True)

    def render(self) -> Text:
        """Draw to fit the width."""
        return Text("\n").join(self.lines(self.content_size.width))

    def lines(self, width: int) -> list[Text]:
        """A line for each variant, with its legend beside the steps, or below them if it does not fit."""
        drawn, self._rows = [], []
        is_marked = self.has_focus or self.strip.selected is not None
        for line, name in zip(self.strip.lines, self._names(width), strict=True):
            text, room = Text(f"{name} "), max(width - len(name) - 1, 1)
            first, last = (self.strip.cell_of(line, step, room) for step in self.range)
            for cell, glyph in enumerate(self.strip.glyphs(line, room)):
                is_selected = first is not None and last is not None and first <= cell <= last and is_marked
                text.append(glyph, _GLYPHS.get(glyph, _STEP) + (_SELECTED if is_selected else Style()))
            legend = self.strip.legend(line)
            beside = len(text) + 2 + len(legend) <= width
            self._rows += [line] if beside else [line, None]
            drawn.append(text.append("  " if beside else "\n  ").append(legend, _DIM))
        if self.has_focus:
            first, last = self.range
            drawn.append(Text(self.strip.about(first) if first == last else f"steps {first}–{last}"))
        return drawn

    @property
    def range(self) -> tuple[int, int]:
        """The first and the last step under the cursor."""
        return min(self._anchor, self._cursor), max(self._anchor, self._cursor)

    def _names(self, width: int) -> list[str]:
        """What stands before the steps of each variant."""
        return aligned([line.name for line in self.strip.lines], max(width // 4, 8))

    def action_step(self, way: int) -> None:
        """Put the cursor on the next or the previous step."""
        self._cursor = self._anchor = self._neighbour(way)
        self.refresh()

    def action_extend(self, way: int) -> None:
        """Make the range longer or shorter by a step."""
        self._cursor = self._neighbour(way)
        self.refresh()

    def _neighbour(self, way: int) -> int:
        numbers = self.strip.numbers
        position = numbers.index(self._cursor) if self._cursor in numbers else 0
        return numbers[min(max(position + way, 0), len(numbers) - 1)]

    def action_enter(self) -> None:
        """Narrow to the steps under the cursor."""
        self.post_message(self.Chosen(*self.range))

    def on_click(self, event: events.Click) -> None:
        """Put the cursor on the step, or with Shift extend the range to it; a second click narrows."""
        line = self._rows[event.y] if event.y < len(self._rows) else None
        if line is None:
            return
        width = self.content_size.width
        name = len(self._names(width)[0]) + 1
        number = self.strip.step_of(line, event.x - name, width - name)
        if number is not None and self.can_focus:
            self._cursor = number
            self._anchor = self._anchor if event.shift else number
            self.refresh()
            if event.chain > 1:
                self.action_enter()

    def action_leave(self, way: int) -> None:
        """Go to the previous or the next widget."""
        self.post_message(Left(self, way))
