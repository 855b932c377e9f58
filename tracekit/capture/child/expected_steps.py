"""How many steps will a pass over a script take, and how long will the rest of them take?"""

import statistics
from collections import deque

from tracekit.capture.child import loss_check, timing
from tracekit.capture.child.measure import FIRST_STEPS, length
from tracekit.capture.child.windows import DETAIL, STEADY_WARMUP
from tracekit.capture.job import Job


class ExpectedSteps:
    """What the steps so far tell about those to come. Steps that compile tell nothing about the time of others."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._settled = max(job.warmup, FIRST_STEPS + timing.QUIET_STEPS)
        self._quiet: deque[int] = deque(maxlen=timing.QUIET_STEPS)  # durations of the last steps, ns

    def took(self, steps_taken: int, step_ns: int, *, compiled: bool) -> None:
        """Note the step with that number."""
        if compiled:
            self._quiet.clear()
            self._settled = min(max(self._settled, steps_taken + timing.QUIET_STEPS), timing.MOST_WARMUP_STEPS)
        else:
            self._quiet.append(step_ns)

    def steps(self) -> int:
        """The number of all steps, if nothing compiles any more."""
        steps = self._steps()
        return steps if self._job.available is None else min(steps, self._job.available)

    def left_ns(self, steps_taken: int) -> int | None:
        """How long the steps that are left will take; None if that cannot be known.

        While something compiles, steps have no usual duration; and a trace takes time to write, and its stacks to
        record.
        """
        steps_left = self.steps() - steps_taken
        if self._job.stage == "profile" or len(self._quiet) < timing.QUIET_STEPS or steps_left <= 0:
            return None
        return round(steps_left * statistics.median(self._quiet))

    def _steps(self) -> int:
        if self._job.stage == "check":
            return loss_check.STEPS
        if self._job.stage == "measure":
            step_ns = round(statistics.median(self._quiet)) if self._quiet else 0
            timed = length(self._job)
            return self._settled + 1 + (timed.steps(step_ns) if step_ns else timed.fewest_steps)
        return self._settled + STEADY_WARMUP + self._job.steps + DETAIL.warmup + DETAIL.steps
