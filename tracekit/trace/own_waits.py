"""Which waits belong to the recording itself, and not to the training?"""

import re

import numpy as np

from tracekit.intervals import Ints
from tracekit.trace.enclosing import enclosing
from tracekit.trace.model import Trace
from tracekit.trace.roles import OPERATOR, PYTHON

# torch.profiler waits for the GPU when it stops; with stacks, its own frames enclose that.
_STOP = re.compile(
    r"(?:.*[/\\])?torch[/\\](?:autograd[/\\])?profiler[/\\]?.*\.py\(\d+\): (?:stop_trace|__exit__)", re.DOTALL
)
_WAIT = re.compile(r"(?:cuda|hip)DeviceSynchronize|cuCtxSynchronize")


def own_waits(trace: Trace, calls: Ints) -> Ints:
    """Which of these sync calls a capture makes as its last step ends, or the profiler as it stops; in order."""
    if not len(calls):
        return calls
    by_recorder = np.zeros(len(calls), bool)
    if trace.census.any(lambda roles: roles.own_wait):
        by_recorder |= enclosing(trace, calls, lambda part: part.roles.own_wait) >= 0
    stops = trace.labels.fits(_STOP)
    if stops.any():
        by_recorder |= enclosing(trace, calls, lambda part: (part.roles.kind == PYTHON) & stops[part.name_codes]) >= 0
    else:
        by_recorder[-1] |= _ends_the_recording(trace, int(calls[-1]))
    return calls[by_recorder]


def _ends_the_recording(trace: Trace, call: int) -> bool:
    """Whether a wait for the whole GPU comes after all else: without stacks, this marks the end of a recording."""
    sync_event = trace.events_at(np.array([call]))
    if not sync_event.roles.named(_WAIT, runtime=True)[0] or trace.operators.of(np.array([call]))[0] >= 0:
        return False
    if trace.steps.annotated and trace.ts_ns[call] < trace.steps.returned[-1]:
        return False
    later = trace.events_at(slice(call + 1, len(trace.ts_ns)))
    works = (later.roles.kind == OPERATOR) | later.roles.launch | later.roles.sync_by_name
    return not bool((works & later.process).any())
