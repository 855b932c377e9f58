"""The variants as stacked bars on one scale: in colours, with patterns where a terminal has not all of them."""

from rich.style import Style
from rich.text import Text
from textual.geometry import Size
from textual.widget import Widget

from tracekit.names import aligned
from tracekit.tui.model.bars import Bar, bars
from tracekit.tui.model.bucket_table import BucketTable
from tracekit.tui.widgets.columns import on

_TALL = 40  # lines of a screen
_DIM = Style(dim=True)


class Bars(Widget):
    """A bar and its value for each variant, drawn to fit the width."""

    def __init__(self, numbers: BucketTable) -> None:
        super().__init__()
        self._numbers = numbers

    def show(self, numbers: BucketTable) -> None:
        """Show another breakdown."""
        self._numbers = numbers
        self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As many lines as it takes at this width."""
        return len(self.lines(width))

    def render(self) -> Text:
        """Draw to fit the width."""
        return Text("\n").join(self.lines(self.content_size.width))

    @property
    def _is_plain(self) -> bool:
        """Whether colours alone tell the buckets apart."""
        return not self.app.no_color and self.app.console.color_system == "truecolor"

    def lines(self, width: int) -> list[Text]:
        """A bar and its value for each variant, or the reason why it has none."""
        numbers, unanswered = self._numbers, self._numbers.unanswered
        names = aligned([*numbers.names, *unanswered], max(width // 4, 8))
        lines: list[Text] = []
        if numbers.total is not None:
            total = max(len(share.value) for share in numbers.total.shares.values())
            longest = width - len(names[0]) - total - len(numbers.unit) - 3
            tall = self.app.size.height >= _TALL and len(names) <= 3
            for bar, name in zip(bars(numbers, max(longest, 1)), names, strict=False):
                lines += _bar(bar, name, tall, self._is_plain)
        for name, reason in zip(names[len(numbers.names) :], unanswered.values(), strict=True):
            lines.append(Text.assemble(f"{name} ", (f"cannot be answered: {reason}", _DIM)))
        return lines


def _bar(bar: Bar, name: str, tall: bool, is_plain: bool) -> list[Text]:
    text, below = Text(f"{name} "), Text(" " * (len(name) + 1))
    for segment in bar.segments:
        style = on(segment.line.colour)
        text.append(segment.label.ljust(segment.cells) if is_plain else segment.text, style)
        below.append(" " * segment.cells if is_plain else segment.pattern, style)
    text.append(f" {bar.value}", Style(bold=True))
    return [text, below] if tall else [text]
