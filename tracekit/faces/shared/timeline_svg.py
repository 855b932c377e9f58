"""The timeline of one typical step of each variant as a picture, with words for those who cannot see it."""

import html
import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from msgspec import Struct, field

from tracekit.base.names import sanitize
from tracekit.base.units import duration, tick
from tracekit.faces.shared.html_figures import escape
from tracekit.profile import Profile
from tracekit.timeline import CATEGORIES, Index
from tracekit.timeline.categories import readable_on
from tracekit.timeline.lane import NONE
from tracekit.timeline.typical import LabelledEvents, LaneDrawing, StepDrawing, TypicalSteps, typical_steps

_COLUMNS = 1500  # more than a screen has, so that zooming in shows more
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


def typical_step_svg(profiles: Sequence[Profile]) -> str:
    """Index the variants and draw a step of each; empty if there is none."""
    return svg(typical_steps([Index.of(profile) for profile in profiles], _COLUMNS)) if profiles else ""


def svg(steps: TypicalSteps) -> str:
    """The steps below one another, on one scale.

    Lanes are in an `svg` of their own, with names and marks above it. In their place the page's script draws the events
    of all variants, at any zoom; without it the picture shows the whole steps.
    """
    drawn = _Drawn()
    height = 0
    data = _data(steps)
    for still in steps.stills:
        _still(still, steps, height, drawn)
        height += _height(still)
    description = "; ".join(f"{still.variant}: step {still.step}, {duration(still.dur_ns)}" for still in steps.stills)
    pieces = [
        *drawn.titles,
        f'<svg class="lanes" x="{_GUTTER}" width="{_PLOT}" height="{height}" viewBox="0 0 {_PLOT} {height}" '
        'preserveAspectRatio="none">',
        *drawn.lanes,
        f'</svg><g class="names">{"".join(drawn.names)}</g><g class="scale">{"".join(_scale(steps, height))}</g>',
        *_legend(steps, height + _SCALE),
    ]
    return (
        f'<svg class="timeline" viewBox="0 0 {_WIDTH} {height + 2 * _SCALE}" role="img" data-ns="{steps.span_ns}" '
        f'aria-label="{escape(description)}" data-events="{data}">{"".join(pieces)}</svg>'
    )


def _data(steps: TypicalSteps) -> str:
    """The events for the page's script, as JSON that is escaped for an attribute: the longest for which there is room.

    A lane has its position, and each event's start (as the distance from the start before it) and duration in ns, and
    its kind; a kind has a label, a name and an index into the colours.
    """
    durs = np.concatenate([lane.events.dur_ns for still in steps.stills for lane in still.lanes] or [np.zeros(0, int)])
    longest_first = np.sort(durs)[::-1]
    max_events = _MOST_EVENTS
    while True:
        threshold_ns = int(longest_first[max_events]) if max_events < len(durs) else -1
        document = _document(steps, threshold_ns, len(durs))
        text = html.escape(json.dumps(document, ensure_ascii=False, separators=(",", ":")))
        if len(text.encode()) <= _MOST_BYTES or max_events == 0:
            return text
        max_events //= 2


def _document(steps: TypicalSteps, threshold_ns: int, total: int) -> dict[str, Any]:
    """The drawing of a typical step, as JSON: the events that take longer than `threshold_ns`."""
    kinds: dict[tuple[str, str, int], int] = {}
    lanes = []
    shown_events = still_top = 0
    for number, still in enumerate(steps.stills):
        top = still_top + _HEAD
        title = ""
        for lane in still.lanes:
            title = lane.title or title
            is_shown = lane.events.dur_ns > threshold_ns
            called = np.array(
                [
                    kinds.setdefault(
                        (sanitize(kind.label, _MAX_LETTERS_OF_A_NAME), sanitize(kind.name, _HINT), kind.category),
                        len(kinds),
                    )
                    for kind in lane.events.kinds
                ],
                np.int64,
            )
            lanes.append(
                {
                    "of": number,
                    "family": lane.family,
                    "title": sanitize(title, _HINT),
                    "y": top,
                    "high": _HEIGHTS[lane.family],
                    "start": np.diff(lane.events.start_ns[is_shown], prepend=0).tolist(),
                    "dur": lane.events.dur_ns[is_shown].tolist(),
                    "kind": called[lane.events.kind[is_shown]].tolist(),
                }
            )
            shown_events += int(is_shown.sum())
            top += _HEIGHTS[lane.family] + _GAP
        still_top += _height(still)
    colours = [(category.colour, readable_on(category.colour), category.label) for category in CATEGORIES]
    steps_of = [f"{sanitize(still.variant)}, step {still.step}" for still in steps.stills]
    return {
        "colours": colours,
        "kinds": [*kinds],
        "steps": steps_of,
        "shown": shown_events,
        "all": total,
        "lanes": lanes,
    }


class _Drawn(Struct):
    """The elements so far: those in the gutter, those that zooming stretches, and the names above them."""

    titles: list[str] = field(default_factory=list)
    lanes: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)


def _height(still: StepDrawing) -> int:
    return _HEAD + sum(_HEIGHTS[lane.family] + _GAP for lane in still.lanes) + _GAP


def _x(column: int, steps: TypicalSteps) -> float:
    return round(column * _PLOT / steps.columns, 2)


def _still(still: StepDrawing, steps: TypicalSteps, top: int, drawn: _Drawn) -> None:
    head = f"{still.variant}, step {still.step}: {duration(still.dur_ns)}"
    drawn.titles.append(f'<text class="of" x="0" y="{top + 15}">{escape(head)}</text>')
    lane_top = top + _HEAD
    for lane in still.lanes:
        high = _HEIGHTS[lane.family]
        if lane.title:
            drawn.titles.append(
                f'<text x="0" y="{lane_top + min(high, 12)}">{escape(_cut(lane.title, _GUTTER))}</text>'
            )
        drawn.lanes += _paths(lane, steps, lane_top, high)
        for event in lane.named_events:
            _name(event, steps, lane_top, high, drawn)
        lane_top += high + _GAP


def _paths(lane: LaneDrawing, steps: TypicalSteps, top: int, high: int) -> Iterator[str]:
    """One path for each kind: a rectangle for each stretch, whose height shows how much of it is covered."""
    for category in sorted({*lane.category.tolist()}):
        in_category = lane.category == category
        stretches = []
        columns = (
            lane.first[in_category].tolist(),
            lane.stop[in_category].tolist(),
            lane.level[in_category].tolist(),
        )
        for first, end, level in zip(*columns, strict=True):
            x_start, x_end, tall = _x(first, steps), _x(end, steps), high * level / 8
            stretches.append(f"M{x_start:g} {top + high:g}v-{tall:g}h{x_end - x_start:.4g}v{tall:g}z")
        kind = CATEGORIES[category]
        yield f'<path fill="{kind.colour}" d="{"".join(stretches)}"><title>{escape(kind.label)}</title></path>'


def _name(event: LabelledEvents, steps: TypicalSteps, top: int, high: int, drawn: _Drawn) -> None:
    """A title under the pointer for anything wide enough, and its name if there is room."""
    x_start, wide = _x(event.first, steps), _x(event.stop, steps) - _x(event.first, steps)
    hint = f"{sanitize(event.names[0], _HINT)}: {duration(event.dur_ns)}"
    colour = CATEGORIES[event.category].colour
    text_class = "on-light" if readable_on(colour) == "#000000" else "on-dark"
    kind = f"event {text_class}" if high > _MIN_HEIGHT_OF_A_NAME else "event"
    drawn.lanes.append(
        f'<rect class="{kind}" x="{x_start:g}" y="{top}" width="{wide:.4g}" height="{high}" fill="{colour}">'
        f"<title>{escape(hint)}</title></rect>"
    )
    fitting = (name for name in event.names if len(name) * _LETTER <= wide - 6)
    text = next(fitting, _cut(event.names[-1], wide - 6))
    if high > _MIN_HEIGHT_OF_A_NAME and len(text) > 2:
        x, y = _GUTTER + x_start + 3, top + high / 2 + 4
        drawn.names.append(f'<text class="{text_class}" x="{x:g}" y="{y:g}">{escape(text)}</text>')


def _scale(steps: TypicalSteps, bottom: int) -> Iterator[str]:
    """Marks at round times, counted from the beginning of the steps."""
    step = next(
        digit * 10**power for power in range(19) for digit in (1, 2, 5) if digit * 10**power * _MARKS >= steps.span_ns
    )
    for mark in range(0, steps.span_ns + 1, step):
        x = _GUTTER + mark / steps.span_ns * _PLOT
        yield f'<path class="mark" d="M{x:.1f} 0V{bottom}"/>'
        if x < _WIDTH - 60:
            yield f'<text class="quiet" x="{x + 3:.1f}" y="{bottom + 12}">{escape(tick(mark, step))}</text>'


def _legend(steps: TypicalSteps, top: int) -> Iterator[str]:
    """The legend: the kinds that occur."""
    codes = sorted({code for still in steps.stills for lane in still.lanes for code in lane.category.tolist()} - {NONE})
    x = 0.0
    for label, colour in {CATEGORIES[code].label: CATEGORIES[code].colour for code in codes}.items():
        yield f'<rect x="{x:g}" y="{top + 4}" width="10" height="10" fill="{colour}"/>'
        yield f'<text class="quiet" x="{x + 14:g}" y="{top + 13}">{escape(label)}</text>'
        x += 26 + len(label) * _LETTER


def _cut(text: str, room: float) -> str:
    letters = int(room / _LETTER)
    return text if len(text) <= letters else f"{text[: max(letters - 1, 0)]}…" if letters > 3 else ""
