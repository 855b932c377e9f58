"""From what time on may events be missing in a truncated file?

Kineto does not write in order of time. What the host did comes first, thread by thread and then all Python frames; what
the runtime and the GPU did follows, buffer by buffer: in real traces a call may come after one that is later by the
whole length of the recording. Whatever is missing from such a file may belong to any moment, and one missing launch
changes the step around it. A truncated file is therefore unknown from its very start.

The exception is a file that is clearly written in order of time, as by tools that sort events: it is known up to the
start of its last event. Either all starts ascend, and operators still follow GPU activity; or all starts ascend,
threads alternate, and the header says that the recording had neither a GPU nor Python stacks, so that nothing else was
to come. (A single thread shows no order: the next one may follow as a whole.)
"""

from typing import TYPE_CHECKING

import numpy as np

from tracekit.intervals import runs
from tracekit.trace.roles import OPERATOR

if TYPE_CHECKING:
    from tracekit.trace.model import Trace


def first_loss(trace: "Trace") -> int | None:
    """The earliest time, in ns on the trace's clock, at which something may be missing; None in a complete file."""
    if not trace.cut_short or not len(trace.ts_ns):
        return None
    starts = trace.ts_ns
    if not trace.in_order:
        return int(starts[0])
    host_only = trace.meta.get("deviceProperties") == [] and not trace.meta.get("with_stack")
    known = _host_follows_gpu(trace) or (host_only and _take_turns(trace))
    return int(starts[-1]) if known else int(starts[0])


def _host_follows_gpu(trace: "Trace") -> bool:
    """Whether an operator comes after a GPU activity."""
    seen = False
    for part in trace.parts():
        gpu, host = (np.flatnonzero(mask) for mask in (part.roles.gpu, part.roles.kind == OPERATOR))
        if len(host) and (seen or (len(gpu) and host[-1] > gpu[0])):
            return True
        seen = seen or len(gpu) > 0
    return False


def _take_turns(trace: "Trace") -> bool:
    """Whether events of a thread come both before and after an event of another thread."""
    turns, last = 0, -1
    for part in trace.parts():
        tracks = part.track[part.roles.host]
        turns += len(runs(np.append(last, tracks))) - 2
        last = int(tracks[-1]) if len(tracks) else last
    threads = trace.census.by_track(lambda roles: roles.host, len(trace.tracks))
    return turns > int(np.count_nonzero(threads))
