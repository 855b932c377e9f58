"""The steps of each variant side by side, one cell each; those that compile and those that stand out are marked."""

from collections.abc import Sequence
from statistics import quantiles

from msgspec import Struct
from msgspec.structs import replace

from tracekit.base.names import sanitize
from tracekit.base.units import duration
from tracekit.faces.shared import wording
from tracekit.report.blocks import Line

COMPILES, UNKNOWN, OUTLIER = wording.COMPILES, wording.UNKNOWN, "!"
_FAR = 1.5  # interquartile ranges above the third quartile: longer steps stand out (Tukey 1977)
_OUTLIER_FACTOR = 1.1  # times the median, at least: steps that are all alike have no outliers


class StepStrip(Struct, frozen=True):
    """The lines, which steps are selected (first and last), and whether steps can be selected."""

    lines: tuple[Line, ...]
    selected: tuple[int, int] | None = None
    selectable: bool = True

    @property
    def numbers(self) -> list[int]:
        """The numbers of all steps that any of the lines has, ascending."""
        return sorted({number for line in self.lines for number in line.steps})

    def glyphs(self, line: Line, width: int) -> str:
        """The line in at most `width` cells, with several steps per cell if there are more steps than cells."""
        far = outliers(line)
        return "".join(
            OUTLIER if glyph not in (COMPILES, UNKNOWN) and any(far[group]) else glyph
            for glyph, group in zip(wording.glyphs(line, width), line.groups(width), strict=True)
        )

    def step_of(self, line: Line, cell: int, width: int) -> int | None:
        """The number of the first step in this cell of a line."""
        groups = line.groups(width)
        return line.steps[groups[cell].start] if 0 <= cell < len(groups) else None

    def cell_of(self, line: Line, number: int, width: int) -> int | None:
        """The cell in which the step with this number is drawn; None if the line has no such step."""
        if number not in line.steps:
            return None
        index = line.steps.index(number)
        return next((k for k, group in enumerate(line.groups(width)) if index < group.stop), None)

    def legend(self, line: Line) -> str:
        """Which steps these are, how long they take, and which are marked."""
        names = [str(n) for n, far in zip(line.steps, outliers(line), strict=True) if far]
        if not names:
            return wording.legend(line)
        first_names = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
        subject = f"steps {first_names} stand" if len(names) > 1 else f"step {first_names} stands"
        return f"{wording.legend(line)}; {OUTLIER} = {subject} out"

    def about(self, number: int) -> str:
        """How long the step with this number takes in each line."""
        line_texts = []
        for line in self.lines:
            if number in line.steps:
                index = line.steps.index(number)
                mark = " (compiles)" if line.marks[index] == "compiles" else ""
                value = line.values[index]
                took = "unknown" if value is None else duration(value)
                line_texts.append(f"{sanitize(line.name)} {took}{mark}")
        return f"step {number}: {', '.join(line_texts)}"


def strip_of(lines: Sequence[Line], selected: tuple[int, int] | None, selectable: bool = True) -> StepStrip:
    """The strip of these lines, with sanitized names."""
    return StepStrip(tuple(replace(line, name=sanitize(line.name)) for line in lines), selected, selectable)


def outliers(line: Line) -> list[bool]:
    """The steps that compile nothing, yet take far longer than most of these."""
    usual = line.usual
    if len(usual) < 4 or line.span:
        return [False] * len(line.values)
    low, middle, high = quantiles(usual, method="inclusive")
    limit = max(high + _FAR * (high - low), _OUTLIER_FACTOR * middle)
    pairs = zip(line.values, line.marks, strict=True)
    return [value is not None and mark != "compiles" and value > limit for value, mark in pairs]
