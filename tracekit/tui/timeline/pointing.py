"""What the mouse points at: a click selects, a drag moves through time, and the wheel zooms."""

from dataclasses import dataclass, replace

import numpy as np

from tracekit.timeline import NONE
from tracekit.tui.timeline.frame import Frame
from tracekit.tui.timeline.slices import Slice
from tracekit.tui.timeline.state import State

WHEEL = 1.25  # zoom factor for each notch


@dataclass(frozen=True)
class Drag:
    """Where a button was pressed, and what was on the screen; `moved` once the pointer has left that column."""

    column: int
    state: State
    moved: bool = False

    def to(self, column: int, frame: Frame) -> "tuple[Drag, State]":
        """What is on the screen once the pointer is in this column."""
        by = (self.column - column) / frame.drawing.columns
        return replace(self, moved=self.moved or column != self.column), self.state.pan(by)


def share(column: int, frame: Frame) -> float:
    """A column as a share of the picture's width, 0 … 1."""
    return min(max((column - frame.drawing.gutter) / frame.drawing.columns, 0.0), 1.0)


def clicked(state: State, frame: Frame, column: int, line: int) -> State:
    """The state after a click: selects the longest stretch in the column, and of two lanes the inner one."""
    spot = frame.spots[line] if line < len(frame.spots) else None
    if spot is None:
        return state
    if spot.row is None:
        return state.lane_at(spot.variant, 0, 0)
    at = column - frame.drawing.gutter
    if not 0 <= at < frame.drawing.columns:
        return state.lane_at(spot.variant, spot.row.group, spot.row.lanes[0])
    edges = frame.drawing.edges(state.view.window(spot.variant))[at : at + 2]
    lanes = state.view.variants[spot.variant].groups[spot.row.group].lanes
    for lane in reversed(spot.row.lanes):
        columns = lanes[lane].columns(edges)
        filling = int(columns.filling[0])
        position = filling if filling != NONE else int(columns.event(np.array([0]), np.array([1]))[0])
        if position != NONE:
            return state.pointed(spot.variant, Slice(spot.row.group, lane, position))
    return state.at(spot.variant, spot.row.group, spot.row.lanes[-1], int(np.mean(edges)))
