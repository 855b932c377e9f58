"""Text of a terminal, wrapped where it is read well: lines are short, and a number and its unit stay together."""

import re

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.text import Text

PROSE = 100  # columns: longer lines are hard to read
# The space between a number and its unit.
UNIT = re.compile(r"(?<=\d) (?=(?:[nµm]?s|min|h|%|×|[KMGT]?i?B)(?!\w))")
_GLUE = "\ue000"  # stands for a space at which a line must not end: wrapping ends lines at no-break spaces, too


class Prose:
    """Text in lines of at most `PROSE` columns."""

    def __init__(self, text: Text) -> None:
        self.text = text.copy()
        self.text.plain = UNIT.sub(_GLUE, text.plain)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self.text.wrap(console, min(options.max_width, PROSE)):
            line.plain = line.plain.replace(_GLUE, " ")
            yield line

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement.get(console, options, self.text).with_maximum(PROSE)
