"""Do the traces of all variants hold the same kinds of steps? Where a window is shorter than the period in which an
evaluation recurs, one trace may hold it and another not: their difference would be the evaluation.

Such a step takes far longer and runs more operators than any usual one; a step that the machine held up runs as many.
"""

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from tracekit.profile.profile import Profile
from tracekit.profile.subject import Member
from tracekit.statistics.typical_step import has_unexplained_work, steps_far_longer
from tracekit.trace.roles import OPERATOR


def over_shared_kinds(members: Sequence[Member]) -> list[Member]:
    """The same, each without the steps of a kind that another variant of its run did not record."""
    extra = {member.name: _steps_with_more(member) for member in members if isinstance(member, Profile)}
    lacking = {member.run_name for member in members if member.name in extra and not extra[member.name]}
    return [
        replace(member, unshared=tuple(extra[member.name]))
        if isinstance(member, Profile) and member.run_name in lacking and extra[member.name]
        else member
        for member in members
    ]


def _steps_with_more(profile: Profile) -> list[int]:
    """The indices of counted steps that take far longer and run more operators than the others; none of a bare
    trace."""
    if not profile.run_name:
        return []
    trace, indices = profile.trace, np.flatnonzero(profile.counted)
    lasting = profile.attribution.answered_view.step_ns[indices].tolist()
    far = steps_far_longer(lasting)
    if not far or (profile.pattern.period == 1 and not has_unexplained_work(lasting)):
        return []
    operators = trace.where(lambda part: part.process & (part.roles.kind == OPERATOR))
    ran = np.bincount(trace.steps.of(trace.ts_ns[operators]) + 1, minlength=len(trace.steps) + 1)[1:][indices]
    usual = np.delete(ran, far).max()
    return [int(indices[step]) for step in far if ran[step] > usual]
