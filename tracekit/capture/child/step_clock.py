"""When did each step end? On a GPU in its time, because the host runs ahead of it; else by a clock of the host.

The work of a pass is a generator: each `yield` is one step of training. `run_steps` calls a recipe's steps; a script
takes its own steps, and its optimizer resumes the generator.
"""

import time
from collections.abc import Callable, Generator
from itertools import pairwise
from typing import Any, Literal, TypeAlias, TypeVar

from tracekit.capture.device import gpu, is_gpu, synchronize

T = TypeVar("T")
Steps: TypeAlias = Generator[None, None, T]
Clock = Literal["cuda events", "perf_counter"]


class EndedError(Exception):
    """There are no more steps, because the script ended."""


def run_steps(steps: Steps[T], call: Callable[[], Any]) -> T:
    """Take every step by this call, and return the result of the pass."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        call()


class StepClock:
    """Notes the ends of steps, by `now_ns` where they run on the host.

    Room for the `expected` ones is there before the first of them: what is allocated beside the steps of a training
    decides what its own memory costs.
    """

    def __init__(self, device: str, expected: int = 0, now_ns: Callable[[], int] | None = None) -> None:
        self._device, self._now_ns = device, now_ns or time.perf_counter_ns
        self._ends: list[Any] = [0] * expected
        self._count = 0
        self._events = [gpu().Event(enable_timing=True) for _ in range(expected)] if is_gpu(device) else []
        for event in self._events:  # the first record creates an event, which must not happen while timing
            event.record(gpu().current_stream(device))
        if self._events:
            synchronize(device)

    def step_ended(self) -> None:
        """Note that a step has ended and the next begins; the first call begins the first step."""
        if is_gpu(self._device):
            is_new = self._count >= len(self._events)
            end: Any = gpu().Event(enable_timing=True) if is_new else self._events[self._count]
            # The stream is passed explicitly, not made current, because the steps in between are not ours.
            end.record(gpu().current_stream(self._device))
        else:
            end = self._now_ns()
        if self._count == len(self._ends):
            self._ends.append(end)
        else:
            self._ends[self._count] = end
        self._count += 1

    def clear(self) -> None:
        """Forget the steps: what seemed to be steps was not, or they have been told."""
        self._count = 0

    def steps_ns(self) -> list[int]:
        """The duration of each step, ns."""
        ends = self._ends[: self._count]
        if not is_gpu(self._device):
            return [max(1, end - start) for start, end in pairwise(ends)]
        synchronize(self._device)
        # If a script trains elsewhere, the GPU does no work, and its clock may not have advanced.
        return [max(1, round(start.elapsed_time(end) * 1e6)) for start, end in pairwise(ends)]


def clock(device: str) -> Clock:
    """The clock that `time_many` uses on that device."""
    return "cuda events" if is_gpu(device) else "perf_counter"
