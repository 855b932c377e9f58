"""What a process that takes turns knows of the machine: how long its thread waited for a core, and how fast the machine
is at this moment.

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
import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress

_LONGEST = 64  # bytes of the three numbers of schedstat
_TRIES = 3  # of which the fastest counts
_COMPUTED = 10_000  # numbers: about 1 ms, within a core's own caches
_VISITED = 100_000  # objects all over a few MB, which a core shares with others


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
        objects = [float(number) for number in range(_VISITED)]
        random.Random(0).shuffle(objects)
        self._objects = tuple(objects)  # the garbage collector need not look at a tuple of numbers

    def ns(self) -> list[int]:
        """How long computing and visiting take now, ns."""
        return [min(self._taken_ns(work) for _ in range(_TRIES)) for work in (self._compute, self._visit)]

    def _compute(self) -> None:
        squares = {}
        for number in range(_COMPUTED):
            squares[number & 255] = number * number

    def _visit(self) -> None:
        total = 0.0
        for number in self._objects:
            total += number

    def _taken_ns(self, work: Callable[[], None]) -> int:
        began_ns = self._queue.now_ns()
        work()
        return max(1, self._queue.now_ns() - began_ns)
