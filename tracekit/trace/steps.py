"""When was each step issued, when did its work begin, and when was it done?

The host runs ahead of the GPU: a `ProfilerStep#N` annotation says when a step was issued. A step lasts until the last
GPU activity that was launched in it has ended, and begins when the step before it is done.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracekit.intervals import Bools, Ints
from tracekit.trace.roles import STEP

if TYPE_CHECKING:
    from tracekit.trace.model import Trace


@dataclass(frozen=True)
class StepTable:
    """One row per step, in order. All times in ns on the trace's clock.

    `issued` is where the annotation starts and `returned` where it ends; the step's time, in which its launches are
    looked for, is `[issued, until)`; its work takes `[begin, done)`.
    """

    number: list[int]
    issued: Ints
    returned: Ints
    until: Ints
    begin: Ints
    done: Ints
    annotated: bool  # False: the trace has no steps, and all of it is one

    def __len__(self) -> int:
        return len(self.number)

    @property
    def window(self) -> tuple[int, int]:
        """From the first step's issue to the end of the last one's work."""
        return (int(self.issued[0]), int(self.done[-1])) if len(self.number) else (0, 0)

    def of(self, points: Ints) -> Ints:
        """In which step's time each moment lies, −1 for none."""
        if not len(self.number):
            return np.full(len(points), -1)
        index = np.searchsorted(self.issued, points, side="right") - 1
        return np.where((index >= 0) & (points < self.until[np.maximum(index, 0)]), index, -1)


def find_steps(trace: "Trace") -> StepTable:
    """The steps of the main thread; without annotations, the whole trace as step 0."""
    main = trace.threads.main
    rows = np.flatnonzero(trace.roles.step & (trace.track == (-1 if main is None else main)))
    if not len(rows):
        return _whole(trace)
    names = trace.names
    numbers = [_number(names[code]) for code in trace.name_codes[rows]]
    order = sorted(range(len(rows)), key=lambda k: (trace.ts_ns[rows[k]], trace.end_ns[rows[k]], numbers[k]))
    rows, numbers = rows[order], [numbers[k] for k in order]
    issued, returned = trace.ts_ns[rows], trace.end_ns[rows]
    until = np.append(issued[1:], returned[-1])
    return _with_work(trace, numbers, issued, returned, until)


def _number(name: str) -> int:
    found = STEP.fullmatch(name)
    assert found is not None
    return int(found[1])


def _whole(trace: "Trace") -> StepTable:
    lasting = _lasting(trace) & (trace.threads.process | trace.roles.gpu)
    if not lasting.any():
        nothing = np.zeros(0, np.int64)
        return StepTable([], nothing, nothing, nothing, nothing, nothing, False)
    start = np.array([trace.ts_ns[lasting].min()], np.int64)
    end = np.array([trace.end_ns[lasting].max()], np.int64)
    return StepTable([0], start, end, end, start, end, False)


def _with_work(trace: "Trace", numbers: list[int], issued: Ints, returned: Ints, until: Ints) -> StepTable:
    launched = np.flatnonzero((trace.links.launch >= 0) & _lasting(trace))  # what takes no time bounds nothing
    launch_ts = trace.ts_ns[trace.links.launch[launched]]
    steps = StepTable(numbers, issued, returned, until, issued, returned, True)
    owner = steps.of(launch_ts)
    done = returned.copy()
    np.maximum.at(done, owner[owner >= 0], trace.end_ns[launched[owner >= 0]])
    backlog = _backlog(trace, int(issued[0]), launched[launch_ts < issued[0]])
    reach = np.maximum.accumulate(np.append(backlog, done))
    return StepTable(numbers, issued, returned, until, np.maximum(issued, reach[:-1]), reach[1:], True)


def _backlog(trace: "Trace", start: int, launched_before: Ints) -> int:
    """When the GPU had worked off what was submitted before the first step; the first step's start if nothing was."""
    roles, links = trace.roles, trace.links
    calls: Bools = roles.runtime & trace.threads.process & (trace.correlation != 0)
    unlinked = roles.gpu & (links.launch < 0) & (trace.correlation != 0) & _lasting(trace)
    if calls.any():
        unlinked &= trace.correlation < trace.correlation[calls].min()
    ends = np.concatenate((trace.end_ns[launched_before], trace.end_ns[unlinked]))
    return int(ends.max()) if len(ends) else start


def _lasting(trace: "Trace") -> Bools:
    return trace.end_ns > trace.ts_ns
