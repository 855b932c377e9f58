"""Which line of a loop over rows is worth making one operator of? One that calls an operator again and again in a step,
and takes much of it.
"""

from tracekit.base.units import count
from tracekit.findings.culprits import plain
from tracekit.findings.finding import Where
from tracekit.lines.calls import LineCalls, known_calls
from tracekit.profile import Profile
from tracekit.profile.cached import once

_MANY = 50  # calls of one operator a step
_MUCH = 0.2  # of the time of a step that belongs to lines
_READ_BACK = "keep the values in a tensor, work on all of them at once, and read the result back a single time"
_ALL_AT_ONCE = "work on all rows at once, with one operator over the whole tensor in place of a loop"


@once
def busiest_line(profile: Profile) -> LineCalls | None:
    """The line that itself calls one operator most often in a step; None where none does so often and takes much."""
    if profile.detail_path is None and not profile.trace.has_stacks:
        return None
    view = "wall" if profile.means["wall"] is not None else "host"
    costs = profile.owner_means.by(view, lambda owner: owner.lines)
    total = sum(costs.values())
    loops = [
        one
        for one in known_calls(profile.ownership, profile.counted)
        if one.looped >= _MANY and costs.get(one.lines, 0.0) >= _MUCH * total > 0
    ]
    return max(loops, key=lambda one: one.looped, default=None)


def evidence_of(line: LineCalls) -> str:
    """` 1,037 × .item() a step at train.py:17.`, to end a paragraph with."""
    return f" {count(round(line.looped))} × {plain(line.called)} a step{_place(line)}."


def vectorise(line: LineCalls) -> str:
    """What to do about that line, to begin an advice with."""
    how = _READ_BACK if line.called != line.operator else _ALL_AT_ONCE
    often = f"calls {plain(line.called)} {count(round(line.looped))} times a step"
    return f"Vectorise the line{_place(line)}, which {often}: {how}."


def _place(line: LineCalls) -> str:
    first = line.lines[0]
    return Where(first.file, first.line, first.function).at
