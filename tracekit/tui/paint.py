"""What is drawn cell by cell: stacked bars, lines of steps, and the chips that tie a row to its part of a bar."""

from rich.color import Color
from rich.style import Style
from rich.text import Text
from textual.widgets import Static

from tracekit.engine.buckets import BUCKETS
from tracekit.names import aligned
from tracekit.tui.bars import Bar, bars
from tracekit.tui.breakdown import Breakdown, Line
from tracekit.tui.pulse import COMPILES, UNKNOWN, Pulse

_TALL = 40  # lines of a screen
_DIM = Style(dim=True)
_GLYPHS = {COMPILES: Style(color=BUCKETS["compile"].colour, bold=True), UNKNOWN: _DIM}
_STEP = Style(color=BUCKETS["gpu_copy"].colour)


class Drawn(Static):
    """A drawing that is made to the width it has."""

    def __init__(self) -> None:
        super().__init__(markup=False)

    def on_resize(self) -> None:
        """Draw anew."""
        self.draw()

    def draw(self) -> None:
        """Draw; without a width there is nothing to draw on."""
        if self.content_size.width:
            self.update(Text("\n").join(self.lines(self.content_size.width)))

    def lines(self, width: int) -> list[Text]:
        """The drawing, line by line."""
        raise NotImplementedError


class Bars(Drawn):
    """The variants as stacked bars on one scale; a tall screen has room for thicker ones."""

    numbers: Breakdown | None = None

    def show(self, numbers: Breakdown) -> None:
        """Draw these."""
        self.numbers = numbers
        self.draw()

    def lines(self, width: int) -> list[Text]:
        """A bar and its value for each variant; a reason for each without one."""
        if self.numbers is None or self.numbers.total is None:
            return []
        unanswered = self.numbers.unanswered
        names = aligned([*self.numbers.names, *unanswered], _name_width(width))
        total = max(len(share.value) for share in self.numbers.total.shares.values())
        longest = width - len(names[0]) - total - len(self.numbers.unit) - 3
        drawn = bars(self.numbers, max(longest, 1))
        lines = [line for bar, name in zip(drawn, names, strict=False) for line in _bar(bar, name, self._thick)]
        for name, reason in zip(names[len(drawn) :], unanswered.values(), strict=True):
            lines.append(Text.assemble(f"{name} ", (f"cannot be answered: {reason}", _DIM)))
        return lines if lines[-1] else lines[:-1]

    @property
    def _thick(self) -> bool:
        return self.app.size.height >= _TALL


class Pulses(Drawn):
    """The variants' steps, one by one."""

    pulses: tuple[Pulse, ...] = ()

    def show(self, pulses: list[Pulse]) -> None:
        """Draw these."""
        self.pulses = tuple(pulses)
        self.draw()

    def lines(self, width: int) -> list[Text]:
        """A line for each variant; its legend stands beside the steps, or below them where there is no room."""
        lines = []
        names = aligned([pulse.name for pulse in self.pulses], _name_width(width))
        for pulse, name in zip(self.pulses, names, strict=True):
            line = Text(f"{name} ")
            for glyph in pulse.glyphs(width - len(line)):
                line.append(glyph, _GLYPHS.get(glyph, _STEP))
            beside = len(line) + 2 + len(pulse.legend) <= width
            lines.append(line.append("  " if beside else "\n  ").append(pulse.legend, _DIM))
        return lines


def chip(line: Line) -> Text:
    """A bucket's mark on its colour, and its label."""
    if not line.key:
        return Text(f"  {line.label}", Style(bold=True))
    return Text.assemble((line.mark, _on(line.colour)), f" {line.label}")


def _bar(bar: Bar, name: str, thick: bool) -> list[Text]:
    text, below = Text(f"{name} "), Text(" " * (len(name) + 1))
    for segment in bar.segments:
        text.append(segment.text, _on(segment.line.colour))
        below.append(" " * segment.cells, _on(segment.line.colour))
    text.append(f" {bar.value}", Style(bold=True))
    return [text, below, Text()] if thick else [text]


def _on(colour: str) -> Style:
    """Black or white on the colour, whichever is easier to read."""
    red, green, blue = Color.parse(colour).get_truecolor()
    light = 0.299 * red + 0.587 * green + 0.114 * blue > 128
    return Style(color="#000000" if light else "#ffffff", bgcolor=colour)


def _name_width(width: int) -> int:
    """A quarter of the line is for the name."""
    return max(width // 4, 8)
