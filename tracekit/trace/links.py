"""Which runtime call submitted which GPU activity?

Two events are linked by equal correlation. One call may submit many activities (a CUDA graph), and several calls may
carry one id: the one that starts first, then ends first, is the launch.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracekit.intervals import Bools, Ints, Rows
from tracekit.trace.roles import ASYNC_COPY, COPY

if TYPE_CHECKING:
    from tracekit.trace.model import Trace


@dataclass(frozen=True)
class Links:
    """Per event; rows are indices into the events table, −1 for none."""

    launch: Rows  # of a GPU activity: the call that submitted it
    sync: Bools  # sync calls: those by name and the copies that blocked
    activity: Rows  # of a launch call: the first-starting activity it submitted
    activities: Rows  # of a launch call: how many activities it submitted


def link(trace: "Trace") -> Links:
    """Link the runtime calls of the main thread's process with the GPU activities of the trace."""
    roles, size = trace.roles, len(trace.events)
    correlated = trace.correlation != 0
    calls = np.flatnonzero(roles.runtime & trace.threads.process & correlated)
    sync = roles.sync_by_name | _blocking_copies(trace, calls)
    # Of calls that are alike in all the rule names, a sync call: no order of events may decide.
    calls = calls[np.lexsort((~sync[calls], trace.end_ns[calls], trace.ts_ns[calls], trace.correlation[calls]))]
    ids = trace.correlation[calls]
    first = np.concatenate(([True], ids[1:] != ids[:-1])) if len(ids) else np.zeros(0, bool)
    launches, launch_ids = calls[first], ids[first]

    gpu = np.flatnonzero(roles.gpu & correlated)
    gpu = gpu[np.argsort(trace.ts_ns[gpu], kind="stable")]
    place = np.searchsorted(launch_ids, trace.correlation[gpu])
    found = np.zeros(len(gpu), bool)
    inside = place < len(launch_ids)
    found[inside] = launch_ids[place[inside]] == trace.correlation[gpu[inside]]
    launch = np.full(size, -1, np.int32)
    launch[gpu[found]] = launches[place[found]]

    activity = np.full(size, -1, np.int32)
    backwards = gpu[found][::-1]
    activity[launch[backwards]] = backwards  # written last: the one that starts first
    activities = np.bincount(launch[backwards], minlength=size).astype(np.int32)
    return Links(launch, sync, activity, activities)


def _blocking_copies(trace: "Trace", calls: Ints) -> Bools:
    """Asynchronous copies in name only: the copy they submitted had ended when they returned."""
    blocking = np.zeros(len(trace.events), bool)
    copies = np.flatnonzero((trace.roles.kind == COPY) & (trace.correlation != 0))
    copies = copies[np.lexsort((trace.end_ns[copies], trace.correlation[copies]))]
    ids = trace.correlation[copies]
    asynchronous = calls[trace.roles.named(ASYNC_COPY, runtime=True)[calls]]
    last = np.searchsorted(ids, trace.correlation[asynchronous], side="right") - 1
    known = last >= 0
    known[known] = ids[last[known]] == trace.correlation[asynchronous[known]]
    asynchronous, last = asynchronous[known], last[known]
    blocking[asynchronous] = trace.end_ns[copies[last]] <= trace.end_ns[asynchronous]
    return blocking
