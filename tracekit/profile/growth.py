"""Which operators does a step run more and more often? Of two traces of one training, an early one and a late one.

A list that the loop appends to and goes through, a graph that is kept, a history: what grows makes each step longer
than the one before, though nothing in it is slow.
"""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracekit.base.names import sanitize
from tracekit.base.units import count
from tracekit.profile.profile import Profile
from tracekit.trace.roles import OPERATOR

_GROWTH = 1.2  # times as often in every step of the late trace as in any of the early one
_LEAST_MORE = 10  # calls a step
_MOST_NAMED = 3


class Grown(Struct, frozen=True):
    """An operator, and how often a step calls it, in the early trace and in the late one: medians."""

    operator: str
    before: int
    after: int

    @property
    def in_words(self) -> str:
        """`aten::unsqueeze 519 → 2,064 a step`."""
        return f"{sanitize(self.operator)} {count(self.before)} → {count(self.after)} a step"


def in_words(growth: Sequence[Grown]) -> str:
    """`aten::unsqueeze 519 → 2,064 a step, aten::cat …`."""
    return ", ".join(one.in_words for one in growth)


def advice(growth: Sequence[Grown]) -> str:
    """What to do about operators that grow; empty without any."""
    if not growth:
        return ""
    return (
        "Look for what the loop appends to and goes through in every step, such as a list of losses or a graph that is "
        f"kept: from the first trace to the last, {in_words(growth)}. Keep a running sum or the last few, detached."
    )


def grown(early: Profile, late: Profile) -> tuple[Grown, ...]:
    """The operators that every step of the late trace calls more often than any of the early one, those with most more
    calls first; none where either has no steps."""
    before, after = _calls_by_step(early), _calls_by_step(late)
    found = []
    for name, late_calls in after.items():
        early_calls = before.get(name)
        if early_calls is None or late_calls.min() < _GROWTH * early_calls.max():
            continue
        one = Grown(name, int(np.median(early_calls)), int(np.median(late_calls)))
        if one.after - one.before >= _LEAST_MORE:
            found.append(one)
    return tuple(sorted(found, key=lambda one: one.before - one.after)[:_MOST_NAMED])


def _calls_by_step(profile: Profile) -> dict[str, NDArray[np.int64]]:
    """By operator, how often each counted step calls it; of bare recordings, which have no steps, nothing."""
    trace = profile.trace
    if not trace.steps.annotated:
        return {}
    rows = trace.where(lambda part: part.process & (part.roles.kind == OPERATOR))
    step = trace.steps.of(trace.ts_ns[rows])
    in_counted = profile.in_counted(step)
    calls = np.zeros((len(trace.names), len(trace.steps)), np.int64)
    np.add.at(calls, (trace.name_codes[rows[in_counted]], step[in_counted]), 1)
    counted = calls[:, profile.counted]
    return {trace.names[code]: counted[code] for code in np.flatnonzero(counted.any(axis=1)).tolist()}
