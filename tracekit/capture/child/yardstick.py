"""How fast is the machine at this moment? Two pieces of work that are always the same, timed beside each turn of steps.

What else runs in the same processor, and its clock, change from one minute to the next, also on a machine that seems
idle: in a virtual one, others use the same caches and memory. Variants in turns meet the same; two captures do not, and
a check of one against the other has to know how much of a difference is the machine's (`tracekit.run.pace`).
"""

import random
from collections.abc import Callable

from tracekit.capture.child.run_queue import RunQueue

_TRIES = 3  # of which the fastest counts
_COMPUTED = 10_000  # numbers: about 1 ms, within a core's own caches
_VISITED = 100_000  # objects all over a few MB, which a core shares with others


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
