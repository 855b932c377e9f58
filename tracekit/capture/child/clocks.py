"""The clocks of a pass: for what its process does, for how fast the machine is, and without the waits for a core.

Each moment of the process counts for one activity, so that these add up. What the compiler takes is taken out of the
activity in which it happens.

The kernel counts how long a thread waits for a core because others run there. A process that takes turns has no other
work of its own beside its steps, so what the thread that drives the steps waits for a core is the work of others, and
no part of a step: `what the clock says − what it waited for a core` goes on as if the machine were quiet. Waiting for
anything else – data, a lock, its own threads – is not in it. Source: the second figure of `schedstat`, "time spent
waiting on a runqueue" (Documentation/scheduler/sched-stats.rst).

What else runs in the same processor, and its clock, change from one minute to the next, also on a machine that seems
idle: in a virtual one, others use the same caches and memory. So two pieces of work that are always the same are timed
beside each turn of steps. Variants in turns meet the same machine; two captures do not, and a check of one against the
other has to know how much of a difference is the machine's (`tracekit.run.pace`).
"""

import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracekit.run import Activity

_LONGEST = 64  # bytes of the three numbers of schedstat
_TRIES = 3  # of which the fastest counts
_COMPUTED = 10_000  # numbers: about 1 ms, within a core's own caches
# 100,000 objects all over a few MB, which a core shares with others. Each row is small enough for Python's own arenas:
# large blocks that are freed move the thresholds of glibc, which decide what memory costs a training.
_ROWS, _IN_A_ROW, _APART = 1_786, 56, 577


class Stopwatch:
    """What this process has done since it was started, and what it does now: a process has one."""

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

    def enter(self, activity: "Activity") -> None:
        """The process does something else from now on."""
        now_ns, compiled_ns = time.perf_counter_ns(), self._compiled_ns()
        spent_ns = now_ns - self._since_ns
        compiling_ns = min(max(compiled_ns - self._compiled_before_ns, 0), spent_ns)
        self._spent_ns[self._activity] += spent_ns - compiling_ns
        self._spent_ns["compile"] += compiling_ns
        self._activity, self._since_ns, self._compiled_before_ns = activity, now_ns, compiled_ns

    def seconds(self) -> "dict[Activity, float]":
        """How long each activity has taken so far, s."""
        self.enter(self._activity)
        return {activity: round(ns / 1e9, 3) for activity, ns in self._spent_ns.items() if ns}


stopwatch = Stopwatch()


class RunQueue:
    """The clock of the calling thread, without its waits for a core; without `schedstat`, that of the wall."""

    def __init__(self) -> None:
        self._file: int | None = None
        with suppress(OSError, ValueError, IndexError):
            self._file = os.open(f"/proc/self/task/{threading.get_native_id()}/schedstat", os.O_RDONLY)
            if not self.waited_ns() and not int(os.pread(self._file, _LONGEST, 0).split()[0]):
                self._close()  # a kernel that counts nothing

    def __del__(self) -> None:
        self._close()

    @property
    def is_known(self) -> bool:
        """Whether the system says how long a thread waits for a core."""
        return self._file is not None

    def waited_ns(self) -> int:
        """How long the thread has waited for a core since it was started, ns; 0 if the system does not say."""
        return int(os.pread(self._file, _LONGEST, 0).split()[1]) if self._file is not None else 0

    def now_ns(self) -> int:
        """What the clock says, without the time in which the thread waited for a core, ns."""
        return time.perf_counter_ns() - self.waited_ns()

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


class Yardsticks:
    """The work, and the clock by which it is timed."""

    def __init__(self, queue: RunQueue) -> None:
        self._queue = queue
        rows = [
            tuple(map(float, range(_IN_A_ROW))) for _ in range(_ROWS)
        ]  # the garbage collector need not look at them
        # Neighbours in a row of these are far apart in memory.
        objects = [tuple(rows[(at + _APART * k) % _ROWS][k] for k in range(_IN_A_ROW)) for at in range(_ROWS)]
        self._objects = tuple(objects)

    def ns(self) -> list[int]:
        """How long computing and visiting take now, ns."""

        def compute() -> None:
            squares = {}
            for number in range(_COMPUTED):
                squares[number & 255] = number * number

        def visit() -> None:
            total = 0.0
            for numbers in self._objects:
                for number in numbers:
                    total += number

        def taken_ns(work: Callable[[], None]) -> int:
            began_ns = self._queue.now_ns()
            work()
            return max(1, self._queue.now_ns() - began_ns)

        return [min(taken_ns(work) for _ in range(_TRIES)) for work in (compute, visit)]
