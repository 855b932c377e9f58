"""One line of the screen, cell by cell: the characters, and for each the number of the ink with which it is drawn.

The colours of a timeline on a given background, or patterns if colours cannot distinguish the kinds.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from rich.cells import cell_len, set_cell_size

from tracekit.base.intervals import runs
from tracekit.base.names import sanitize
from tracekit.timeline import CATEGORIES
from tracekit.timeline.categories import blend, readable_on

Inks = NDArray[np.int32]
SHADES = 4  # shades of a colour, which say how much is covered


class Ink(NamedTuple):
    """How some cells are drawn: their colours as hex triplets, and whether they are bold."""

    colour: str
    background: str
    bold: bool = False


class Palette(Struct, frozen=True, dict=True):
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
        return [(category.colour, blend(category.colour, self.background, 0.18)) for category in CATEGORIES]

    @cached_property
    def lit(self) -> list[str]:
        """For each category, the shade of the selection."""
        return [blend(category.colour, self.accent, 0.6) for category in CATEGORIES]

    @cached_property
    def shades(self) -> list[list[str]]:
        """For each category, its shades from barely covered to fully covered."""
        shares = [0.4 + 0.6 * shade / (SHADES - 1) for shade in range(SHADES)]
        return [[blend(self.track, category.colour, share) for share in shares] for category in CATEGORIES]


class Inkwell:
    """The inks of a palette, by number, so that a whole line can be coloured at once."""

    def __init__(self, palette: Palette) -> None:
        self.palette = palette
        self._inks: list[Ink] = []
        self._numbers: dict[Ink, int] = {}

    def __getitem__(self, number: int) -> Ink:
        return self._inks[number]

    def number(self, ink: Ink) -> int:
        """The number of an ink."""
        if ink not in self._numbers:
            self._numbers[ink] = len(self._inks)
            self._inks.append(ink)
        return self._numbers[ink]

    def plain(self, colour: str, bold: bool = False) -> int:
        """Text beside the picture."""
        return self.number(Ink(colour, self.palette.background, bold))

    def row(self, width: int, colour: str, char: str = " ") -> "TextRow":
        """A line that is the same everywhere."""
        return TextRow(char * width, np.full(width, self.plain(colour), np.int32), self)

    def _numbered(self, inks: Iterable[Ink]) -> Inks:
        return np.array([self.number(ink) for ink in inks], np.int32)

    @cached_property
    def blank(self) -> int:
        """The inks of an empty lane, and of the mark of a step on it."""
        return self.number(Ink(self.palette.line, self.palette.track))

    @cached_property
    def solid(self) -> Inks:
        """For each category, two alternating inks of its events."""
        return self._numbered(Ink(shade, self.palette.track) for pair in self.palette.solid for shade in pair)

    @cached_property
    def on_solid(self) -> Inks:
        """For each category, the two inks of text on its events; with patterns, they have no background."""
        if self.palette.patterns:
            return self.solid
        return self._numbered(Ink(readable_on(shade), shade) for pair in self.palette.solid for shade in pair)

    @cached_property
    def beside(self) -> int:
        """The ink of a name beside a short event."""
        return self.number(Ink(self.palette.muted, self.palette.track))

    def selected(self, category: int, written: bool) -> int:
        """The ink of the selected stretch of a category, or of the text written on it."""
        palette = self.palette
        if palette.patterns:
            return self.number(Ink(palette.background, palette.accent, bold=True))
        light = palette.lit[category]
        if written:
            return self.number(Ink(readable_on(light), light, bold=True))
        return self.number(Ink(light, blend(palette.track, palette.accent, 0.3)))

    def half_selected(self, ink: int, category: int, upper: bool) -> int:
        """An ink of two halves, one of which belongs to the selected stretch of a category."""
        light = self.palette.lit[category]
        return self.number(self[ink]._replace(colour=light) if upper else self[ink]._replace(background=light))

    def halves(self, upper: Inks, lower: Inks) -> Inks:
        """The inks of cells whose upper half has one shade and whose lower half another; −1 for nothing."""
        shades = [self.palette.track, *(shade for category_shades in self.palette.shades for shade in category_shades)]
        pairs, pair_indices = np.unique((upper + 1) * len(shades) + lower + 1, return_inverse=True)
        inks = self._numbered(Ink(shades[pair // len(shades)], shades[pair % len(shades)]) for pair in pairs.tolist())
        cell_inks: Inks = inks[pair_indices.reshape(-1)]
        return cell_inks


Run = tuple[str, Ink]  # adjacent cells that are drawn alike


class TextRow:
    """A line that is being drawn."""

    def __init__(self, chars: Sequence[str], inks: Inks, inkwell: Inkwell) -> None:
        self._chars, self._inks, self._inkwell = list(chars), inks, inkwell

    def __len__(self) -> int:
        return len(self._chars)

    def write(self, text: str, first: int, room: int, ink: int) -> None:
        """Write text, which may come from a trace, cut to the room; write nothing if there is none."""
        room = min(room, len(self) - first)
        if room <= 0 or first < 0:
            return
        fitted_text = fitted(text, room)
        cells = list(fitted_text)
        if not fitted_text.isascii():
            cells = [part for char in fitted_text for part in (char, *[""] * (cell_len(char) - 1))]
        self._chars[first : first + len(cells)] = cells
        self._inks[first : first + len(cells)] = ink

    def select(self, first: int, stop: int, category: int, upper: bool | None = None) -> None:
        """Draw some cells as the selected stretch of a category; with two lanes, in the upper or the lower half."""
        for cell in range(max(first, 0), min(stop, len(self))):
            if upper is None:
                is_filled = self._inkwell[int(self._inks[cell])].background != self._inkwell.palette.track
                self._inks[cell] = self._inkwell.selected(category, written=is_filled)
            else:
                self._chars[cell] = "▀"
                self._inks[cell] = self._inkwell.half_selected(int(self._inks[cell]), category, upper)

    def runs(self) -> list[Run]:
        """The line as runs of neighbouring cells that have the same ink."""
        bounds = runs(self._inks).tolist()
        return [
            ("".join(self._chars[first:stop]), self._inkwell[int(self._inks[first])])
            for first, stop in pairwise(bounds)
            if stop > first
        ]


def fitted(text: str, room: int) -> str:
    """The text without control characters, in at most `room` cells; a text that is cut ends in `…`."""
    sanitized = sanitize(text)
    if cell_len(sanitized) <= room:
        return sanitized
    return set_cell_size(sanitized, room - 1).rstrip() + "…" if room > 1 else "…"[:room]
