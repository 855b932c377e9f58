"""What is on the screen, what is selected on it, what each key does from there, and what can be asked to be shown: a
step, a stretch of time, an event or a gap. No Textual here.
"""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from tracekit.base.intervals import NO_INTS, Ints
from tracekit.base.units import duration
from tracekit.timeline import NONE, Index
from tracekit.timeline.categories import FRAMES
from tracekit.tui.timeline.slices import (
    JUMPS,
    Slice,
    beside,
    bounds,
    event,
    find,
    jump,
    longest_gap,
    matching,
    nearest,
    next_alike,
)
from tracekit.tui.timeline.view import Viewport

FIRST_LANE = Slice(0, 0, NONE)
_VISIBLE_FRACTION = 40  # a stretch narrower than this fraction of the width is hard to see
_LEAST_GAP = 0.005  # of the time on the screen: shorter gaps are skipped
_FURTHER = {1: "further", -1: "earlier"}


class Step(Struct, frozen=True):
    """A step, by its position among those of its variant, from 0."""

    step: int


class Stretch(Struct, frozen=True):
    """A stretch of time of a variant, ns on its trace's clock."""

    variant: str
    start_ns: int
    end_ns: int


class Event(Struct, frozen=True):
    """An event: its row in the events table of a variant's trace."""

    variant: str
    row: int


class Moment(Struct, frozen=True):
    """The gap of the GPU, or else the piece of the step, that contains a moment of a variant, ns on its clock."""

    variant: str
    at_ns: int


Target = Step | Stretch | Event | Moment


class State(Struct, frozen=True, eq=False):
    """A view, the lane with the cursor, and the selected stretch: `selection.position` is NONE if nothing is selected.

    `range` lies between two offsets of the view; while it is `extended`, it reaches from its start to the selection.
    `note` is shown once; `pattern` are the words by which events were searched.
    """

    view: Viewport
    variant: int = 0
    selection: Slice = FIRST_LANE
    range: tuple[int, int] | None = None
    extended: tuple[int, int] | None = None
    note: str = ""
    pattern: str = ""
    matches: Mapping[int, Ints] = field(default_factory=dict)  # by variant, the rows that the pattern fits

    @property
    def index(self) -> Index:
        """The lanes of the variant that has the cursor."""
        return self.view.variants[self.variant]

    @property
    def is_selected(self) -> bool:
        """Whether a stretch is selected."""
        return self.selection.position != NONE

    @property
    def stretch(self) -> tuple[int, int]:
        """The selected stretch, or else the time on the screen, in ns on the variant's clock."""
        return bounds(self.index, self.selection) if self.is_selected else self.view.window(self.variant)

    @property
    def offsets(self) -> tuple[int, int]:
        """The same as offsets of the view."""
        start, end = self.stretch
        return self.view.offset(self.variant, start), self.view.offset(self.variant, end)

    @property
    def moment(self) -> int:
        """The middle of the part of the stretch that is on the screen."""
        low, high = self.view.window(self.variant)
        start, end = self.stretch
        start, end = max(start, low), min(end, high)
        return (start + end) // 2 if start <= end else (low + high) // 2

    def seen(self, view: Viewport) -> "State":
        """The same selection in another view; the cursor goes to a variant that has the step."""
        variant = self.variant if view.has_step(self.variant) else view.lead
        selection = self.selection if variant == self.variant else FIRST_LANE
        return replace(self, view=view, variant=variant, selection=selection, note="")

    def selected(self, variant: int, selection: Slice | None, otherwise: str = "") -> "State":
        """Select another stretch and bring it onto the screen; if there is none, say so."""
        if selection is None:
            return replace(self, note=otherwise)
        start, end = bounds(self.view.variants[variant], selection)
        low, high = self.view.window(variant)
        state = self if low <= start < high else self.to_moment(variant, start)
        return replace(state, view=state.view.showing(variant, start, end)).pointed(variant, selection)

    def pan(self, share: float) -> "State":
        """Move by a share of what is on the screen."""
        return self.seen(self.view.panned(share))

    def zoom(self, factor: float, anchor_share: float | None = None) -> "State":
        """Zoom by a factor around a point of the width, or around the selection if no point is given."""
        if anchor_share is None:
            anchor_share = (self.view.offset(self.variant, self.moment) - self.view.low) / self.view.span
        return self.seen(self.view.zoomed(factor, anchor_share))

    def step(self, way: int) -> "State":
        """Show the same part of the next or the previous step."""
        following = self.seen(self.view.at_step(self.view.step + way))
        if following.view.step == self.view.step:
            return replace(self, note=f"no {_FURTHER[way]} step")
        return following

    def lane(self, way: int) -> "State":
        """Go to the next or the previous lane at the same moment, also that of another variant."""
        lanes = [
            (variant, group, lane)
            for variant, index in enumerate(self.view.variants)
            if self.view.has_step(variant)
            for group, lane_group in enumerate(index.groups)
            for lane in range(len(lane_group.lanes))
        ]
        position = lanes.index((self.variant, self.selection.group, self.selection.lane)) + way
        if not 0 <= position < len(lanes):
            return self
        variant, group, lane = lanes[position]
        offset = self.view.offset(self.variant, self.moment)
        low, high = self.view.window(variant)
        moment = low + (high - low) * (offset - self.view.low) // self.view.span
        return self.at(variant, group, lane, moment)

    def lane_at(self, variant: int, group: int, lane: int) -> "State":
        """Go to a lane, with nothing selected."""
        if not self.view.has_step(variant):
            return self
        return replace(self, variant=variant, selection=Slice(group, lane, NONE), note="")

    def pointed(self, variant: int, selection: Slice) -> "State":
        """Select a stretch that is on the screen; a range that is being extended reaches to it."""
        state = replace(self, variant=variant, selection=selection, note="")
        if self.extended is None:
            return state
        (low, high), (start, end) = self.extended, state.offsets
        return replace(state, range=(min(low, start), max(high, end)))

    def at(self, variant: int, group: int, lane: int, moment: int) -> "State":
        """Go to a lane, and select the stretch at or nearest to a moment if it is on the screen."""
        selection = nearest(self.view.variants[variant], group, lane, moment)
        low, high = self.view.window(variant)
        if selection is not None:
            start, end = bounds(self.view.variants[variant], selection)
            if start < high and end >= low:
                return self.pointed(variant, selection)
        return self.lane_at(variant, group, lane)

    def beside(self, way: int) -> "State":
        """Select the next stretch of the lane, or if nothing is selected the one in the middle of the screen."""
        if not self.is_selected:
            return self.at(self.variant, self.selection.group, self.selection.lane, self.moment)
        return self.selected(self.variant, beside(self.index, self.selection, way), "the lane ends here")

    def alike(self, way: int) -> "State":
        """Select the next or the previous event of the same name."""
        if not self.is_selected:
            return replace(self, note="select an event first: ↑ ↓, or a click")
        following = next_alike(self.index, self.selection, way)
        return self.selected(self.variant, following, f"no {_FURTHER[way]} instance")

    def after_search(self, pattern: str) -> "State":
        """Select the first event from the moment on the screen on whose name contains every word of the pattern."""
        matches = (
            {number: matching(index, pattern) for number, index in enumerate(self.view.variants)} if pattern else {}
        )
        state = replace(self, pattern=pattern, matches=matches, note="")
        with_any = [number for number in (self.variant, *matches) if len(matches.get(number, ()))]
        if not with_any:
            return replace(state, note=f"no event is called “{pattern}”" if pattern else "")
        if with_any[0] != self.variant:
            state = replace(state, variant=with_any[0], selection=FIRST_LANE)
        return state._matched(state.moment if state.is_selected else state.view.window(state.variant)[0], 1)

    def match(self, way: int) -> "State":
        """Select the next or the previous event that was searched for; after the last one, the first."""
        start = self.stretch[0] if self.is_selected else self.moment
        return self._matched(start, way, besides=event(self.index, self.selection) if self.is_selected else NONE)

    def _matched(self, moment: int, way: int, besides: int = NONE) -> "State":
        """The first match from a moment on, or after an event of that moment; Python frames that span the screen are
        skipped, as they say nothing about what is on it.
        """
        trace, rows = self.index.profile.trace, self.matches.get(self.variant, NO_INTS)
        low, high = self.view.window(self.variant)
        spanning = (self.index.kinds.lanes[rows] == FRAMES) & (trace.ts_ns[rows] <= low)
        rows = rows[~(spanning & (trace.ts_ns[rows] + trace.dur_ns[rows] >= high))]
        if not len(rows):
            return replace(self, note=f"no event is called “{self.pattern}”")
        if besides in rows:
            position = int(np.flatnonzero(rows == besides)[0]) + way
        else:
            position = int(np.searchsorted(trace.ts_ns[rows], moment)) - (way < 0)
        row = int(rows[position % len(rows)])
        selection = find(self.index, row)
        return self.to_moment(self.variant, int(trace.ts_ns[row])).selected(self.variant, selection).nearer()

    @property
    def place(self) -> str:
        """Which of the events that were searched for is selected, and of how many."""
        rows = self.matches.get(self.variant, ())
        if not self.pattern or not self.is_selected:
            return ""
        positions = np.flatnonzero(rows == event(self.index, self.selection)) + 1
        number = f"{int(positions[0]):,} of " if len(positions) else ""
        return f"{number}{len(rows):,} “{self.pattern}”"

    def jump(self, way: int, kind: str) -> "State":
        """Select the next or the previous gap, sync or compilation."""
        low, high = self.view.window(self.variant)
        moment = self.stretch[0] if self.is_selected else self.view.begin(self.variant) - 1
        if not low <= moment < high:
            moment = low - 1 if way > 0 else high
        least_ns = max(round((high - low) * _LEAST_GAP), 1)
        following = jump(self.index, kind, moment, way, least_ns)
        description = f"{kind} of {duration(least_ns)} or more" if kind == "gap" else kind
        return self.selected(self.variant, following, f"no {_FURTHER[way]} {description}")

    def to_event(self, variant: int, row: int) -> "State":
        """Select an event, and show the step that contains it."""
        selection = find(self.view.variants[variant], row)
        if selection is None:
            return replace(self, note="this event is on no lane")
        start = bounds(self.view.variants[variant], selection)[0]
        return self.to_moment(variant, start).selected(variant, selection).nearer()

    def to_gap(self, variant: int, moment: int) -> "State":
        """Select the gap of the GPU that contains a moment, or else the piece of the step that does."""
        index = self.view.variants[variant]
        for family in ("idle", "wall"):
            for number, group in enumerate(index.groups):
                if group.family == family and (selection := nearest(index, number, 0, moment)) is not None:
                    start, end = bounds(index, selection)
                    if start <= moment < end:
                        return self.to_moment(variant, moment).selected(variant, selection).nearer()
        return self.to_moment(variant, moment)

    def longest_gap(self) -> "State":
        """Select the longest gap of the GPU in the time on the screen."""
        low, high = self.view.window(self.variant)
        gap = longest_gap(self.index, low, high)
        return self.selected(self.variant, gap, "the GPU is never idle here")

    def to_stretch(self, variant: int, start: int, end: int) -> "State":
        """Make a stretch of time of a variant the range."""
        state = self.to_moment(variant, start)
        low, high = (state.view.offset(variant, moment) for moment in (start, end))
        return replace(state.seen(state.view.to(low, high)), variant=variant, range=(low, high), extended=None)

    def to_moment(self, variant: int, moment: int) -> "State":
        """Show the step of a variant that contains a moment, or the last one before it."""
        lows = self.view.variants[variant].step_bounds[0]
        step = max(int((lows <= moment).sum()) - 1, 0)
        return self.seen(self.view.at_step(step))

    def nearer(self) -> "State":
        """Zoom in as far as needed for the selection to be more than a line."""
        start, end = self.offsets
        if (end - start) * _VISIBLE_FRACTION >= self.view.span:
            return self
        return self.seen(self.view.near(self.variant, *self.stretch).zoomed(2 / _VISIBLE_FRACTION))

    def near(self) -> "State":
        """Zoom so that the range fills the screen, or else the selection half of it."""
        if self.range is not None:
            return replace(self, view=self.view.to(*self.range), extended=None)
        return self.seen(self.view.near(self.variant, *self.stretch)) if self.is_selected else self

    def fit(self) -> "State":
        """Show the whole step, or the whole recording if the step is on the screen already."""
        fitted = self.view.fitted()
        is_fitted = (fitted.low, fitted.high) == (self.view.low, self.view.high)
        return self.seen(fitted.everything() if is_fitted else fitted)

    def with_range(self) -> "State":
        """Begin a range at the selection, or end the range that has begun."""
        if self.extended is not None:
            return replace(self, extended=None)
        if not self.is_selected:
            return replace(self, note="select an event first: ↑ ↓, or a click")
        return replace(self, range=self.offsets, extended=self.offsets, note="")

    def cleared(self) -> "State":
        """Drop the range, or the selection and the search if there is no range."""
        if self.range is not None:
            return replace(self, range=None, extended=None, note="")
        return replace(self, selection=replace(self.selection, position=NONE), note="", pattern="", matches={})

    def toggled_lock(self) -> "State":
        """Lock the variants by share of the step instead of by time, or vice versa."""
        return self.seen(self.view.locked("share" if self.view.lock == "ns" else "ns").fitted())


def shown(state: State, target: Target) -> State:
    """The state with the target on the screen; unchanged, with a note, if its variant is not on this timeline."""
    if isinstance(target, Step):
        return state.seen(state.view.at_step(target.step).fitted())
    names = [index.profile.name for index in state.view.variants]
    if target.variant not in names:
        return replace(state, note=f"{target.variant} is not on this timeline")
    variant = names.index(target.variant)
    if isinstance(target, Event):
        return state.to_event(variant, target.row)
    if isinstance(target, Moment):
        return state.to_gap(variant, target.at_ns)
    return state.to_stretch(variant, target.start_ns, target.end_ns)


MOVES: dict[str, Callable[..., State]] = {  # each takes a distance or a direction
    "pan": State.pan,
    "zoom": State.zoom,
    "step": State.step,
    "lane": State.lane,
    "beside": State.beside,
    "alike": State.alike,
    "onward": lambda state, way: state.match(way) if state.pattern else state.step(way),
    **{kind: partial(State.jump, kind=kind) for kind in JUMPS},
}
ACTS: dict[str, Callable[[State], State]] = {
    "fit": State.fit,
    "near": State.near,
    "range": State.with_range,
    "lock": State.toggled_lock,
    "longest": State.longest_gap,
    "clear": State.cleared,
}
