"""The whole widget, line by line: the scale, each variant with its steps and its lanes, remarks such as what is still
being indexed, and below them what is selected, in full, and what the colours stand for.

Lanes have a row of the screen each if they fit, or else the last ones share rows in pairs.
"""

from collections.abc import Sequence
from typing import overload

import numpy as np
from msgspec import Struct, field
from rich.cells import cell_len

from tracekit.base.intervals import Ints
from tracekit.base.names import short
from tracekit.base.units import count, duration, tick
from tracekit.timeline import CATEGORIES, NONE, Family, Index
from tracekit.timeline.index import short_name
from tracekit.tui.timeline.canvas import Ink, Inkwell, LanePainter, Run, fitted
from tracekit.tui.timeline.slices import Slice, alike, bounds, event, find, lane_of
from tracekit.tui.timeline.state import State
from tracekit.tui.timeline.view import Viewport

_TICK = 14  # columns between the marks of the scale, at least
_RANGE = 12  # columns of a range, at least, so that its length can be written on it
_MAY_SHARE: tuple[Family, ...] = ("frames", "host")
_FRAMES = 4  # rows of Python frames that are shown at first; the others are below the screen
_ROOMY = 14  # lines of the widget: with fewer, there is no legend
_ENCLOSING = 4  # enclosing events that are named, from the innermost on


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


def rendered(state: State | None, remarks: Sequence[str], width: int, height: int, inkwell: Inkwell) -> Frame:
    """As many lines as the widget is high; without a state, only the remarks."""
    palette = inkwell.palette
    footer_height = 2 if height >= _ROOMY else 1
    drawing = Drawing(width, height - footer_height - len(remarks), inkwell)
    frame, footer_lines = Frame(drawing), list[list[Run]]()
    if state is not None:
        names = short([index.profile.name for index in state.view.variants], drawing.gutter - 1)
        frame = draw(state, names, drawing)
        footer_lines = _footer(state, width, inkwell)[:footer_height]
    for remark in remarks:
        line = inkwell.row(width, palette.muted)
        line.write(remark, 1, width - 2, inkwell.plain(palette.foreground))
        frame.add(line.runs())
    room = height - len(footer_lines)
    del frame.lines[max(room, 0) :]
    while len(frame.lines) < room:
        frame.add(inkwell.row(width, palette.muted).runs())
    for line_runs in footer_lines:
        frame.add(line_runs)
    return frame


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
            palette, inkwell = drawing.inkwell.palette, drawing.inkwell
            line = inkwell.row(drawing.width, palette.muted)
            line.write(names[variant], 0, drawing.gutter - 1, inkwell.plain(palette.foreground, bold=True))
            line.write("has no such step", drawing.gutter, drawing.columns, inkwell.plain(palette.muted))
            frame.add(line.runs(), Spot(variant))
    return frame


def _draw_variant(frame: Frame, state: State, variant: int, height: int, drawing: Drawing) -> None:
    inkwell, palette = drawing.inkwell, drawing.inkwell.palette
    index, window = state.view.variants[variant], state.view.window(variant)
    lows = index.step_bounds[0]
    begins = np.zeros(drawing.columns, bool)
    begins[drawing.column(window, lows[(lows >= window[0]) & (lows < window[1])])] = True
    painter = LanePainter(index, drawing.edges(window), begins, inkwell)
    laid = rows(index, height, share=not palette.patterns)
    selection = state.selection if state.variant == variant else None
    place = (selection.group, selection.lane) if selection is not None else None
    cursor = next((k for k, row in enumerate(laid) if place in [(row.group, lane) for lane in row.lanes]), 0)
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
        gutter = inkwell.row(drawing.gutter, palette.muted)
        gutter.write("▸" if has_cursor else "", 0, 1, inkwell.plain(palette.accent, bold=True))
        gutter.write(title, 1, drawing.gutter - 2, inkwell.plain(palette.accent if has_cursor else palette.muted))
        frame.add([*gutter.runs(), *line.runs()], Spot(variant, row))


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


def _footer(state: State, width: int, inkwell: Inkwell) -> list[list[Run]]:
    """The lines below the lanes: a description of the selection, or else how much time is on the screen; and the kinds
    that occur, as many as fit, in the same order as in every face.
    """
    palette = inkwell.palette
    muted = inkwell.plain(palette.muted)
    locked = "share of the step" if state.view.lock == "share" else "time into the step"
    extent = f"{duration(state.view.span)} on the screen" + (f" ⇅ by {locked}" if len(state.view.variants) > 1 else "")
    described = inkwell.row(width, palette.foreground)
    if state.note or not state.is_selected:
        described.write(state.note or extent, 1, width - 2, muted)
    else:
        name = fitted(full_name(state.index, state.selection), max(width // 3, 10))
        described.write(name, 1, width - 2, inkwell.plain(palette.accent, bold=True))
        column = cell_len(name) + 3
        description = " · ".join(filter(None, (state.place, *facts(state.index, state.selection))))
        described.write(description, column, width - column - 1, inkwell.plain(palette.foreground))

    lanes = (lane for index in state.view.variants for group in index.groups for lane in group.lanes)
    codes = {code for lane in lanes for code in lane.categories}
    first_codes = {CATEGORIES[code].label: code for code in sorted(codes, reverse=True)}  # of kinds with one label
    legend, column = inkwell.row(width, palette.muted), 1
    for category in (CATEGORIES[code] for code in sorted(first_codes.values())):
        if column + len(category.label) + 2 > width:
            break
        sign = category.pattern if palette.patterns else "■"
        legend.write(sign, column, 1, inkwell.number(Ink(category.colour, palette.background)))
        legend.write(category.label, column + 2, len(category.label), muted)
        column += len(category.label) + 4
    if state.is_selected and column + len(extent) < width:
        legend.write(extent, width - len(extent) - 1, len(extent), muted)
    return [described.runs(), legend.runs()]


def full_name(index: Index, selection: Slice) -> str:
    """The full name, or the kind of a stretch that is no event. Text from the trace, not sanitized."""
    row = event(index, selection)
    category = CATEGORIES[lane_of(index, selection).category[selection.position]]
    if index.groups[selection.group].family == "wall":
        return f"{category.label}: {index.name(row)}" if row >= 0 else category.label
    return index.name(row) if row >= 0 else category.label


def facts(index: Index, selection: Slice) -> list[str]:
    """How long it took and when, its number among events of its name, what launched and encloses it. Not sanitized."""
    start, end = bounds(index, selection)
    group = index.groups[selection.group]
    phrases = [f"{duration(end - start)} on {group.title}" if group.family != "wall" else duration(end - start)]
    lows = index.step_bounds[0]
    step = int(np.searchsorted(lows, start, side="right")) - 1
    if step < 0:
        phrases.append(f"{duration(int(lows[0]) - start)} before step {index.numbers[0]}")
    else:
        phrases.append(f"{duration(start - int(lows[step]))} into step {index.numbers[step]}")
    rows = alike(index, selection)
    if len(rows) > 1:
        number = int(np.searchsorted(rows, event(index, selection))) + 1
        phrases.append(f"instance {count(number)} of {count(len(rows))}")
    if group.family != "gpu":
        enclosing = surrounding(index, selection)
        return [*phrases, "in " + " ← ".join(enclosing[:_ENCLOSING])] if enclosing else phrases
    trace = index.profile.trace
    call = int(trace.links.launch(np.array([event(index, selection)]))[0])
    if call < 0:
        return phrases
    launch = find(index, call)
    names = [index.name(call), *(surrounding(index, launch) if launch is not None else [])]
    waited = duration(start - int(trace.ts_ns[call]))
    return [*phrases, f"launched {waited} before by " + " ← ".join(names[:_ENCLOSING])]


def surrounding(index: Index, selection: Slice) -> list[str]:
    """Short names of the operators and Python frames that enclose an event on its thread, the innermost first."""
    group = index.groups[selection.group]
    start, end = bounds(index, selection)
    lanes = list(group.lanes[: selection.lane])
    if group.family == "host":
        frames = (g for g in index.groups if (g.family, g.track) == ("frames", group.track))
        lanes += [lane for frame in frames for lane in frame.lanes]
    enclosing = [
        (int(lane.start[position]), -int(lane.end[position]), int(lane.row[position]))
        for lane in lanes
        if (position := lane.at(start)) != NONE and lane.end[position] >= end
    ]
    return [short_name(index.name(row), on_gpu=False) for _, _, row in sorted(enclosing, reverse=True)]
