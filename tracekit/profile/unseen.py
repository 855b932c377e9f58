"""Of which time at either end of a recording is it unknown what the GPU did?

Before the first recorded activity and after the last, the GPU seems to idle. It may as well have been busy with what
was submitted before, or the recording of its side began later than that of the host, or ended earlier. Nothing is to
blame for such time. In a recording with steps it is part of a step unless the trace shows that work is missing there;
in one without, it is start-up and the end.
"""

import numpy as np

from tracekit import event_names
from tracekit.engine.wall import SUBMISSION_NS
from tracekit.intervals import Union
from tracekit.profile.profile import Profile
from tracekit.profile.recording_words import has_steps
from tracekit.trace.rows import AFTER, BEFORE

_KERNELS = event_names.call(event_names.KERNEL_LAUNCH)


def unseen(profile: Profile) -> Union:
    """That time inside the answered steps; none in a trace whose wall time is unknown."""
    trace, view = profile.trace, profile.views["wall"]
    activities = trace.where(lambda part: part.roles.gpu & part.lasting) if trace.device == "gpu" else np.zeros(0, int)
    if not len(activities) or not view.known.any():
        return Union.of(np.zeros(0, np.int64), np.zeros(0, np.int64))
    first, last = int(trace.ts_ns[activities[0]]), int(trace.events_at(activities).end_ns.max())
    calls = trace.where(lambda part: part.roles.launch & part.process & part.roles.named(_KERNELS))
    calls = calls[~np.isin(trace.correlation[calls], (0, -1))]  # these link nothing
    lost = trace.ts_ns[calls[trace.links.submitted(calls)[1] == 0]]
    whole, launches = not has_steps(profile), trace.links.launches
    of_first = trace.links.launch(activities[:1])
    late = bool(of_first[0] >= 0) and first - int(trace.events_at(of_first).end_ns[0]) > 2 * SUBMISSION_NS
    before = whole or late or bool((lost < first).any())
    after = whole or bool((lost > trace.ts_ns[launches].max(initial=BEFORE)).any())
    known = view.known & (view.step_ns > 0)
    steps = Union.of(view.starts_ns[known], (view.starts_ns + view.step_ns)[known])
    return steps.minus(Union.of(np.array([first if before else BEFORE]), np.array([last if after else AFTER])))
