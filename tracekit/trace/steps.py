"""When was each step issued, when did its work begin, and when was it done?

The host runs ahead of the GPU: a `ProfilerStep#N` annotation says when a step was issued. A step lasts until the last
GPU activity that was launched in it has ended, and begins when the step before it is done.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tracekit.intervals import Bools, Ints, Rows
from tracekit.trace.iterations import Iterations, find_iterations
from tracekit.trace.roles import STEP
from tracekit.trace.rows import AFTER, BEFORE

if TYPE_CHECKING:
    from tracekit.trace.model import Trace


@dataclass(frozen=True)
class StepTable:
    """One row per step, in order. All times are in ns on the trace's clock.

    `issued` is where the annotation starts and `returned` where it ends; the step's time, in which its launches are
    looked for, is `[issued, until)`; its work takes `[begin, done)`.
    """

    number: list[int]
    issued: Ints
    returned: Ints
    until: Ints
    begin: Ints
    done: Ints
    annotated: bool  # False: the trace has no annotated steps; it is one step, unless steps were inferred
    inferred: str | None = None  # what steps without annotations were inferred from

    def __len__(self) -> int:
        return len(self.number)

    @property
    def window(self) -> tuple[int, int]:
        """The time from the first step's issue to the end of the last one's work."""
        return (int(self.issued[0]), int(self.done[-1])) if len(self.number) else (0, 0)

    def of(self, points: Ints) -> Ints:
        """The step that contains each moment; −1 for none."""
        if not len(self.number):
            return np.full(len(points), -1)
        index = np.searchsorted(self.issued, points, side="right") - 1
        return np.where((index >= 0) & (points < self.until[np.maximum(index, 0)]), index, -1)


def in_steps(chosen: Bools, steps: Ints | Rows) -> Bools:
    """Which of these indices of steps are of a chosen step; −1, which stands for no step, is not."""
    mask: Bools = np.append(chosen, False)[steps]  # −1 gets what was appended
    return mask


def find_steps(trace: "Trace") -> StepTable:
    """The steps of the main thread; without annotations, the whole trace as step 0 or, on request, what repeats."""
    main = trace.threads.main
    if main is None or not trace.census.any(lambda roles: roles.step):
        iterations = find_iterations(trace) if trace.infers_steps else None
        return _whole(trace) if iterations is None else _inferred(trace, iterations)
    named = trace.where(lambda part: part.roles.named(STEP))
    rows = named[trace.events_at(named).roles.step & (trace.track[named] == main)]
    numbers = [_number(trace.names[code]) for code in trace.name_codes[rows].tolist()]
    starts, ends = trace.ts_ns[rows], trace.events_at(rows).end_ns
    order = sorted(range(len(rows)), key=lambda k: (starts[k], ends[k], numbers[k]))
    issued, returned = starts[order], ends[order]
    until = np.append(issued[1:], returned[-1])
    return _with_work(trace, [numbers[k] for k in order], issued, returned, until)


def _number(name: str) -> int:
    match = STEP.fullmatch(name)
    assert match is not None
    return int(match[1])


def _inferred(trace: "Trace", iterations: Iterations) -> StepTable:
    numbers = [*range(len(iterations.starts))]
    until = np.append(iterations.starts[1:], iterations.ends[-1])
    steps = _with_work(trace, numbers, iterations.starts, iterations.ends, until)
    return replace(steps, annotated=False, inferred=iterations.by)


def _whole(trace: "Trace") -> StepTable:
    start, end = AFTER, BEFORE
    for part in trace.parts():
        chosen = part.lasting & (part.process | part.roles.gpu)
        if chosen.any():
            start, end = min(start, int(part.ts_ns[chosen].min())), max(end, int(part.end_ns[chosen].max()))
    bounds = np.full(1, start, np.int64), np.full(1, end, np.int64)
    low, high = bounds if start < end else (np.zeros(0, np.int64), np.zeros(0, np.int64))
    return StepTable([0] * len(low), low, high, high, low, high, False)


def _with_work(trace: "Trace", numbers: list[int], issued: Ints, returned: Ints, until: Ints) -> StepTable:
    steps = StepTable(numbers, issued, returned, until, issued, returned, True)
    done, backlog = returned.copy(), BEFORE
    for activities, launches in trace.links.some():
        events = trace.events_at(activities)
        lasting = events.lasting  # an event without a duration bounds nothing
        launched, ends = trace.ts_ns[launches[lasting]], events.end_ns[lasting]
        owner = steps.of(launched)
        np.maximum.at(done, owner[owner >= 0], ends[owner >= 0])
        backlog = max(backlog, int(ends[launched < issued[0]].max(initial=BEFORE)))
    backlog = max(backlog, _unlinked_backlog(trace))
    reach = np.maximum.accumulate(np.append(backlog if backlog > BEFORE else issued[0], done))
    return StepTable(numbers, issued, returned, until, np.maximum(issued, reach[:-1]), reach[1:], True)


def _unlinked_backlog(trace: "Trace") -> int:
    """The end of work that was submitted before the recording: it has no call, and its id is below that of every
    call."""
    if trace.links.gpu == len(trace.links.activities):
        return BEFORE
    least, ends = int(np.iinfo(np.int64).max), BEFORE
    for part in trace.parts():
        calls = part.roles.runtime & part.process & (part.correlation != 0)
        least = min(least, int(part.correlation[calls].min(initial=least)))
    for part in trace.parts():
        older = part.roles.gpu & part.lasting & (part.correlation != 0) & (part.correlation < least)
        older[older] = trace.links.launch(part.rows(older)) < 0
        ends = max(ends, int(part.end_ns[older].max(initial=BEFORE)))
    return ends
