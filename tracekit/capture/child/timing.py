"""Takes the steps of a pass: warms up until nothing compiles, times steps, and takes as many as the other ranks.

The first rank decides for all ranks what depends on clock or compiler: one that stopped while the others continue would
leave them waiting in a collective forever.
"""

import statistics
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from tracekit.base.atomic import put
from tracekit.capture.child.step_clock import EndedError, StepClock, Steps, clock, run_steps
from tracekit.capture.compiler import CompileRecorder
from tracekit.capture.device import synchronize
from tracekit.capture.job import RESULT, Job
from tracekit.run import Measured
from tracekit.statistics.typical_step import has_unexplained_work, typical_step

__all__ = ["EndedError", "StepClock", "Steps", "clock", "run_steps"]

Decision = TypeVar("Decision", bool, int)
QUIET_STEPS = 5  # consecutive steps without a compilation, after which a training has settled
MOST_WARMUP_STEPS = 100
_LEAST_PERIODS = 3  # to time
LEAST_TIMED_STEPS = 30
_MOST_EXTRA_NS = 10_000_000_000  # to find out how often something rare happens
_LOOKED_EVERY_S = 0.001
_LONGEST_S = 60.0  # to wait for the other ranks, once this one has its result


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
