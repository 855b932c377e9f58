"""When is it unknown what the GPU did: at either end of the recording, and where the trace lacks work?"""

import numpy as np

from tracekit.base.intervals import NO_TIME, Ints, Union
from tracekit.engine.wall import SUBMISSION_NS
from tracekit.profile.profile import Profile
from tracekit.profile.recording_words import has_steps
from tracekit.trace import Trace
from tracekit.trace.rows import AFTER, BEFORE


def unseen(profile: Profile) -> Union:
    """That time inside the answered steps; none in a trace whose wall time is unknown."""
    trace, view = profile.trace, profile.views["wall"]
    activities = trace.where(lambda part: part.roles.gpu & part.lasting) if trace.device == "gpu" else np.zeros(0, int)
    if not len(activities) or not view.known.any():
        return NO_TIME
    first, last = int(trace.ts_ns[activities[0]]), int(trace.events_at(activities).end_ns.max())
    lost = trace.ts_ns[trace.coverage.calls[trace.coverage.is_lost]]
    without_steps, launches = not has_steps(profile), trace.links.launches
    if not (without_steps or _starts_late(trace, activities)):
        # Where the first launches have no work, the recording of the GPU began as late as that work may have run.
        first = int(trace.unknown.gpu.clip(BEFORE, first).ends.max(initial=BEFORE)) if (lost < first).any() else BEFORE
    if not (without_steps or (lost > trace.ts_ns[launches].max(initial=BEFORE)).any()):
        last = AFTER
    is_known = view.known & (view.step_ns > 0)
    steps = Union.of(view.starts_ns[is_known], (view.starts_ns + view.step_ns)[is_known])
    ends = steps.minus(Union.of(np.array([first]), np.array([last])))
    return ends.plus(steps.common(trace.unknown.gpu))


def _starts_late(trace: Trace, activities: Ints) -> bool:
    """Whether the first activity starts so long after its call that work which was not recorded must have kept it
    waiting: far longer than the others that are called while the GPU idles."""
    calls = trace.links.launch(activities)
    delays = trace.ts_ns[activities] - trace.events_at(np.maximum(calls, 0)).end_ns
    worked_until = np.maximum.accumulate(trace.events_at(activities).end_ns)
    into_idle = delays[1:][(calls[1:] >= 0) & (worked_until[:-1] <= trace.ts_ns[activities[1:]] - delays[1:])]
    usual_ns = float(np.median(into_idle)) if len(into_idle) else 0.0
    return bool(calls[0] >= 0) and bool(delays[0] > 2 * max(SUBMISSION_NS, usual_ns))
