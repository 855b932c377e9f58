"""A lane as a line of the screen: eighths of blocks say how much of a column is covered; names are written if they fit.

If there are few rows, two lanes share a line, as halves of blocks whose strength of colour says how much is covered.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich.cells import cell_len

from tracekit.intervals import Bools, Ints, runs
from tracekit.timeline import CATEGORIES, NONE, Columns, Index
from tracekit.timeline.labels import labels
from tracekit.tui.timeline.canvas import Inks, Inkwell, Line
from tracekit.tui.timeline.palette import SHADES

_HEIGHTS = np.array([*" ▁▂▃▄▅▆▇█"])
_PATTERNS = np.array([*(each.pattern for each in CATEGORIES), " "])  # the last is that of NONE
_LITTLE = "·"  # in place of a pattern, if less than an eighth is covered
_STEP = "│"
_ON, _BESIDE = 4, 5  # cells that a name needs, on an event or beside it
_READABLE = 5  # cells of a name that is cut, at least
_SHORT = 3  # columns of a stretch that has its name beside it, at most


@dataclass(frozen=True)
class LanePainter:
    """Draws the lanes of a variant in the columns between `edges`; `begins` are the columns in which steps begin."""

    index: Index
    edges: Ints
    begins: Bools
    inkwell: Inkwell

    def one_lane(self, group: int, lane: int) -> Line:
        """Draw a lane that has a line of its own."""
        columns = self.index.groups[group].lanes[lane].columns(self.edges)
        empty = columns.category == NONE
        height = np.where(empty, 0, np.clip(np.rint(columns.share * 8), 1, 8)).astype(np.int64)
        chars = self._patterns(columns, height) if self.inkwell.palette.patterns else _HEIGHTS[height]
        shades = _shades(columns)
        inks = np.where(empty, self.inkwell.blank, self.inkwell.solid[shades])
        line = Line(np.where(empty & self.begins, _STEP, chars).tolist(), inks, self.inkwell)
        named = self._write_on(line, np.where(height == 8, columns.filling, NONE), shades, group, lane)
        if self.index.groups[group].family == "wall":
            self._write_kinds(line, columns, height == 8, named)
        self._write_beside(line, columns, named, group, lane)
        return line

    def two_lanes(self, group: int, upper: int, lower: int) -> Line:
        """Draw two lanes, one above the other, on one line."""
        lanes = self.index.groups[group].lanes
        above, below = (_strengths(lanes[lane].columns(self.edges)) for lane in (upper, lower))
        empty = (above == NONE) & (below == NONE)
        inks = np.where(empty, self.inkwell.blank, self.inkwell.halves(above, below))
        chars = np.where(empty, np.where(self.begins, _STEP, " "), "▀")
        return Line(chars.tolist(), inks, self.inkwell)

    def _patterns(self, columns: Columns, height: Ints) -> "np.ndarray[tuple[int], np.dtype[np.str_]]":
        return np.where(height == 1, _LITTLE, _PATTERNS[columns.category])

    def _write_on(self, line: Line, events: Ints, shades: Ints, group: int, lane: int) -> Bools:
        """Write names on the events that fill enough columns. Returns the columns of these events."""
        bounds = runs(events)
        named = np.zeros(len(events), bool)
        for run in np.flatnonzero(np.diff(bounds) >= _ON).tolist():
            first, beyond, event = int(bounds[run]), int(bounds[run + 1]), int(events[bounds[run]])
            if event == NONE:
                continue
            ink = int(self.inkwell.on_solid[shades[first]])
            if not self.inkwell.palette.patterns:
                line.write(" " * (beyond - first), first, beyond - first, ink)
            texts = labels(self.index, self.index.groups[group], lane, event)
            line.write(_readable(texts, beyond - first - 2), first + 1, beyond - first - 2, ink)
            named[first:beyond] = True
        return named

    def _write_kinds(self, line: Line, columns: Columns, full: Bools, named: Bools) -> None:
        """Write their kind on many short stretches of one kind."""
        categories = np.where(full & ~named, columns.category, NONE)
        bounds = runs(categories)
        for run in np.flatnonzero(np.diff(bounds) >= _ON).tolist():
            first, beyond, category = int(bounds[run]), int(bounds[run + 1]), int(categories[bounds[run]])
            text = CATEGORIES[category].label
            if category != NONE and len(text) + 2 <= beyond - first:
                ink = int(self.inkwell.on_solid[category * 2])
                line.write(f" {text} ", first + (beyond - first - len(text) - 2) // 2, len(text) + 2, ink)

    def _write_beside(self, line: Line, columns: Columns, named: Bools, group: int, lane: int) -> None:
        """Write the names of short events that nothing follows; among neighbours, only that of the longest."""
        bounds = runs((columns.category == NONE).astype(np.int8))
        low, middle, high = bounds[:-2], bounds[1:-1], bounds[2:]  # adjacent stretches, from edge to edge
        chosen = (columns.category[low] != NONE) & (middle - low <= _SHORT) & (high - middle >= _BESIDE) & ~named[low]
        if not chosen.any():
            return
        events = columns.event(low[chosen], middle[chosen])
        for event, first, beyond in zip(events.tolist(), middle[chosen].tolist(), high[chosen].tolist(), strict=True):
            texts = labels(self.index, self.index.groups[group], lane, event)
            line.write(_readable(texts, beyond - first - 1), first, beyond - first - 1, self.inkwell.beside)


def _readable(texts: Sequence[str], room: int) -> str:
    """The longest name that fits, or else the last one cut if that is legible: `113…` of a duration would mislead."""
    cut = texts[-1] if room >= _READABLE and not texts[-1][:1].isdigit() else ""
    return next((text for text in texts if cell_len(text) <= room), cut)


def _shades(columns: Columns) -> Ints:
    """Alternate between the two shades of a category where neighbours of it can be distinguished."""
    turns: Ints = columns.category.astype(np.int64) * 2 + ((columns.filling & 1) & (columns.filling != NONE))
    return turns


def _strengths(columns: Columns) -> Inks:
    """For each column, the number of its shade; NONE if nothing happens in it."""
    strength = np.minimum((columns.share * SHADES).astype(np.int32), SHADES - 1)
    return np.where(columns.category == NONE, NONE, columns.category * np.int32(SHADES) + strength).astype(np.int32)
