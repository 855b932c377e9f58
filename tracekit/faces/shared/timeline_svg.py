"""The timeline of one typical step of each variant as a picture: no script, and words for who cannot see it."""

from collections.abc import Iterator, Sequence

from tracekit.faces.shared.html_drawings import escape
from tracekit.profile import Profile
from tracekit.sanitize import sanitize
from tracekit.timeline import CATEGORIES, Index
from tracekit.timeline.colours import readable_on
from tracekit.timeline.lane import NONE
from tracekit.timeline.typical import Named, Still, StillLane, TypicalSteps, typical_steps
from tracekit.units import duration, tick

_GUTTER, _WIDTH = 130, 1000  # units: for the titles, and in all
_HEIGHTS = {"wall": 22, "gpu": 16, "compile": 10, "host": 10}
_HEAD, _GAP, _SCALE = 22, 2, 18
_LETTER = 6.6  # units of a letter of a name
_HINT = 200  # letters of a name where the pointer rests
_MARKS = 8  # of the scale, at most


def typical_step_svg(profiles: Sequence[Profile]) -> str:
    """Indexes the variants and draws a step of each; nothing where there is none."""
    return svg(typical_steps([Index.of(profile) for profile in profiles])) if profiles else ""


def svg(steps: TypicalSteps) -> str:
    """The steps one below the other, on one scale."""
    pieces: list[str] = []
    at = 0
    for still in steps.stills:
        pieces += _still(still, steps, at)
        at += _height(still)
    pieces += _scale(steps, at)
    at += _SCALE
    pieces += _legend(steps, at)
    said = "; ".join(f"{still.variant}: step {still.step}, {duration(still.dur_ns)}" for still in steps.stills)
    return (
        f'<svg class="timeline" viewBox="0 0 {_WIDTH} {at + _SCALE}" role="img" aria-label="{escape(said)}">'
        f"{''.join(pieces)}</svg>"
    )


def _height(still: Still) -> int:
    return _HEAD + sum(_HEIGHTS[lane.family] + _GAP for lane in still.lanes) + _GAP


def _x(column: int, steps: TypicalSteps) -> float:
    return round(_GUTTER + column * (_WIDTH - _GUTTER) / steps.columns, 1)


def _still(still: Still, steps: TypicalSteps, top: int) -> Iterator[str]:
    head = f"{still.variant}, step {still.step}: {duration(still.dur_ns)}"
    yield f'<text class="of" x="0" y="{top + 15}">{escape(head)}</text>'
    at = top + _HEAD
    for lane in still.lanes:
        high = _HEIGHTS[lane.family]
        if lane.title:
            yield f'<text x="0" y="{at + min(high, 12)}">{escape(_cut(lane.title, _GUTTER))}</text>'
        yield from _paths(lane, steps, at, high)
        for named in lane.named:
            yield from _name(named, steps, at, high)
        at += high + _GAP


def _paths(lane: StillLane, steps: TypicalSteps, at: int, high: int) -> Iterator[str]:
    """Of each kind one path: a rectangle for each stretch, as high as much of it is covered."""
    for category in sorted({*lane.category.tolist()}):
        chosen = lane.category == category
        drawn = []
        columns = (lane.first[chosen].tolist(), lane.beyond[chosen].tolist(), lane.level[chosen].tolist())
        for first, beyond, level in zip(*columns, strict=True):
            left, right, tall = _x(first, steps), _x(beyond, steps), high * level / 8
            drawn.append(f"M{left:g} {at + high:g}v-{tall:g}h{right - left:.4g}v{tall:g}z")
        kind = CATEGORIES[category]
        yield f'<path fill="{kind.colour}" d="{"".join(drawn)}"><title>{escape(kind.label)}</title></path>'


def _name(named: Named, steps: TypicalSteps, at: int, high: int) -> Iterator[str]:
    """What is wide enough has a title where the pointer rests, and its name where there is room."""
    left, wide = _x(named.first, steps), _x(named.beyond, steps) - _x(named.first, steps)
    hint = f"{sanitize(named.names[0], _HINT)}: {duration(named.dur_ns)}"
    colour = CATEGORIES[named.category].colour
    yield f'<rect class="event" x="{left:g}" y="{at}" width="{wide:.4g}" height="{high}" fill="{colour}">'
    yield f"<title>{escape(hint)}</title></rect>"
    fitting = (name for name in named.names if len(name) * _LETTER <= wide - 6)
    text = next(fitting, _cut(named.names[-1], wide - 6))
    if high > 12 and len(text) > 2:
        on = "on-light" if readable_on(colour) == "#000000" else "on-dark"
        yield f'<text class="{on}" x="{left + 3:g}" y="{at + high / 2 + 4:g}">{escape(text)}</text>'


def _scale(steps: TypicalSteps, at: int) -> Iterator[str]:
    """Marks at round times from where the steps begin."""
    step = next(
        digit * 10**power for power in range(19) for digit in (1, 2, 5) if digit * 10**power * _MARKS >= steps.span_ns
    )
    for mark in range(0, steps.span_ns + 1, step):
        x = _GUTTER + mark / steps.span_ns * (_WIDTH - _GUTTER)
        yield f'<path class="mark" d="M{x:.1f} 0V{at}"/>'
        if x < _WIDTH - 60:
            yield f'<text class="quiet" x="{x + 3:.1f}" y="{at + 12}">{escape(tick(mark, step))}</text>'


def _legend(steps: TypicalSteps, at: int) -> Iterator[str]:
    """The kinds that occur."""
    codes = sorted({code for still in steps.stills for lane in still.lanes for code in lane.category.tolist()} - {NONE})
    x = 0.0
    for label, colour in {CATEGORIES[code].label: CATEGORIES[code].colour for code in codes}.items():
        yield f'<rect x="{x:g}" y="{at + 4}" width="10" height="10" fill="{colour}"/>'
        yield f'<text class="quiet" x="{x + 14:g}" y="{at + 13}">{escape(label)}</text>'
        x += 26 + len(label) * _LETTER


def _cut(text: str, room: float) -> str:
    letters = int(room / _LETTER)
    return text if len(text) <= letters else f"{text[: max(letters - 1, 0)]}…" if letters > 3 else ""
