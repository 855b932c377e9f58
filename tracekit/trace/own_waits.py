"""Which waits belong to the recording itself, and not to the training? And from when on is there nothing else?"""

import re
from typing import TYPE_CHECKING

import numpy as np

from tracekit.base.intervals import Bools, Ints
from tracekit.trace.roles import DEVICE_SYNC, PYTHON
from tracekit.trace.rows import PART, enclosing

if TYPE_CHECKING:
    from tracekit.trace.model import Trace
    from tracekit.trace.rows import Events

# torch.profiler waits for the GPU when it stops; with stacks, its own frames enclose that.
_STOP = re.compile(
    r"(?:.*[/\\])?torch[/\\](?:autograd[/\\])?profiler[/\\]?.*\.py\(\d+\): (?:stop_trace|__exit__)", re.DOTALL
)


def own_waits(trace: "Trace", calls: Ints) -> Ints:
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


def own_end(trace: "Trace") -> int | None:
    """When the recording's own wait at its end begins, in ns on the trace's clock; None where there is none.

    What the GPU still does then belongs to the training.
    """
    calls = trace.where(lambda part: part.roles.sync_by_name & part.process)
    waits = own_waits(trace, calls)
    if not len(waits):
        return None
    last = waits[waits > _last_work(trace, waits)]
    return int(trace.ts_ns[last[0]]) if len(last) else None


def _last_work(trace: "Trace", waits: Ints) -> int:
    """The row of the last event that is work of the process other than these waits; −1 if there is none."""
    end = len(trace.ts_ns)
    while end > 0:
        part = trace.events_at(slice(max(end - PART, 0), end))
        work = np.setdiff1d(part.rows(_works(part) & part.process), waits, assume_unique=True)
        if len(work):
            return int(work[-1])
        end -= PART
    return -1


def _works(events: "Events") -> Bools:
    roles = events.roles
    return roles.operator | roles.launch | roles.sync_by_name


def _ends_the_recording(trace: "Trace", call: int) -> bool:
    """Whether a wait for the whole GPU comes after all else: without stacks, this marks the end of a recording."""
    sync_event = trace.events_at(np.array([call]))
    if not sync_event.roles.named(DEVICE_SYNC, runtime=True)[0] or trace.operators.of(np.array([call]))[0] >= 0:
        return False
    steps = trace.where(lambda part: part.roles.step)
    if (trace.events_at(steps).end_ns > trace.ts_ns[call]).any():
        return False
    later = trace.events_at(slice(call + 1, len(trace.ts_ns)))
    return not bool((_works(later) & later.process).any())
