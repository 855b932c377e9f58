"""The timeline as a widget: it draws the picture, and handles the keys, of which the help is made from their tooltips,
and the mouse: a click selects, a drag moves through time, and the wheel zooms. Messages tell the widgets around it what
was chosen.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from threading import Thread
from typing import ClassVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.color import Color
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tracekit.errors import TracekitError
from tracekit.profile import Profile
from tracekit.timeline import CATEGORIES, NONE, Index
from tracekit.tui.timeline.canvas import Ink, Inkwell, Palette
from tracekit.tui.timeline.frame import Frame, rendered
from tracekit.tui.timeline.slices import Slice, event, lane_of
from tracekit.tui.timeline.state import ACTS, MOVES, State, Stretch, Target, shown
from tracekit.tui.timeline.view import Viewport

_FEW_COLOURS = {"standard", "windows"}
WHEEL = 1.25  # zoom factor for each notch
KEYS = [
    Binding(
        "left", "move('pan', -0.125)", "Pan", id="pan-left", show=False, key_display="← →", tooltip="Move through time"
    ),
    Binding("right", "move('pan', 0.125)", id="pan-right", show=False),
    Binding(
        "up", "move('lane', -1)", "Lane", id="lane-up", show=False, key_display="↑ ↓", tooltip="Go to another lane"
    ),
    Binding("down", "move('lane', 1)", id="lane-down", show=False),
    Binding(
        "shift+left",
        "move('beside', -1)",
        id="beside-left",
        show=False,
        key_display="⇧← →",
        tooltip="Go along the lane",
    ),
    Binding("shift+right", "move('beside', 1)", id="beside-right", show=False),
    Binding("plus,equals_sign", "move('zoom', 2)", "Zoom", id="zoom-in", key_display="+ -", tooltip="Zoom in and out"),
    Binding("minus", "move('zoom', 0.5)", id="zoom-out", show=False),
    Binding("f", "act('fit')", "Fit", id="fit", tooltip="Fit the whole step; press again for the whole recording"),
    Binding("z", "act('near')", "Zoom to", id="near", tooltip="Zoom to the selection, or to the range"),
    Binding("enter", "enter", "Open", key_display="⏎", id="open", tooltip="More about what is selected"),
    Binding(
        "r", "act('range')", "Range", id="range", tooltip="Begin a range at the selection; press again to end it there"
    ),
    Binding(
        "comma",
        "move('alike', -1)",
        "Instance",
        id="alike-before",
        key_display=", .",
        tooltip="Previous and next event of the same name",
    ),
    Binding("full_stop", "move('alike', 1)", id="alike-after", show=False),
    Binding("slash", "app.filter", "Search", key_display="/", id="search", tooltip="Search events by parts of names"),
    Binding(
        "n",
        "move('onward', 1)",
        "Step",
        id="step-after",
        key_display="n p",
        tooltip="Next and previous step; after a search, n and N go to the next and previous event that it found",
    ),
    Binding("N", "move('onward', -1)", id="search-before", show=False),
    Binding("p", "move('step', -1)", id="step-before", show=False),
    Binding("i", "move('gap', 1)", "Idle", id="gap", tooltip="Next visible gap of the GPU; I goes to the previous one"),
    Binding("I", "move('gap', -1)", id="gap-before", show=False),
    Binding("G", "act('longest')", id="longest-gap", show=False, tooltip="The longest gap of the GPU on the screen"),
    Binding("s", "move('sync', 1)", "Sync", id="sync", tooltip="Next sync; with Alt, the previous one"),
    Binding("alt+s", "move('sync', -1)", id="sync-before", show=False),
    Binding("c", "move('compile', 1)", "Compile", id="compile", tooltip="Next compilation; with Alt, the previous one"),
    Binding("alt+c", "move('compile', -1)", id="compile-before", show=False),
    Binding("l", "act('lock')", "Lock", id="lock", tooltip="Lock variants by time into the step, or by share of it"),
    Binding(
        "escape",
        "act('clear')",
        id="clear",
        show=False,
        key_display="esc",
        tooltip="Drop the range, then the selection",
    ),
]


class Indexed(Message):
    """A variant has been indexed, or the error says why it could not be."""

    def __init__(self, variant: int, index: Index | None, error: Exception | None = None) -> None:
        super().__init__()
        self.variant, self.index, self.error = variant, index, error


class Timeline(Widget, can_focus=True):
    """Variants one above the other, locked to one step. They are indexed in the background.

    Posts `Chosen` if a stretch is selected or entered, and `RangeChosen` if a range is. Esc drops the range, then what
    is selected, and only then widens.
    """

    HELP = (
        "Arrows move through time and lanes, + and - zoom, f fits the step, z zooms to the selection; , and . go to "
        "the previous and next event of the same name, n and p to the next and previous step, i, s and c to the next "
        "gap, sync and compilation; / searches events by name, then n and N go on and back; "
        "r begins and ends a range, to which the panes of kernels and operators are "
        "narrowed; l locks variants by time or by share of the step."
    )
    SEARCH = "words that the name of an event must contain; Enter keeps, then n and N go on; Esc drops the search"
    DEFAULT_CSS = "Timeline { height: 1fr; min-height: 6; }"
    BINDINGS: ClassVar[list[BindingType]] = [*KEYS]

    def __init__(self, profiles: Sequence[Profile]) -> None:
        super().__init__()
        self.profiles = tuple(profiles)
        self._answers: dict[int, Indexed] = {}
        self._target: Target | None = None
        self._last_target: Target | None = None
        self._frame: Frame | None = None
        self._drag: Drag | None = None
        self.state: State | None = None

    def show(self, target: Target) -> None:
        """Go to a step, a stretch of time or an event, as soon as the variants are indexed."""
        if self.state is None:
            self._target = target
        else:
            self._become(shown(self.state, target))

    def go_to(self, target: Target | None) -> None:
        """Show this target, unless it is the one shown last: then the timeline stays where the user has moved it."""
        if target is not None and target != self._last_target:
            self.show(target)
        self._last_target = target

    def on_mount(self) -> None:
        """Begin to index, but not in one of Textual's workers: quitting would wait for it."""
        Thread(target=self._index, daemon=True).start()

    def _index(self) -> None:
        for number, profile in enumerate(self.profiles):
            try:
                answer = Indexed(number, Index.of(profile))
            except Exception as error:
                answer = Indexed(number, None, error)
            self.post_message(answer)

    def on_indexed(self, message: Indexed) -> None:
        """Once all variants are indexed, show those that could be read."""
        message.stop()
        if message.error is not None and not isinstance(message.error, TracekitError):
            raise message.error
        self._answers[message.variant] = message
        ready = [answer.index for _, answer in sorted(self._answers.items()) if answer.index is not None]
        if len(self._answers) == len(self.profiles) and ready:
            state = State(Viewport.of(ready))
            self._become(state if self._target is None else shown(state, self._target))
        self._redraw()

    def _become(self, state: State) -> None:
        before, self.state = self.state, state
        self._redraw()
        if before is None or before.is_selected != state.is_selected:
            self.refresh_bindings()
        is_moved = before is None or (before.variant, before.selection) != (state.variant, state.selection)
        if state.is_selected and is_moved:
            self._tell(state)
        if before is not None and before.is_selected and not state.is_selected:
            self.post_message(Cleared())
        if before is not None and before.extended is not None and state.extended is None and state.range is not None:
            start, end = (state.view.moment(state.variant, offset) for offset in state.range)
            self.post_message(RangeChosen(Stretch(state.index.profile.name, start, end)))

    def _tell(self, state: State, entered: bool = False) -> None:
        category = CATEGORIES[lane_of(state.index, state.selection).category[state.selection.position]].key
        row = event(state.index, state.selection)
        self.post_message(Chosen(Stretch(state.index.profile.name, *state.stretch), row, category, entered))

    def _redraw(self) -> None:
        self._frame = None
        self.refresh()

    def on_resize(self) -> None:
        """Draw anew."""
        self._redraw()

    def notify_style_update(self) -> None:
        """Draw anew, as another theme has other colours behind the lanes."""
        super().notify_style_update()
        self._frame = None

    @property
    def _palette(self) -> Palette:
        _, _, background, foreground = self.colors
        accent = "#ffffff" if background.brightness < 0.5 else "#000000"
        patterns = self.app.no_color or self.app.console.color_system in _FEW_COLOURS
        return Palette(_hex(background), _hex(background + foreground), accent, patterns)

    def _drawn(self) -> Frame:
        if self._frame is None:
            remarks = []  # on what is still being indexed, and on what could not be
            for number, profile in enumerate(self.profiles):
                if number not in self._answers:
                    remarks.append(f"Indexing {profile.name} …")
                elif self._answers[number].error is not None:
                    remarks.append(f"{profile.name}: {self._answers[number].error}")
            width, height = self.size
            self._frame = rendered(self.state, remarks, width, height, Inkwell(self._palette))
        return self._frame

    def render_line(self, y: int) -> Strip:
        """A line of the widget."""
        lines = self._drawn().lines
        if y >= len(lines):
            return Strip.blank(self.size.width)
        return Strip([Segment(text, _style(ink)) for text, ink in lines[y]], self.size.width)

    @property
    def pattern(self) -> str:
        """The words that events are searched by."""
        return self.state.pattern if self.state is not None else ""

    def search(self, pattern: str) -> None:
        """Go to the next event whose name contains these words."""
        self._change(lambda state: state.after_search(pattern))

    def action_move(self, name: str, amount: float) -> None:
        """Make one of the `MOVES`."""
        self._change(lambda state: MOVES[name](state, amount))

    def action_act(self, name: str) -> None:
        """Do one of the `ACTS`."""
        self._change(ACTS[name])

    def _change(self, act: Callable[[State], State]) -> None:
        """Do something, once the variants are indexed."""
        if self.state is not None:
            self._become(act(self.state))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:
        """Leave keys that have nothing to do here to others: Enter and Esc, for example, if nothing is selected."""
        state = self.state
        if state is None:
            return action != "enter" and parameters not in (("lock",), ("clear",))
        if action == "enter":  # a gap, for example, is no event
            return state.is_selected and event(state.index, state.selection) >= 0
        if parameters == ("lock",):
            return len(state.view.variants) > 1
        return parameters != ("clear",) or state.is_selected or state.range is not None or bool(state.pattern)

    def action_enter(self) -> None:
        """Report that the user wants to see more of the selection."""
        if self.state is not None:
            self._tell(self.state, entered=True)

    def on_mouse_down(self, message: events.MouseDown) -> None:
        """Remember where a drag may begin."""
        if self.state is not None:
            self._drag = Drag(message.x, self.state)
            self.capture_mouse()

    def on_mouse_move(self, message: events.MouseMove) -> None:
        """Move through time with the pointer."""
        if self._drag is not None:
            self._drag, state = self._drag.to(message.x, self._drawn())
            self._become(state)

    def on_mouse_up(self, message: events.MouseUp) -> None:
        """Select, if it was a click and not a drag."""
        self.release_mouse()
        drag, self._drag = self._drag, None
        if drag is not None and not drag.moved and self.state is not None:
            self._become(clicked(self.state, self._drawn(), message.x, message.y))

    def on_mouse_scroll_up(self, message: events.MouseScrollUp) -> None:
        """Zoom in around the pointer."""
        self._wheel(message, WHEEL)

    def on_mouse_scroll_down(self, message: events.MouseScrollDown) -> None:
        """Zoom out around the pointer."""
        self._wheel(message, 1 / WHEEL)

    def _wheel(self, message: events.MouseEvent, factor: float) -> None:
        message.stop()
        self._change(lambda state: state.zoom(factor, share(message.x, self._drawn())))


def _hex(colour: Color) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour.rgb)


@lru_cache(1 << 10)
def _style(ink: Ink) -> Style:
    return Style(color=ink.colour, bgcolor=ink.background, bold=ink.bold)


class Chosen(Message):
    """A stretch of a lane was selected, or `entered`.

    `row` is that of its event in the events table, −1 if it is no event; `category` is the key of its kind: a bucket,
    `region` or `idle`.
    """

    def __init__(self, stretch: Stretch, row: int, category: str, entered: bool = False) -> None:
        super().__init__()
        self.stretch, self.row, self.category, self.entered = stretch, row, category, entered


class Cleared(Message):
    """Nothing is selected any more."""


class RangeChosen(Message):
    """A range of time was chosen."""

    def __init__(self, stretch: Stretch) -> None:
        super().__init__()
        self.stretch = stretch


class Drag(Struct, frozen=True):
    """Where a button was pressed, and what was on the screen; `moved` once the pointer has left that column."""

    column: int
    state: State
    moved: bool = False

    def to(self, column: int, frame: Frame) -> "tuple[Drag, State]":
        """The drag and the timeline's state after the pointer has moved to this column."""
        pan_share = (self.column - column) / frame.drawing.columns
        return replace(self, moved=self.moved or column != self.column), self.state.pan(pan_share)


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
    picture_column = column - frame.drawing.gutter
    if not 0 <= picture_column < frame.drawing.columns:
        return state.lane_at(spot.variant, spot.row.group, spot.row.lanes[0])
    edges = frame.drawing.edges(state.view.window(spot.variant))[picture_column : picture_column + 2]
    lanes = state.view.variants[spot.variant].groups[spot.row.group].lanes
    for lane in reversed(spot.row.lanes):
        columns = lanes[lane].columns(edges)
        filling = int(columns.filling[0])
        position = filling if filling != NONE else int(columns.event(np.array([0]), np.array([1]))[0])
        if position != NONE:
            return state.pointed(spot.variant, Slice(spot.row.group, lane, position))
    return state.at(spot.variant, spot.row.group, spot.row.lanes[-1], int(np.mean(edges)))
