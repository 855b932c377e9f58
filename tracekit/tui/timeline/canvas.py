"""One line of the screen, cell by cell: the characters, and for each the number of the ink with which it is drawn, in
colours that suit the background, or in patterns if colours cannot distinguish the kinds.

On the line of a lane, eighths of blocks say how much of a column is covered, and names are written if they fit. Two
lanes share a line as halves of blocks whose strength of colour says it.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from rich.cells import cell_len, set_cell_size

from tracekit.base.intervals import Bools, Ints, runs
from tracekit.base.names import sanitize
from tracekit.timeline import CATEGORIES, NONE, Columns, Index
from tracekit.timeline.categories import blend, readable_on
from tracekit.timeline.index import labels

Inks = NDArray[np.int32]
SHADES = 4  # shades of a colour, which say how much is covered
_HEIGHTS = np.array([*" ▁▂▃▄▅▆▇█"])
_PATTERNS = np.array([*(category.pattern for category in CATEGORIES), " "])  # the last is that of NONE
_PATTERN_OF_LITTLE = "·"  # in place of a pattern, if less than an eighth is covered
_STEP = "│"
_NAME_ON, _NAME_BESIDE = 4, 5  # cells that a name needs, on an event or beside it
_READABLE = 5  # cells of a name that is cut, at least
_NARROW_STRETCH = 3  # columns of a stretch that has its name beside it, at most


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


class LanePainter(Struct, frozen=True):
    """Draws the lanes of a variant in the columns between `edges`; `begins` are the columns in which steps begin."""

    index: Index
    edges: Ints
    begins: Bools
    inkwell: Inkwell

    def one_lane(self, group: int, lane: int) -> TextRow:
        """Draw a lane that has a line of its own."""
        columns = self.index.groups[group].lanes[lane].columns(self.edges)
        empty = columns.category == NONE
        height = np.where(empty, 0, np.clip(np.rint(columns.share * 8), 1, 8)).astype(np.int64)
        chars = _HEIGHTS[height]
        if self.inkwell.palette.patterns:
            chars = np.where(height == 1, _PATTERN_OF_LITTLE, _PATTERNS[columns.category])
        # Alternate between the two shades of a category where neighbours of it can be distinguished.
        shades: Ints = columns.category.astype(np.int64) * 2 + ((columns.filling & 1) & (columns.filling != NONE))
        inks = np.where(empty, self.inkwell.blank, self.inkwell.solid[shades])
        line = TextRow(np.where(empty & self.begins, _STEP, chars).tolist(), inks, self.inkwell)
        is_named = self._write_on(line, np.where(height == 8, columns.filling, NONE), shades, group, lane)
        if self.index.groups[group].family == "wall":  # many short stretches of one kind get the name of their kind
            for first, stop, category in _long_runs(np.where((height == 8) & ~is_named, columns.category, NONE)):
                text = f" {CATEGORIES[category].label} "
                if len(text) <= stop - first:
                    ink = int(self.inkwell.on_solid[category * 2])
                    line.write(text, first + (stop - first - len(text)) // 2, len(text), ink)
        self._write_beside(line, columns, is_named, group, lane)
        return line

    def two_lanes(self, group: int, upper: int, lower: int) -> TextRow:
        """Draw two lanes, one above the other, on one line."""
        lane_shades = []  # for each column, the number of its shade; NONE if nothing happens in it
        for lane in (upper, lower):
            columns = self.index.groups[group].lanes[lane].columns(self.edges)
            strength = np.minimum((columns.share * SHADES).astype(np.int32), SHADES - 1)
            shades = np.where(columns.category == NONE, NONE, columns.category * np.int32(SHADES) + strength)
            lane_shades.append(shades.astype(np.int32))
        upper_shades, lower_shades = lane_shades
        empty = (upper_shades == NONE) & (lower_shades == NONE)
        inks = np.where(empty, self.inkwell.blank, self.inkwell.halves(upper_shades, lower_shades))
        chars = np.where(empty, np.where(self.begins, _STEP, " "), "▀")
        return TextRow(chars.tolist(), inks, self.inkwell)

    def _write_on(self, line: TextRow, events: Ints, shades: Ints, group: int, lane: int) -> Bools:
        """Write names on the events that fill enough columns. Returns the columns of these events."""
        is_named = np.zeros(len(events), bool)
        for first, stop, event in _long_runs(events):
            ink = int(self.inkwell.on_solid[shades[first]])
            if not self.inkwell.palette.patterns:
                line.write(" " * (stop - first), first, stop - first, ink)
            line.write(self._name(group, lane, event, stop - first - 2), first + 1, stop - first - 2, ink)
            is_named[first:stop] = True
        return is_named

    def _write_beside(self, line: TextRow, columns: Columns, is_named: Bools, group: int, lane: int) -> None:
        """Write the names of short events that nothing follows; among neighbours, only that of the longest."""
        bounds = runs((columns.category == NONE).astype(np.int8))
        low, middle, high = bounds[:-2], bounds[1:-1], bounds[2:]  # adjacent stretches, from edge to edge
        is_labelled = (
            (columns.category[low] != NONE)
            & (middle - low <= _NARROW_STRETCH)
            & (high - middle >= _NAME_BESIDE)
            & ~is_named[low]
        )
        if not is_labelled.any():
            return
        events = columns.event(low[is_labelled], middle[is_labelled]).tolist()
        firsts, stops = middle[is_labelled].tolist(), high[is_labelled].tolist()
        for event, first, stop in zip(events, firsts, stops, strict=True):
            room = stop - first - 1
            line.write(self._name(group, lane, event, room), first, room, self.inkwell.beside)

    def _name(self, group: int, lane: int, event: int, room: int) -> str:
        """The longest name of an event that fits, or else the last one cut if that is legible: `113…` of a duration
        would mislead.
        """
        texts = labels(self.index, self.index.groups[group], lane, event)
        cut = texts[-1] if room >= _READABLE and not texts[-1][:1].isdigit() else ""
        return next((text for text in texts if cell_len(text) <= room), cut)


def _long_runs(values: Ints) -> Iterator[tuple[int, int, int]]:
    """Where there is room for a name: the first column of a run of equal values, that after its last, and the value."""
    bounds = runs(values)
    for run in np.flatnonzero(np.diff(bounds) >= _NAME_ON).tolist():
        first, stop = int(bounds[run]), int(bounds[run + 1])
        if values[first] != NONE:
            yield first, stop, int(values[first])
