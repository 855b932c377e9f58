"""The steps of a variant one by one, as a line of small bars; those that compile are marked."""

from dataclasses import dataclass

from tracekit.faces.shared import sparks
from tracekit.report.blocks import Line
from tracekit.sanitize import sanitize

COMPILES, UNKNOWN = sparks.COMPILES, sparks.UNKNOWN


@dataclass(frozen=True)
class Pulse:
    """One line of a series."""

    line: Line

    @property
    def name(self) -> str:
        """Whose steps they are."""
        return sanitize(self.line.name)

    @property
    def legend(self) -> str:
        """Which steps, and how long they take."""
        return sparks.legend(self.line)

    def glyphs(self, width: int) -> str:
        """The line in at most so many cells."""
        return sparks.glyphs(self.line, width)
