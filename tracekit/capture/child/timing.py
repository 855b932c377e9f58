"""Takes the steps of a pass: warms up until nothing compiles, times steps, and takes as many as the other ranks.

The work of a pass is a generator: each `yield` is one step of training. `run_steps` calls a recipe's steps; a script
takes its own steps, and its optimizer resumes the generator.

The first rank decides for all ranks what depends on clock or compiler: one that stopped while the others continue would
leave them waiting in a collective forever.
"""

import statistics
import time
from collections.abc import Callable, Generator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from tracekit.base.atomic import put
from tracekit.capture.compiler import CompileRecorder
from tracekit.capture.device import gpu, is_gpu, synchronize
from tracekit.capture.job import RESULT, Job
from tracekit.run import Measured
from tracekit.statistics.typical_step import has_unexplained_work, typical_step

T = TypeVar("T")
Decision = TypeVar("Decision", bool, int)
Steps: TypeAlias = Generator[None, None, T]
Clock = Literal["cuda events", "perf_counter"]
QUIET_STEPS = 5  # consecutive steps without a compilation, after which a training has settled
MOST_WARMUP_STEPS = 100
_LEAST_PERIODS = 3  # to time
LEAST_TIMED_STEPS = 30
_MOST_EXTRA_NS = 10_000_000_000  # to find out how often something rare happens
_LOOKED_EVERY_S = 0.001
_LONGEST_S = 60.0  # to wait for the other ranks, once this one has its result


class EndedError(Exception):
    """There are no more steps, because the script ended."""


class TimingBudget(Struct, frozen=True):
    """How many steps to time: as many as fill a given time, because short measurements are noisy, within bounds."""

    fill_ns: int
    fewest_steps: int  # unless these take more than `patience_ns`
    most_steps: int
    patience_ns: int
    at_all_events: int = 5

    def steps(self, step_ns: int, period: int = 1) -> int:
        """The number of steps to time, for steps of about this duration: a few whole periods, if they repeat."""
        fitting, bearable = (ns // max(1, step_ns) for ns in (self.fill_ns, self.patience_ns))
        fewest = max(self.fewest_steps, _LEAST_PERIODS * period if period > 1 else 0)
        return max(self.at_all_events, min(bearable, max(fewest, min(self.most_steps, fitting))))


ALONE = TimingBudget(1_000_000_000, LEAST_TIMED_STEPS, 300, 60_000_000_000)
ONE_OF_SEVERAL = TimingBudget(500_000_000, 15, 150, 10_000_000_000)  # all passes together time as many steps


def run_steps(steps: Steps[T], call: Callable[[], Any]) -> T:
    """Take every step by this call, and return the result of the pass."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        call()


def settle(
    recorder: CompileRecorder,
    at_least: int,
    at_most: int = MOST_WARMUP_STEPS,
    at_least_ns: int = 0,
    quiet_steps: int = QUIET_STEPS,
) -> Steps[int]:
    """Take steps until nothing has compiled for some steps and enough time has passed; returns how many it took."""
    steps = quiet = 0
    at_least = min(at_least, at_most)
    deadline_ns = time.perf_counter_ns() + at_least_ns
    while agreed(steps < at_least or (quiet < quiet_steps and steps < at_most) or time.perf_counter_ns() < deadline_ns):
        before = len(recorder.compiled)
        yield
        steps += 1
        quiet = quiet + 1 if len(recorder.compiled) == before else 0
    return steps


class StepClock:
    """When each of many steps ended: on a GPU in its time, because the host runs ahead of it; else by `now_ns`, or by
    the clock of the wall."""

    def __init__(self, device: str, expected: int = 0, now_ns: Callable[[], int] | None = None) -> None:
        self._device, self._now_ns = device, now_ns or time.perf_counter_ns
        self._ends: list[Any] = []
        self._events = [gpu().Event(enable_timing=True) for _ in range(expected)] if is_gpu(device) else []
        for event in self._events:  # the first record creates an event, which must not happen while timing
            event.record(gpu().current_stream(device))
        if self._events:
            synchronize(device)

    def step_ended(self) -> None:
        """Note that a step has ended and the next begins; the first call begins the first step."""
        if not is_gpu(self._device):
            self._ends.append(self._now_ns())
            return
        event = self._events.pop() if self._events else gpu().Event(enable_timing=True)
        # The stream is passed explicitly, not made current, because the steps in between are not ours.
        event.record(gpu().current_stream(self._device))
        self._ends.append(event)

    def clear(self) -> None:
        """Forget the steps: what seemed to be steps was not."""
        self._ends.clear()

    def steps_ns(self) -> list[int]:
        """The duration of each step, ns."""
        if not is_gpu(self._device):
            return [max(1, end - start) for start, end in pairwise(self._ends)]
        synchronize(self._device)
        # If a script trains elsewhere, the GPU does no work, and its clock may not have advanced.
        return [max(1, round(start.elapsed_time(end) * 1e6)) for start, end in pairwise(self._ends)]


def time_one(device: str) -> Steps[int]:
    """The duration of one step, including a wait for its end, ns."""
    synchronize(device)
    start = time.perf_counter_ns()
    yield
    synchronize(device)
    return time.perf_counter_ns() - start


def time_many(device: str, length: TimingBudget = ALONE, period: int = 1) -> Steps[list[int]]:
    """The duration of each of many consecutive steps without a wait between them, ns.

    One step tells how many; it is of a rare kind at times, so as many as are timed by it may be few. Where longer ones
    among them show no period yet, more are timed, until they show one or there is no patience left.
    """
    count = agreed(length.steps((yield from time_one(device)), period))
    times = yield from _timed(device, count)
    most_ns = min(length.patience_ns, _MOST_EXTRA_NS) + sum(times)
    while agreed(len(times) < length.most_steps and sum(times) < most_ns and has_unexplained_work(times)):
        fitting = (most_ns - sum(times)) // max(1, sum(times) // len(times))
        times += yield from _timed(device, agreed(max(1, min(len(times), length.most_steps - len(times), fitting))))
    return times


def _timed(device: str, count: int) -> Steps[list[int]]:
    steps = StepClock(device, expected=count + 1)
    steps.step_ended()
    for _ in range(count):
        yield
        steps.step_ended()
    return steps.steps_ns()


def clock(device: str) -> Clock:
    """The clock that `time_many` uses on that device."""
    return "cuda events" if is_gpu(device) else "perf_counter"


def measured(device: str, step_all_ns: list[int], **facts: Any) -> Measured:
    """What these steps tell of a step, with other facts of the pass that timed them."""
    spread_ns = 0
    if len(step_all_ns) > 1:
        low, _, high = statistics.quantiles(step_all_ns, n=4)
        spread_ns = round(high - low)
    step_ns = typical_step(step_all_ns).step_ns
    return Measured(step_ns=step_ns, step_all_ns=step_all_ns, spread_ns=spread_ns, clock=clock(device), **facts)


class FirstRankEndedError(Exception):
    """The first rank ended, so there is no rank left to decide."""


_team = SimpleNamespace(rank=0, ranks=1, folder=Path(), decisions=0)


def join(job: Job) -> None:
    """Make this process one of the job's ranks."""
    _team.rank, _team.ranks, _team.folder, _team.decisions = job.rank, job.ranks, Path(job.meeting), 0


def agreed(value: Decision) -> Decision:
    """The first rank's value, on every rank; its own value in a process that is alone.

    All ranks call this in the same order, because they take the same steps.
    """
    if _team.ranks == 1:
        return value
    file = _team.folder / f"agreed-{_team.decisions}.json"
    _team.decisions += 1
    if _team.rank == 0:
        put(file, msgspec.json.encode(value))
        return value
    while not file.exists():
        if (_team.folder / RESULT).exists():
            raise FirstRankEndedError("rank 0 ended before this rank did")
        time.sleep(_LOOKED_EVERY_S)
    decided: Decision = msgspec.json.decode(file.read_bytes(), type=type(value))
    return decided


def leave(job: Job) -> None:
    """Wait until all ranks have finished: a rank that exits breaks collectives that others are still in."""
    if job.ranks == 1:
        return
    put(Path(job.meeting) / f"left-{job.rank}", b"")
    deadline_s = time.monotonic() + _LONGEST_S
    while time.monotonic() < deadline_s and len([*Path(job.meeting).glob("left-*")]) < job.ranks:
        time.sleep(_LOOKED_EVERY_S * 10)
