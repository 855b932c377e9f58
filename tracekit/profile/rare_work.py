"""What do few steps of a period do that the others do not: evaluate, save, compute a metric? At which line, how often,
and how much of a step is that on average?
"""

from collections import defaultdict

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracekit.base.intervals import Bools, Ints
from tracekit.base.names import sanitize
from tracekit.base.units import duration, percent
from tracekit.lines.owners import PHASES, Group, short
from tracekit.lines.ownership import MOST_EVENTS
from tracekit.profile.cached import once
from tracekit.profile.profile import LEAST_SHARE, Profile
from tracekit.statistics.typical_step import places_far_longer

_TAKES_PART = 0.5  # of what a line takes where it takes most: a step that holds its work
_MAX_NAMED_LINES = 3

FloatArray = NDArray[np.float64]


class RareLine(Struct, frozen=True):
    """Work of one line in one phase, beyond what usual steps spend there."""

    phase: str
    lines: Group
    every: float  # how many steps one of those is that hold it
    each_ns: float  # of such a step


class RareWork(Struct, frozen=True):
    """Steps that take longer than the usual ones, because of their place in the period."""

    every: float  # how many steps one of them is
    longer_ns: float  # than a usual step
    share: float  # of a mean step
    by_line: list[RareLine]  # those worth telling, the costliest first

    @property
    def in_words(self) -> str:
        """`1 of 10 steps takes 9.80 ms longer than the others, which is 67 % of a mean step: eval at train.py:14
        (9.7 ms in 1 of 10 steps)`."""
        verb = "takes" if _whole(self.every)[0] == 1 else "take"
        causes = []
        for rare in self.by_line[:_MAX_NAMED_LINES]:
            work = rare.phase if rare.phase != PHASES[0] else "work"
            place = f" at {sanitize(short(rare.lines))}" if rare.lines else ""
            causes.append(f"{work}{place} ({duration(rare.each_ns)} in {_so_many(rare.every)})")
        listed = f": {', '.join(causes)}" if causes else ""
        return (
            f"{_so_many(self.every)} {verb} {duration(self.longer_ns)} longer than the others, which is "
            f"{percent(self.share)} of a mean step{listed}"
        )


def _so_many(steps_apiece: float) -> str:
    """`1 of 10 steps`, `3 of 10 steps`."""
    longer_steps, of_steps = _whole(steps_apiece)
    return f"{longer_steps} of {of_steps} steps"


def _whole(steps_apiece: float) -> tuple[int, int]:
    """How many of how many steps, as few as make whole numbers, or nearly."""
    few = next((few for few in range(1, 10) if abs(few * steps_apiece - round(few * steps_apiece)) < 0.05), 1)
    return few, round(few * steps_apiece)


@once
def rare_work(profile: Profile) -> RareWork | None:
    """What the longer steps of a period do; None where steps are alike, do not repeat, or no period was recorded."""
    period, counted = profile.pattern.period, np.flatnonzero(profile.counted)
    if period == 1 or not len(counted) or not profile.holds_whole_periods:
        return None
    lasting = profile.attribution.answered_view.step_ns[counted]
    places = np.arange(len(counted)) % period
    usual_ns = float(np.median(lasting))
    is_longer: Bools = np.isin(places, places_far_longer(lasting.tolist(), period))
    excess_ns = float((lasting[is_longer] - usual_ns).sum())
    if excess_ns <= 0 or excess_ns < LEAST_SHARE * lasting.sum() or 2 * is_longer.sum() >= len(lasting):
        return None
    longer = int(is_longer.sum())
    return RareWork(
        every=len(lasting) / longer,
        longer_ns=excess_ns / longer,
        share=excess_ns / float(lasting.sum()),
        by_line=_by_line(profile, counted, is_longer, float(lasting.mean())),
    )


def _by_line(profile: Profile, counted: Ints, is_longer: Bools, mean_ns: float) -> list[RareLine]:
    """The lines that take longer in the longer steps of every period; none without a recording with stacks."""
    trace, ownership = profile.trace, profile.ownership
    costs = None
    if ownership.recording is not None and (profile.variant is not None or len(trace.ts_ns) <= MOST_EVENTS):
        costs = ownership.costs.get(profile.attribution.answered_view.name)
    if costs is None:
        return []
    position = np.full(len(trace.steps), -1, np.int64)
    position[counted] = np.arange(len(counted))
    taken: dict[int, FloatArray] = defaultdict(lambda: np.zeros((len(PHASES), len(counted))))
    for step, owner, ns in zip(position[costs.step].tolist(), costs.owner.tolist(), costs.ns.tolist(), strict=True):
        if step >= 0:
            row = ownership.owners.rows[owner]
            taken[row.group][row.phase, step] += ns
    periods, found = len(counted) // profile.pattern.period, []
    for group, by_phase in taken.items():
        excess_ns = np.where(is_longer, by_phase - np.median(by_phase[:, ~is_longer], axis=1, keepdims=True), 0.0)
        phase, of_steps = PHASES[int(excess_ns.sum(axis=1).argmax())], excess_ns.sum(axis=0)
        holds = of_steps >= _TAKES_PART * of_steps.max()
        if of_steps.sum() >= LEAST_SHARE * mean_ns * len(counted) and holds.sum() >= periods:
            every, each_ns = len(counted) / int(holds.sum()), float(of_steps[holds].mean())
            found.append(RareLine(phase, ownership.owners.groups[group], every, each_ns))
    return sorted(found, key=lambda line: -line.each_ns / line.every)
