"""One typical step of each variant as a picture, with words for those who cannot see it.

The steps begin at the same position and have the same scale, so that a shorter one looks shorter. Each of their lanes
is drawn as stretches of columns; its events come along, so that the page's script can draw and name them at any zoom.
"""

import html
import json
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from tracekit.base.intervals import Ints, runs
from tracekit.base.names import sanitize
from tracekit.base.units import duration, tick
from tracekit.faces.shared.html_figures import escape
from tracekit.profile import Profile
from tracekit.timeline import CATEGORIES, NONE, Family, Group, Index
from tracekit.timeline.categories import readable_on
from tracekit.timeline.index import labels

_COLUMNS = 1500  # more than a screen has, so that zooming in shows more
_LEVELS = 8  # of coverage of a column
_MIN_COLUMNS_OF_A_NAMED_EVENT = 4  # columns: a wider event is named
_DEPTH = 6  # lanes of a thread
_THREADS = 2
_GUTTER, _PLOT = 130, 870  # units: for the titles, and for the lanes
_WIDTH = _GUTTER + _PLOT
_HEIGHTS = {"wall": 22, "gpu": 16, "idle": 14, "compile": 14, "host": 14}
_MIN_HEIGHT_OF_A_NAME = 12  # units of height: too low for a name
_HEAD, _GAP, _SCALE = 22, 2, 18
_LETTER = 6.6  # units of a letter of a name
_MAX_LETTERS_OF_A_NAME = 80  # letters of a name that is drawn
_HINT = 200  # letters of a name that is shown under the pointer
_MARKS = 8  # of the scale, at most
_MOST_EVENTS = 50_000  # of all variants together: of more, the page holds the longest
_MOST_BYTES = 1_500_000  # of the page that they may take


class LabelledEvents(Struct, frozen=True):
    """An event that is wide enough for a name: its columns, its kind, and its names, the longest first, not
    sanitized."""

    first: int
    stop: int
    category: int
    names: tuple[str, ...]
    dur_ns: int


class EventKind(Struct, frozen=True):
    """Events of one name and category: a short name to draw, and the whole one; text of the trace, not sanitized."""

    label: str
    name: str
    category: int


class StepEvents(Struct, frozen=True):
    """Events in order of their starts, ns from the beginning of the step and cut at its ends; `kind` is an index into
    `kinds`."""

    start_ns: Ints
    dur_ns: Ints
    kind: Ints
    kinds: tuple[EventKind, ...]


class LaneDrawing(Struct, frozen=True):
    """A lane: stretches of columns `[first, stop)` of one category, `level` eighths of which are covered.

    `title` is on the first lane of a stream or a thread; it is text of the trace, not sanitized.
    """

    title: str
    family: Family
    first: Ints
    stop: Ints
    category: Ints
    level: Ints
    named_events: tuple[LabelledEvents, ...]
    events: StepEvents


class StepDrawing(Struct, frozen=True):
    """One step of a variant: the N of its annotation, how long it takes, and its lanes from top to bottom."""

    variant: str
    step: int
    dur_ns: int
    lanes: tuple[LaneDrawing, ...]


class TypicalSteps(Struct, frozen=True):
    """A step of each variant; `columns` columns represent `span_ns`."""

    span_ns: int
    columns: int
    stills: tuple[StepDrawing, ...]


def typical_step_svg(profiles: Sequence[Profile]) -> str:
    """Index the variants and draw a step of each; empty if there is none."""
    return svg(typical_steps([Index.of(profile) for profile in profiles])) if profiles else ""


def typical_steps(indexes: Sequence[Index], columns: int = _COLUMNS) -> TypicalSteps:
    """The typical step of each variant, from its beginning; the longest fills the picture."""
    bounds = [[int(moments[index.typical_step]) for moments in index.step_bounds] for index in indexes]
    span = max([columns, *(end - begin for begin, end in bounds)])
    stills = []
    for index, (begin, end) in zip(indexes, bounds, strict=True):
        edges = begin + np.arange(columns + 1, dtype=np.int64) * span // columns
        edges = np.minimum(edges, max(end, begin + 1))
        step_edges = edges[: int(np.searchsorted(edges, edges[-1])) + 1]  # what follows the step's end is not drawn
        threads = [group for group in index.groups if group.family == "host"]
        groups = [group for group in index.groups if group.family not in ("host", "frames")] + threads[:_THREADS]
        lanes: list[LaneDrawing] = []
        for group in groups:
            title = group.title
            for depth in range(min(len(group.lanes), _DEPTH)):
                lane = _lane(index, group, depth, step_edges, title)
                if len(lane.first):
                    lanes.append(lane)
                    title = ""
        stills.append(StepDrawing(index.profile.name, index.numbers[index.typical_step], end - begin, tuple(lanes)))
    return TypicalSteps(span, columns, tuple(stills))


def _lane(index: Index, group: Group, depth: int, edges: Ints, title: str) -> LaneDrawing:
    """A lane of the step between these edges, without stretches if nothing happens on it."""
    lane = group.lanes[depth]
    columns = lane.columns(edges)
    category = columns.category.astype(np.int64)
    covered = np.clip(np.rint(columns.share * _LEVELS), 1, _LEVELS)
    level = np.where(category == NONE, 0, covered).astype(np.int64)
    bounds = runs(category * (_LEVELS + 1) + level).astype(np.int64)
    busy = np.flatnonzero(category[bounds[:-1]] != NONE)
    first, stop = bounds[:-1][busy], bounds[1:][busy]
    named_events = []
    filling = np.where(level == _LEVELS, columns.filling, NONE)
    bounds = runs(filling)
    for run in np.flatnonzero(np.diff(bounds) >= _MIN_COLUMNS_OF_A_NAMED_EVENT).tolist():
        begin, end = int(bounds[run]), int(bounds[run + 1])
        if (event := int(filling[begin])) != NONE:
            dur, names = int(lane.end[event] - lane.start[event]), labels(index, group, depth, event)
            named_events.append(LabelledEvents(begin, end, int(category[begin]), names, dur))
    events = step_events(index, group, depth, int(edges[0]), int(edges[-1]))
    return LaneDrawing(title, group.family, first, stop, category[first], level[first], tuple(named_events), events)


def step_events(index: Index, group: Group, depth: int, begin: int, end: int) -> StepEvents:
    """The events of a lane that lie in `[begin, end)`, at least in part; those without a duration are left out."""
    lane = group.lanes[depth]
    positions = np.flatnonzero((lane.start < end) & (lane.end > begin) & (lane.end > lane.start))
    start, stop = np.maximum(lane.start[positions], begin), np.minimum(lane.end[positions], end)
    trace, row = index.profile.trace, lane.row[positions].astype(np.int64)
    name = np.where(row >= 0, trace.name_codes[np.maximum(row, 0)], NONE) if len(trace.name_codes) else row
    pair = (name.astype(np.int64) + 1) * len(CATEGORIES) + lane.category[positions]
    _, first, kind = np.unique(pair, return_index=True, return_inverse=True)
    kinds = []
    for event in positions[first].tolist():
        category = int(lane.category[event])
        category_label = CATEGORIES[category].label
        label = category_label if group.family == "idle" else labels(index, group, depth, event)[0]
        kinds.append(
            EventKind(label, index.name(int(lane.row[event])) if lane.row[event] >= 0 else category_label, category)
        )
    return StepEvents(start - begin, stop - start, kind.astype(np.int64), tuple(kinds))


def svg(steps: TypicalSteps) -> str:
    """The steps below one another, on one scale.

    Lanes are in an `svg` of their own, with names and marks above it. In their place the page's script draws the events
    of all variants, at any zoom; without it the picture shows the whole steps.
    """
    titles: list[str] = []
    shapes: list[str] = []  # which zooming stretches
    names: list[str] = []
    height = 0
    for still in steps.stills:
        head = f"{still.variant}, step {still.step}: {duration(still.dur_ns)}"
        titles.append(f'<text class="of" x="0" y="{height + 15}">{escape(head)}</text>')
        top = height + _HEAD
        for lane in still.lanes:
            high = _HEIGHTS[lane.family]
            if lane.title:
                title = escape(_cut(lane.title, _GUTTER))
                titles.append(f'<text x="0" y="{top + min(high, 12)}">{title}</text>')
            _draw(lane, steps.columns, top, shapes, names)
            top += high + _GAP
        height = top + _GAP
    scale = []  # marks at round times, counted from the beginning of the steps
    step = next(
        digit * 10**power for power in range(19) for digit in (1, 2, 5) if digit * 10**power * _MARKS >= steps.span_ns
    )
    for mark in range(0, steps.span_ns + 1, step):
        x = _GUTTER + mark / steps.span_ns * _PLOT
        scale.append(f'<path class="mark" d="M{x:.1f} 0V{height}"/>')
        if x < _WIDTH - 60:
            scale.append(f'<text class="quiet" x="{x + 3:.1f}" y="{height + 12}">{escape(tick(mark, step))}</text>')
    legend = []
    codes = {code for still in steps.stills for lane in still.lanes for code in lane.category.tolist()}
    x, y = 0.0, height + _SCALE
    for label, colour in {CATEGORIES[code].label: CATEGORIES[code].colour for code in sorted(codes)}.items():
        legend.append(f'<rect x="{x:g}" y="{y + 4}" width="10" height="10" fill="{colour}"/>')
        legend.append(f'<text class="quiet" x="{x + 14:g}" y="{y + 13}">{escape(label)}</text>')
        x += 26 + len(label) * _LETTER
    description = "; ".join(f"{still.variant}: step {still.step}, {duration(still.dur_ns)}" for still in steps.stills)
    return (
        f'<svg class="timeline" viewBox="0 0 {_WIDTH} {height + 2 * _SCALE}" role="img" data-ns="{steps.span_ns}" '
        f'aria-label="{escape(description)}" data-events="{_events_for_the_script(steps)}">{"".join(titles)}'
        f'<svg class="lanes" x="{_GUTTER}" width="{_PLOT}" height="{height}" viewBox="0 0 {_PLOT} {height}" '
        f'preserveAspectRatio="none">{"".join(shapes)}</svg>'
        f'<g class="names">{"".join(names)}</g><g class="scale">{"".join(scale)}</g>{"".join(legend)}</svg>'
    )


def _events_for_the_script(steps: TypicalSteps) -> str:
    """The events for the page's script, as JSON that is escaped for an attribute: the longest for which there is room.

    A lane has its position, and each event's start (as the distance from the start before it) and duration in ns, and
    its kind; a kind has a label, a name and an index into the colours.
    """
    kinds: dict[tuple[str, str, int], int] = {}
    lanes = []
    bottom = 0
    for number, still in enumerate(steps.stills):
        top, title = bottom + _HEAD, ""
        for lane in still.lanes:
            title, high, events = lane.title or title, _HEIGHTS[lane.family], lane.events
            place = {"of": number, "family": lane.family, "title": sanitize(title, _HINT), "y": top, "high": high}
            texts = [
                (sanitize(kind.label, _MAX_LETTERS_OF_A_NAME), sanitize(kind.name, _HINT), kind.category)
                for kind in events.kinds
            ]
            kind_numbers = np.array([kinds.setdefault(text, len(kinds)) for text in texts], np.int64)
            lanes.append((place, events.start_ns, events.dur_ns, kind_numbers[events.kind]))
            top += high + _GAP
        bottom = top + _GAP
    durs = np.concatenate([dur for _, _, dur, _ in lanes] or [np.zeros(0, int)])
    longest_first = np.sort(durs)[::-1]
    max_events = _MOST_EVENTS
    while True:
        threshold_ns = int(longest_first[max_events]) if max_events < len(durs) else -1
        document = {
            "colours": [(category.colour, readable_on(category.colour), category.label) for category in CATEGORIES],
            "kinds": [*kinds],
            "steps": [f"{sanitize(still.variant)}, step {still.step}" for still in steps.stills],
            "shown": int((durs > threshold_ns).sum()),
            "all": len(durs),
            "lanes": [
                place
                | {
                    "start": np.diff(start[dur > threshold_ns], prepend=0).tolist(),
                    "dur": dur[dur > threshold_ns].tolist(),
                    "kind": kind[dur > threshold_ns].tolist(),
                }
                for place, start, dur, kind in lanes
            ],
        }
        text = html.escape(json.dumps(document, ensure_ascii=False, separators=(",", ":")))
        if len(text.encode()) <= _MOST_BYTES or max_events == 0:
            return text
        max_events //= 2


def _draw(lane: LaneDrawing, columns: int, top: int, shapes: list[str], names: list[str]) -> None:
    """Add what a lane looks like, of that many columns.

    There is one path for each kind: a rectangle for each stretch, whose height shows how much of it is covered.
    Anything wide enough has a title under the pointer, and its name if there is room.
    """
    high = _HEIGHTS[lane.family]
    for category in sorted({*lane.category.tolist()}):
        in_category = lane.category == category
        stretches = []
        places = (place[in_category].tolist() for place in (lane.first, lane.stop, lane.level))
        for first, stop, level in zip(*places, strict=True):
            x_start, x_end = (round(column * _PLOT / columns, 2) for column in (first, stop))
            tall = high * level / _LEVELS
            stretches.append(f"M{x_start:g} {top + high:g}v-{tall:g}h{x_end - x_start:.4g}v{tall:g}z")
        kind = CATEGORIES[category]
        shapes.append(f'<path fill="{kind.colour}" d="{"".join(stretches)}"><title>{escape(kind.label)}</title></path>')
    for event in lane.named_events:
        x_start, x_end = (round(column * _PLOT / columns, 2) for column in (event.first, event.stop))
        wide = x_end - x_start
        hint = f"{sanitize(event.names[0], _HINT)}: {duration(event.dur_ns)}"
        colour = CATEGORIES[event.category].colour
        text_class = "on-light" if readable_on(colour) == "#000000" else "on-dark"
        look = f"event {text_class}" if high > _MIN_HEIGHT_OF_A_NAME else "event"
        shapes.append(
            f'<rect class="{look}" x="{x_start:g}" y="{top}" width="{wide:.4g}" height="{high}" fill="{colour}">'
            f"<title>{escape(hint)}</title></rect>"
        )
        fitting = (name for name in event.names if len(name) * _LETTER <= wide - 6)
        text = next(fitting, _cut(event.names[-1], wide - 6))
        if high > _MIN_HEIGHT_OF_A_NAME and len(text) > 2:
            x, y = _GUTTER + x_start + 3, top + high / 2 + 4
            names.append(f'<text class="{text_class}" x="{x:g}" y="{y:g}">{escape(text)}</text>')


def _cut(text: str, room: float) -> str:
    letters = int(room / _LETTER)
    return text if len(text) <= letters else f"{text[: max(letters - 1, 0)]}…" if letters > 3 else ""
