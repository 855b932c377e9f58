"""On a CPU: when does the host do nothing but wait in a collective?

A backend on a CPU, such as gloo, communicates on threads of its own. The contract gives what the main thread does
meanwhile to its own buckets: to wait for the backend is Python between operators, or, where the autograd engine waits,
a part of its work. Both are communication that nothing hides. No event says that the host waits, so this is inferred.
"""

import re
from typing import TYPE_CHECKING

import numpy as np

from tracekit.base.intervals import NO_TIME, Bools, Union
from tracekit.trace.roles import PYTHON, USER

if TYPE_CHECKING:
    from tracekit.profile.profile import Profile

BACKEND_SPAN = re.compile(r"(?:gloo|mpi|ucc):.*", re.DOTALL)  # spans of torch.distributed on a CPU
_STARTING = re.compile(r"c10d::.*|record_param_comms", re.DOTALL)  # operators that hand a collective to the backend


def collective_waits(profile: "Profile") -> Union:
    """The time of the steps in which a collective runs and the host waits; nothing in a trace of a GPU."""
    trace, pieces = profile.trace, profile.attribution.pieces
    if trace.device == "gpu" or not trace.labels.fits(BACKEND_SPAN).any():
        return NO_TIME
    rows = trace.where(lambda part: (part.roles.kind == USER) & part.roles.named(BACKEND_SPAN))
    running = Union.of(trace.ts_ns[rows], trace.ts_ns[rows] + trace.dur_ns[rows])
    row = np.maximum(pieces.event, 0)
    starting = trace.labels.fits(_STARTING)[trace.name_codes[row]]
    python = trace.kinds[row] == PYTHON
    # The host may wait while no operator works, except one that starts a collective.
    may_wait: Bools = pieces.of("python") | (pieces.of("cpu_compute") & ((pieces.event < 0) | python | starting))
    return pieces.union(may_wait).common(running)
