"""Where a pass spends its own time: each moment of its process counts for one activity, so that these add up.

What the compiler takes is taken out of the activity in which it happens. A process has one stopwatch.
"""

import time
from collections import Counter
from collections.abc import Callable

from tracekit.run import Activity


class Stopwatch:
    """What this process has done since it was started, and what it does now."""

    def __init__(self) -> None:
        self._compiled_ns: Callable[[], int] = lambda: 0
        self.start(time.time_ns())

    def start(self, began_ns: int) -> None:
        """Begin anew, with a process that was started then (unix ns): so far, it has been starting."""
        self._since_ns = time.perf_counter_ns() - max(time.time_ns() - began_ns, 0)
        self._activity: Activity = "start"
        self._spent_ns: Counter[Activity] = Counter()
        self._compiled_before_ns = self._compiled_ns()

    def listen(self, compiled_ns: Callable[[], int]) -> None:
        """From now on, what the compiler has taken in all is known."""
        self._compiled_ns = compiled_ns

    def enter(self, activity: Activity) -> None:
        """The process does something else from now on."""
        now_ns, compiled_ns = time.perf_counter_ns(), self._compiled_ns()
        spent_ns = now_ns - self._since_ns
        compiling_ns = min(max(compiled_ns - self._compiled_before_ns, 0), spent_ns)
        self._spent_ns[self._activity] += spent_ns - compiling_ns
        self._spent_ns["compile"] += compiling_ns
        self._activity, self._since_ns, self._compiled_before_ns = activity, now_ns, compiled_ns

    def seconds(self) -> dict[Activity, float]:
        """How long each activity has taken so far, s."""
        self.enter(self._activity)
        return {activity: round(ns / 1e9, 3) for activity, ns in self._spent_ns.items() if ns}


stopwatch = Stopwatch()
