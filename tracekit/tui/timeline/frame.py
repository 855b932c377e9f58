"""The whole picture, line by line: first the scale, then each variant with its steps and its lanes.

Which lanes are on which rows of the screen: one on each if they fit, or else the last ones in pairs.

A lane as a line of the screen: eighths of blocks say how much of a column is covered; names are written if they fit.

If there are few rows, two lanes share a line, as halves of blocks whose strength of colour says how much is covered.
"""

from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np
from msgspec import Struct, field
from rich.cells import cell_len

from tracekit.base.intervals import Bools, Ints, runs
from tracekit.base.units import duration, tick
from tracekit.timeline import CATEGORIES, NONE, Columns, Family, Index
from tracekit.timeline.labels import labels
from tracekit.tui.timeline.canvas import SHADES, Inks, Inkwell, Run, TextRow
from tracekit.tui.timeline.slices import Slice, lane_of
from tracekit.tui.timeline.state import State
from tracekit.tui.timeline.view import Viewport

_TICK = 14  # columns between the marks of the scale, at least
_RANGE = 12  # columns of a range, at least, so that its length can be written on it
_MAY_SHARE: tuple[Family, ...] = ("frames", "host")
_FRAMES = 4  # rows of Python frames that are shown at first; the others are below the screen
_HEIGHTS = np.array([*" ▁▂▃▄▅▆▇█"])
_PATTERNS = np.array([*(category.pattern for category in CATEGORIES), " "])  # the last is that of NONE
_PATTERN_OF_LITTLE = "·"  # in place of a pattern, if less than an eighth is covered
_STEP = "│"
_NAME_ON, _NAME_BESIDE = 4, 5  # cells that a name needs, on an event or beside it
_READABLE = 5  # cells of a name that is cut, at least
_NARROW_STRETCH = 3  # columns of a stretch that has its name beside it, at most


class Row(Struct, frozen=True):
    """A row of a variant: one or two lanes of a group, whose first row has the `title`."""

    group: int
    lanes: tuple[int] | tuple[int, int]
    title: str = ""


class Spot(Struct, frozen=True):
    """The variant and the lanes that are on a line of the frame; without a row it is the variant's heading."""

    variant: int
    row: Row | None = None


class Drawing(Struct, frozen=True):
    """The size of the picture, and the inks with which it is drawn."""

    width: int
    height: int
    inkwell: Inkwell

    @property
    def gutter(self) -> int:
        """The cells for the titles of the lanes."""
        return min(max(self.width // 6, 9), 20)

    @property
    def columns(self) -> int:
        """The cells for the lanes."""
        return max(self.width - self.gutter, 1)

    def edges(self, window: tuple[int, int]) -> Ints:
        """The moments that bound the columns."""
        low, high = window
        return low + np.arange(self.columns + 1, dtype=np.int64) * (high - low) // self.columns

    @overload
    def column(self, window: tuple[int, int], moment: int) -> int: ...

    @overload
    def column(self, window: tuple[int, int], moment: Ints) -> Ints: ...

    def column(self, window: tuple[int, int], moment: int | Ints) -> int | Ints:
        """The column of a moment, or of each of several moments, which may lie outside the picture."""
        low, high = window
        return (moment - low) * self.columns // (high - low)


class Frame(Struct):
    """The lines, and what each of them shows, which is None for the scale."""

    drawing: Drawing
    lines: list[list[Run]] = field(default_factory=list)
    spots: list[Spot | None] = field(default_factory=list)

    def add(self, line: list[Run], spot: Spot | None = None) -> None:
        """Append a line."""
        self.lines.append(line)
        self.spots.append(spot)


def draw(state: State, names: Sequence[str], drawing: Drawing) -> Frame:
    """Draw the scale, and as many rows of each variant as fit, including that of the lane that has the cursor."""
    frame = Frame(drawing)
    frame.add(_scale(state, drawing))
    room = max(drawing.height - 1 - len(names), len(names))
    row_counts = heights([sum(len(group.lanes) for group in index.groups) for index in state.view.variants], room)
    for variant, height in enumerate(row_counts):
        if state.view.has_step(variant):
            frame.add(_heading(state.view, variant, names[variant], drawing), Spot(variant))
            _draw_variant(frame, state, variant, height, drawing)
        else:
            frame.add(_absent(names[variant], drawing), Spot(variant))
    return frame


def _draw_variant(frame: Frame, state: State, variant: int, height: int, drawing: Drawing) -> None:
    index, window = state.view.variants[variant], state.view.window(variant)
    lows = index.step_bounds[0]
    begins = np.zeros(drawing.columns, bool)
    begins[drawing.column(window, lows[(lows >= window[0]) & (lows < window[1])])] = True
    painter = LanePainter(index, drawing.edges(window), begins, drawing.inkwell)
    laid = rows(index, height, share=not drawing.inkwell.palette.patterns)
    selection = state.selection if state.variant == variant else None
    cursor = next((k for k, row in enumerate(laid) if selection and _is_on(selection, row)), 0)
    first = 1 + max(cursor - height + 1, 0)  # the wall lane is always shown
    row_numbers = [0, *range(first, min(first + height - 1, len(laid)))]
    for number in row_numbers:
        row = laid[number]
        line = (
            painter.one_lane(row.group, *row.lanes) if len(row.lanes) == 1 else painter.two_lanes(row.group, *row.lanes)
        )
        has_cursor = selection is not None and number == cursor
        if has_cursor and state.is_selected:
            start, end = (drawing.column(window, moment) for moment in state.stretch)
            category = int(lane_of(index, state.selection).category[state.selection.position])
            upper = state.selection.lane == row.lanes[0] if len(row.lanes) == 2 else None
            line.select(start, max(end, start + 1), category, upper)
        rows_below = len(laid) - 1 - number if number == row_numbers[-1] else 0
        title = row.title or (f"↓ {rows_below} more" if rows_below else "")
        frame.add([*_title(title, has_cursor, drawing), *line.runs()], Spot(variant, row))


def _is_on(selection: Slice, row: Row) -> bool:
    return selection.group == row.group and selection.lane in row.lanes


def _absent(name: str, drawing: Drawing) -> list[Run]:
    inkwell, palette = drawing.inkwell, drawing.inkwell.palette
    line = inkwell.row(drawing.width, palette.muted)
    line.write(name, 0, drawing.gutter - 1, inkwell.plain(palette.foreground, bold=True))
    line.write("has no such step", drawing.gutter, drawing.columns, inkwell.plain(palette.muted))
    return line.runs()


def _title(title: str, has_cursor: bool, drawing: Drawing) -> list[Run]:
    inkwell, palette = drawing.inkwell, drawing.inkwell.palette
    line = inkwell.row(drawing.gutter, palette.muted)
    line.write("▸" if has_cursor else "", 0, 1, inkwell.plain(palette.accent, bold=True))
    line.write(title, 1, drawing.gutter - 2, inkwell.plain(palette.accent if has_cursor else palette.muted))
    return line.runs()


def _heading(view: Viewport, variant: int, name: str, drawing: Drawing) -> list[Run]:
    """The variant's name, and the numbers of its steps where they begin, as many as fit."""
    inkwell, palette = drawing.inkwell, drawing.inkwell.palette
    index, window = view.variants[variant], view.window(variant)
    title = inkwell.row(drawing.gutter, palette.foreground)
    title.write(name, 0, drawing.gutter - 1, inkwell.plain(palette.foreground, bold=True))
    line = inkwell.row(drawing.columns, palette.line, "─")
    lows, highs = index.step_bounds
    first = int(np.searchsorted(highs, window[0], side="right"))
    stop = int(np.searchsorted(lows, window[1], side="left"))
    columns = np.maximum(drawing.column(window, lows[first:stop]), 0)
    # Of steps that share a column, the last one is shown.
    step_columns, before_last = np.unique(columns[::-1], return_index=True)
    steps = (len(columns) - 1 - before_last + first).tolist()
    free = 0
    ends = [*step_columns[1:].tolist(), drawing.columns]
    for step, column, end in zip(steps, step_columns.tolist(), ends, strict=False):
        text = f"┬ step {index.numbers[step]} "
        if column < free or (end - column < len(text) and lows[step] < window[0]):
            continue  # it does not fit, or would take the room of the next one
        ink = inkwell.plain(palette.accent, bold=True) if step == view.step else inkwell.plain(palette.muted)
        line.write(text if column + len(text) <= drawing.columns else "┬", column, len(text), ink)
        free = column + len(text)
    return [*title.runs(), *line.runs()]


def _scale(state: State, drawing: Drawing) -> list[Run]:
    """Marks at round offsets from where the step begins, and the chosen range."""
    view, inkwell, palette = state.view, drawing.inkwell, drawing.inkwell.palette
    ink = inkwell.plain(palette.muted)
    line = inkwell.row(drawing.width, palette.muted)
    shares = view.lock == "share"
    unit = view.length(view.lead) / 1000 if shares else 1.0  # locked by share, marks are at multiples of 0.1 %
    step = round_step(view.span / unit * _TICK / drawing.columns)
    low, high = (
        (-1, -1) if state.range is None else (drawing.column((view.low, view.high), offset) for offset in state.range)
    )
    low, high = max(low, 0), min(max(high, low + _RANGE), drawing.columns)
    for mark in range(-(-int(view.low / unit) // step), int(view.high / unit) // step + 1):
        column = drawing.column((view.low, view.high), round(mark * step * unit))
        text = f"{mark * step / 10:.1f} %" if shares else tick(mark * step, step)
        if 0 <= column < drawing.columns and (state.range is None or column + len(text) < low or column > high):
            line.write(
                f"╷{text}" if column + len(text) < drawing.columns else "╷", drawing.gutter + column, _TICK - 1, ink
            )
    if state.range is not None:
        text = f" {duration(state.range[1] - state.range[0])} ".center(max(high - low, 2) - 2, "─")
        line.write(f"├{text}┤", drawing.gutter + low, high - low, inkwell.plain(palette.accent, bold=True))
    return line.runs()


def round_step(minimum: float) -> int:
    """The smallest number that is 1, 2 or 5 times a power of ten and at least this large."""
    power: int = 10 ** int(np.log10(max(minimum, 1)))
    return next(digit * power for digit in (1, 2, 5, 10) if digit * power >= minimum)


def rows(index: Index, room: int, share: bool = True) -> list[Row]:
    """All lanes of a variant from top to bottom; if they do not all fit, the last ones share rows."""
    excess = sum(len(group.lanes) for group in index.groups) - room if share else 0
    laid: list[Row] = []
    for number, group in reversed([*enumerate(index.groups)]):
        count = len(group.lanes)
        pairs = min(count // 2, max(excess, 0)) if group.family in _MAY_SHARE else 0
        excess -= pairs + (max(count - pairs - _FRAMES, 0) if group.family == "frames" else 0)
        single = count - 2 * pairs
        lanes: list[tuple[int] | tuple[int, int]] = [(lane,) for lane in range(single)]
        lanes += [(lane, lane + 1) for lane in range(single, count, 2)]
        laid[:0] = [Row(number, row_lanes, group.title if not k else "") for k, row_lanes in enumerate(lanes)]
    return laid


def heights(lane_counts: Sequence[int], room: int) -> list[int]:
    """How many rows each variant gets: as many as it wants, or an equal part of what is left."""
    row_counts = [0] * len(lane_counts)
    for number, _ in sorted(enumerate(lane_counts), key=lambda numbered: numbered[1]):
        waiting = sum(1 for height in row_counts if not height)
        row_counts[number] = max(min(lane_counts[number], room // waiting), 1)
        room -= row_counts[number]
    return row_counts


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
        if self.index.groups[group].family == "wall":
            self._write_kinds(line, np.where((height == 8) & ~is_named, columns.category, NONE))
        self._write_beside(line, columns, is_named, group, lane)
        return line

    def two_lanes(self, group: int, upper: int, lower: int) -> TextRow:
        """Draw two lanes, one above the other, on one line."""
        lanes = self.index.groups[group].lanes
        upper_shades, lower_shades = (_strengths(lanes[lane].columns(self.edges)) for lane in (upper, lower))
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

    def _write_kinds(self, line: TextRow, categories: Ints) -> None:
        """Write their kind on many short stretches of one kind."""
        for first, stop, category in _long_runs(categories):
            text = f" {CATEGORIES[category].label} "
            if len(text) <= stop - first:
                ink = int(self.inkwell.on_solid[category * 2])
                line.write(text, first + (stop - first - len(text)) // 2, len(text), ink)

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


def _strengths(columns: Columns) -> Inks:
    """For each column, the number of its shade; NONE if nothing happens in it."""
    strength = np.minimum((columns.share * SHADES).astype(np.int32), SHADES - 1)
    return np.where(columns.category == NONE, NONE, columns.category * np.int32(SHADES) + strength).astype(np.int32)
