"""The colours of a timeline on a given background, or patterns if colours cannot distinguish the kinds."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from tracekit.timeline import CATEGORIES
from tracekit.timeline.colours import blend


class Ink(NamedTuple):
    """How some cells are drawn: their colours as hex triplets, and whether they are bold."""

    colour: str
    background: str
    bold: bool = False


Run = tuple[str, Ink]  # adjacent cells that are drawn alike
SHADES = 4  # shades of a colour, which say how much is covered


@dataclass(frozen=True)
class Palette:
    """The colours of the screen behind a timeline; with `patterns`, kinds are distinguished by characters as well."""

    background: str = "#121212"
    foreground: str = "#e0e0e0"
    accent: str = "#ffffff"
    patterns: bool = False

    @cached_property
    def track(self) -> str:
        """The background of a lane where nothing happens."""
        return blend(self.background, self.foreground, 0.05)

    @cached_property
    def muted(self) -> str:
        """The style of text beside the picture."""
        return blend(self.background, self.foreground, 0.6)

    @cached_property
    def line(self) -> str:
        """The style of the line between two steps."""
        return blend(self.background, self.foreground, 0.3)

    @cached_property
    def solid(self) -> list[tuple[str, str]]:
        """For each category, two shades, between which adjacent events of one kind alternate."""
        return [(each.colour, blend(each.colour, self.background, 0.18)) for each in CATEGORIES]

    @cached_property
    def lit(self) -> list[str]:
        """For each category, the shade of the selection."""
        return [blend(each.colour, self.accent, 0.6) for each in CATEGORIES]

    @cached_property
    def shades(self) -> list[list[str]]:
        """For each category, its shades from barely covered to fully covered."""
        shares = [0.4 + 0.6 * shade / (SHADES - 1) for shade in range(SHADES)]
        return [[blend(self.track, each.colour, share) for share in shares] for each in CATEGORIES]
