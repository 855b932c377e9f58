"""Below the picture: what is selected, in full, what the colours stand for, and how the variants are locked."""

import numpy as np
from rich.cells import cell_len

from tracekit.base.units import count, duration
from tracekit.timeline import CATEGORIES, NONE, Index
from tracekit.timeline.labels import short_name
from tracekit.tui.timeline.canvas import Ink, Inkwell, Run, fitted
from tracekit.tui.timeline.slices import Slice, alike, bounds, event, find, lane_of
from tracekit.tui.timeline.state import State

_ROOMY = 14  # lines of the widget: with fewer, there is no legend
_ENCLOSING = 4  # enclosing events that are named, from the innermost on


def height(room: int) -> int:
    """How many of the widget's lines the footer takes."""
    return 2 if room >= _ROOMY else 1


def draw(state: State, width: int, room: int, inkwell: Inkwell) -> list[list[Run]]:
    """The lines below the timeline: the selected event, and the legend if there is room."""
    return [_selected(state, width, inkwell), _legend(state, width, inkwell)][: height(room)]


def _selected(state: State, width: int, inkwell: Inkwell) -> list[Run]:
    """A description of the selection, or else how much time is on the screen."""
    palette = inkwell.palette
    line = inkwell.row(width, palette.foreground)
    if state.note or not state.is_selected:
        line.write(state.note or _extent(state), 1, width - 2, inkwell.plain(palette.muted))
        return line.runs()
    name = fitted(title(state.index, state.selection), max(width // 3, 10))
    line.write(name, 1, width - 2, inkwell.plain(palette.accent, bold=True))
    column = cell_len(name) + 3
    description = " · ".join(filter(None, (state.place, *facts(state.index, state.selection))))
    line.write(description, column, width - column - 1, inkwell.plain(palette.foreground))
    return line.runs()


def _extent(state: State) -> str:
    locked = "share of the step" if state.view.lock == "share" else "time into the step"
    return f"{duration(state.view.span)} on the screen" + (f" ⇅ by {locked}" if len(state.view.variants) > 1 else "")


def _legend(state: State, width: int, inkwell: Inkwell) -> list[Run]:
    """The kinds that occur, as many as fit, in the same order as in every face."""
    palette = inkwell.palette
    line = inkwell.row(width, palette.muted)
    column = 1
    for code in _occurring(state):
        category = CATEGORIES[code]
        if column + len(category.label) + 2 > width:
            break
        sign = category.pattern if palette.patterns else "■"
        line.write(sign, column, 1, inkwell.number(Ink(category.colour, palette.background)))
        line.write(category.label, column + 2, len(category.label), inkwell.plain(palette.muted))
        column += len(category.label) + 4
    extent = _extent(state)
    if state.is_selected and column + len(extent) < width:
        line.write(extent, width - len(extent) - 1, len(extent), inkwell.plain(palette.muted))
    return line.runs()


def _occurring(state: State) -> list[int]:
    lanes = (lane for index in state.view.variants for group in index.groups for lane in group.lanes)
    codes = {code for lane in lanes for code in lane.categories}
    labels = {CATEGORIES[code].label: code for code in sorted(codes, reverse=True)}
    return sorted(labels.values())


def title(index: Index, selection: Slice) -> str:
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
    phrases.append(_time_in_step(index, start))
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


def _time_in_step(index: Index, start: int) -> str:
    """The time since its step began, or until the first step if it precedes all steps."""
    lows = index.step_bounds[0]
    step = int(np.searchsorted(lows, start, side="right")) - 1
    if step < 0:
        return f"{duration(int(lows[0]) - start)} before step {index.numbers[0]}"
    return f"{duration(start - int(lows[step]))} into step {index.numbers[step]}"


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
