"""Which steps of a trace do work that its others do not, such as an evaluation, and which traces hold no such step?"""

from collections.abc import Sequence

import numpy as np

from tracekit.base.intervals import Bools, Ints
from tracekit.profile.profile import Profile
from tracekit.statistics.typical_step import has_unexplained_work, steps_far_longer
from tracekit.trace.roles import OPERATOR

_HOLDS = 0.5  # of the operators that rare steps of another trace run beyond usual ones: it is the same work


def rare_steps(profile: Profile, candidates: Bools) -> list[int]:
    """The indices of those candidates that take far longer and run more operators than the other ones, as a step that
    the machine held up does not."""
    indices = np.flatnonzero(candidates)
    lasting = profile.attribution.answered_view.step_ns[indices].tolist()
    far = steps_far_longer(lasting)
    if not far or (profile.pattern.period == 1 and not has_unexplained_work(lasting)):
        return []
    ran = _operators(profile)[indices]
    usual = np.delete(ran, far).max()
    return [int(indices[step]) for step in far if ran[step] > usual]


def one_lacks_rare_steps(profiles: Sequence[Profile]) -> bool:
    """Whether some of these, which are of one run, have rare steps and another has none: none that stands out by its
    operators, however long it takes."""
    beyond = [_beyond_usual(profile, rare_steps(profile, profile.counted)) for profile in profiles]
    if not any(beyond):
        return False
    return any(
        not own and _beyond_usual(profile, np.flatnonzero(profile.counted)) < _HOLDS * max(beyond)
        for own, profile in zip(beyond, profiles, strict=True)
    )


def _beyond_usual(profile: Profile, indices: Sequence[int] | Ints) -> float:
    """By how many operators the one of these steps that runs most exceeds the usual step; 0 for none."""
    if not len(indices):
        return 0.0
    ran = _operators(profile)
    return float(ran[indices].max() - np.median(ran[profile.counted]))


def _operators(profile: Profile) -> Ints:
    """How many each step runs."""
    trace = profile.trace
    rows = trace.where(lambda part: part.process & (part.roles.kind == OPERATOR))
    return np.bincount(trace.steps.of(trace.ts_ns[rows]) + 1, minlength=len(trace.steps) + 1)[1:]
