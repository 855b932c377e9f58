"""Warming up until nothing compiles, and timing steps.

A pass is written as a generator: each `yield` is one step of training. A recipe's steps are called (`drive`); a
script takes its own, and its optimizer resumes the pass.
"""

import statistics
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, TypeAlias, TypeVar

from tracekit.capture.child.agreement import agreed
from tracekit.capture.compiler.recorder import CompileRecorder

T = TypeVar("T")
Steps: TypeAlias = Generator[None, None, T]
Clock = Literal["cuda events", "perf_counter"]
QUIET_STEPS = 5  # settled: so many steps in a row without a compilation
MOST_WARMUP_STEPS = 100
LEAST_TIMED_STEPS = 30


class EndedError(Exception):
    """There are no more steps: the script came to its end."""


@dataclass(frozen=True)
class Length:
    """How many steps to time: as many as fill that time, for short ones are noisy, within bounds."""

    fill_ns: int
    least: int  # unless so many take more than `patience_ns`
    most: int
    patience_ns: int
    at_all_events: int = 5

    def steps(self, step_ns: int) -> int:
        """For steps about this long."""
        fitting, bearable = (ns // max(1, step_ns) for ns in (self.fill_ns, self.patience_ns))
        return max(self.at_all_events, min(bearable, max(self.least, min(self.most, fitting))))


ALONE = Length(1_000_000_000, LEAST_TIMED_STEPS, 300, 60_000_000_000)
ONE_OF_SEVERAL = Length(500_000_000, 15, 150, 10_000_000_000)  # its passes together time as many steps


def drive(steps: Steps[T], call: Callable[[], Any]) -> T:
    """Take every step by this call, and return what the pass found."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            answer: T = end.value
            return answer
        call()


def synchronize(device: str) -> None:
    """Wait until the device has done all it was given."""
    if device.startswith("cuda"):
        import torch

        torch.cuda.synchronize(device)


def settle(
    recorder: CompileRecorder, at_least: int, at_most: int = MOST_WARMUP_STEPS, at_least_ns: int = 0
) -> Steps[int]:
    """Step until nothing has compiled for some steps, and so much time has passed; says how many steps it took."""
    steps = quiet = 0
    at_least = min(at_least, at_most)
    until = time.perf_counter_ns() + at_least_ns
    while agreed(steps < at_least or (quiet < QUIET_STEPS and steps < at_most) or time.perf_counter_ns() < until):
        before = len(recorder.compiled)
        yield
        steps += 1
        quiet = quiet + 1 if len(recorder.compiled) == before else 0
    return steps


class Marks:
    """When each of many steps ended: on a GPU in its own time, for the host runs ahead of it."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._marks: list[Any] = []

    def mark(self) -> None:
        """A step ends here, and another begins."""
        if not self._device.startswith("cuda"):
            self._marks.append(time.perf_counter_ns())
            return
        import torch

        self._marks.append(torch.cuda.Event(enable_timing=True))
        self._marks[-1].record(torch.cuda.current_stream(self._device))

    def clear(self) -> None:
        """What was thought to be steps was not."""
        self._marks.clear()

    def steps_ns(self) -> list[int]:
        """ns of each step."""
        if not self._device.startswith("cuda"):
            return [end - start for start, end in pairwise(self._marks)]
        synchronize(self._device)
        return _elapsed_ns(self._marks)


def time_one(device: str) -> Steps[int]:
    """ns of one step, waited for."""
    synchronize(device)
    start = time.perf_counter_ns()
    yield
    synchronize(device)
    return time.perf_counter_ns() - start


def time_many(device: str, length: Length = ALONE) -> Steps[list[int]]:
    """ns of each of many steps in a row, with no wait between them."""
    count = agreed(length.steps((yield from time_one(device))))
    return (yield from _time_on_gpu(device, count) if device.startswith("cuda") else _time_on_cpu(count))


def clock(device: str) -> Clock:
    """What `time_many` reads on that device."""
    return "cuda events" if device.startswith("cuda") else "perf_counter"


def median_ns(times: list[int]) -> int:
    """The middle one."""
    return round(statistics.median(times))


def spread_ns(times: list[int]) -> int:
    """Between the quartiles."""
    if len(times) < 2:
        return 0
    low, _, high = statistics.quantiles(times, n=4)
    return round(high - low)


def _time_on_cpu(count: int) -> Steps[list[int]]:
    stamps = [time.perf_counter_ns()]
    for _ in range(count):
        yield
        stamps.append(time.perf_counter_ns())
    return [end - start for start, end in pairwise(stamps)]


def _time_on_gpu(device: str, count: int) -> Steps[list[int]]:
    import torch

    marks = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
    # The stream is named, not made current: the steps between two yields are not ours.
    for mark in marks:  # its first record makes an event: not while we time
        mark.record(torch.cuda.current_stream(device))
    torch.cuda.synchronize(device)
    marks[0].record(torch.cuda.current_stream(device))
    for mark in marks[1:]:
        yield
        mark.record(torch.cuda.current_stream(device))
    torch.cuda.synchronize(device)
    return _elapsed_ns(marks)


def _elapsed_ns(marks: list[Any]) -> list[int]:
    # Of a script that trains elsewhere the GPU sees nothing, and its clock may not have ticked.
    return [max(1, round(start.elapsed_time(end) * 1e6)) for start, end in pairwise(marks)]
