"""Stage `live`: a training that stays alive, and takes its steps in turns with those of other variants.

Why a process cannot be stopped at the end of a step, such as other threads or timers, is found out first.
"""

import gc
import os
import signal
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from tracekit.base.units import percent
from tracekit.capture.child import forks, timing
from tracekit.capture.child.graph_log import GraphLog
from tracekit.capture.child.measure import ramp_ns
from tracekit.capture.child.memory import MemoryMeter
from tracekit.capture.child.stopwatch import stopwatch
from tracekit.capture.child.traces import short_trace
from tracekit.capture.child.yardstick import RunQueue, Yardsticks
from tracekit.capture.compiler import CompileRecorder
from tracekit.capture.job import MESSAGE_BYTES, TURNS, WAITING, Job, PassResult, message, store_so_far
from tracekit.run import Measured, Traces, Turn
from tracekit.statistics.typical_step import typical_step

_LEAST_STEPS, _MOST_STEPS = 3, 100  # of a turn: a low quantile needs some, and all their durations are kept
_MOST_TURN_NS, _MOST_PERIOD_NS = 2_000_000_000, 4_000_000_000  # fewer steps where they take longer than that
_QUIET_STEPS = 2  # where nothing compiles, the first steps are the only slow ones
# Of the trace after the last turn: processes differ more than steps do, so few steps of many processes tell most.
_TRACED_STEPS, _MOST_TRACED = 4, 50
_MOST_WORK = 0.05  # of the time in which it waits; an idle process with a pool of threads takes less than a thousandth
_SPARED_NS = 20_000_000  # of that work: what waiting itself takes
_IDLE_MODULES = ("concurrent", "multiprocessing", "torch", "tqdm")  # modules whose threads wait for work, or draw a bar
# What PyTorch calls the thread in which autograd runs a GPU's backward, Engine::thread_init: idle between steps. Python
# knows it as a dummy once something in it, such as the replay of CUDA graphs, asks for the current thread.
_AUTOGRAD = "pt_autograd_"
_LISTENS = "0A"  # the state of a socket, tcp(7)


class TurnPipes:
    """The end of a step, at which this process waits for its next turn."""

    def __init__(self, scratch: str) -> None:
        self._turns = os.open(Path(scratch, TURNS), os.O_RDONLY)
        self._waiting = os.open(Path(scratch, WAITING), os.O_WRONLY)
        self._waited_ns = self._worked_ns = 0
        self.wants_trace = False  # after the last turn; not if the capture is gone

    def next_turn_ns(self) -> int:
        """Say that this process waits for its next turn, wait, and return how long that is to be; 0 if there is none
        any more."""
        stopwatch.enter("wait")
        began_ns, worked_ns = time.perf_counter_ns(), time.process_time_ns()
        os.write(self._waiting, message(1))
        answer = os.read(self._turns, MESSAGE_BYTES)
        self._waited_ns += time.perf_counter_ns() - began_ns
        self._worked_ns += time.process_time_ns() - worked_ns
        turn_ns = int(answer or -1)
        self.wants_trace = turn_ns == 0
        stopwatch.enter("steps")
        return max(turn_ns, 0)

    @property
    def why_not(self) -> str:
        """Why this process cannot be stopped at its boundaries; empty if it can."""
        if why := why_not_stopped():
            return why
        if self._worked_ns <= _SPARED_NS + _MOST_WORK * self._waited_ns:
            return ""
        return f"it worked for {percent(self._worked_ns / self._waited_ns)} of the time in which it was to wait"


def warm_up(job: Job, recorder: CompileRecorder) -> timing.Steps[int]:
    """Take steps until nothing compiles any more, few of them after a process that has done so was forked; returns how
    many it took."""
    stopwatch.enter("warm up")
    is_warm = job.warms and not job.forks
    quiet_steps = timing.QUIET_STEPS if job.requested.compile and not is_warm else _QUIET_STEPS
    most_steps = timing.MOST_WARMUP_STEPS if job.available is None else max(1, job.available // _LEAST_STEPS)
    return (yield from timing.settle(recorder, quiet_steps, most_steps, ramp_ns(job), quiet_steps))


def take_turns(job: Job, recorder: CompileRecorder, graphs: GraphLog, pipes: TurnPipes) -> timing.Steps[PassResult]:
    """Warm up as a measured pass does, then take blocks of steps, each when it is told to, and a short trace at the
    end."""
    memory = MemoryMeter(job.device)
    warmup = yield from warm_up(job, recorder)
    gc.collect()
    forks.thaw_objects()
    warmup += yield from memory.forget_peaks()
    step_ns, clock = (yield from timing.time_one(job.device)), timing.clock(job.device)
    settled = len(recorder.compiled)
    times: list[int] = []
    turns: list[Turn] = []
    result, queue = PassResult(no_turns=pipes.why_not), RunQueue()
    yardsticks = Yardsticks(queue)
    while not result.no_turns and (turn_ns := pipes.next_turn_ns()):
        count, yards_before = _steps_in_turn(turn_ns, step_ns, job.period), yardsticks.ns()
        steps, began_ns = timing.StepClock(job.device, count + 1, queue.now_ns), time.time_ns()
        worked_ns, driven_ns, queued_ns = time.process_time_ns(), time.thread_time_ns(), queue.waited_ns()
        steps.step_ended()
        has_ended = False
        try:
            for _ in range(count):
                yield
                steps.step_ended()
        except timing.EndedError:  # the script's last step was in this turn
            has_ended = True
        turn_steps_ns = steps.steps_ns()  # on a GPU, all of them have ended now
        if not turn_steps_ns:
            return result
        worked_ns, driven_ns = time.process_time_ns() - worked_ns, time.thread_time_ns() - driven_ns
        queued_ns = queue.waited_ns() - queued_ns
        times, step_ns = [*times, *turn_steps_ns], round(statistics.fmean(turn_steps_ns))
        turns.append(
            Turn(
                started_ns=began_ns,
                steps=len(turn_steps_ns),
                processor_ns=worked_ns,
                thread_ns=driven_ns,
                queued_ns=queued_ns if queue.is_known and clock == "perf_counter" else None,
                yardsticks_ns=[
                    sum(before_and_after) // 2 for before_and_after in zip(yards_before, yardsticks.ns(), strict=True)
                ],
            )
        )
        measured = Measured(
            step_ns=typical_step(times).step_ns,
            step_all_ns=times,
            spread_ns=timing.spread_ns(times),
            warmup_steps=warmup,
            compiles=len(recorder.compiled),
            compiles_timed=len(recorder.compiled) - settled,
            clock=clock,
        )
        result = PassResult(
            measured=measured, memory=memory.peaks(len(times)), graphs=graphs.last(len(times)), turns=turns
        )
        store_so_far(job, result)
        if has_ended:
            return result
        if why := pipes.why_not:
            return PassResult(no_turns=why)
    if not turns or not pipes.wants_trace:
        return result
    stopwatch.enter("trace")
    period = job.period if job.period > 1 else typical_step(times).period
    traced = min(_TRACED_STEPS, job.steps) if period == 1 else min(period, _MOST_TRACED)
    return msgspec.structs.replace(result, traces=Traces(steady=(yield from short_trace(job, recorder, traced))))


def _steps_in_turn(turn_ns: int, step_ns: int, period: int) -> int:
    """As many steps as fill the turn, and some at least unless they are long; whole periods, where steps have one."""
    steps = max(1, min(_MOST_STEPS, max(round(turn_ns / step_ns), _LEAST_STEPS), _MOST_TURN_NS // step_ns))
    if period > _MOST_STEPS or period * step_ns > _MOST_PERIOD_NS:
        return steps
    return min(max(1, round(steps / period)), _MOST_STEPS // period) * period


def why_not_stopped() -> str:
    """The first reason found; empty if there is none."""
    return next(_reasons(), "")


def _reasons() -> Iterator[str]:
    if processes := forks.own_processes():
        yield f"it has {processes} of its own, which would not stop with it"
    for thread in threading.enumerate():
        target = getattr(thread, "_target", None)
        module = str(getattr(target, "__module__", None) or type(thread).__module__)  # where its code is from
        if thread is threading.main_thread() or module.partition(".")[0] in _IDLE_MODULES:
            continue
        if not _name_of_system_thread(thread).startswith(_AUTOGRAD):
            yield f"it has a thread of its own ({thread.name}), which would not stop with it"
    if hasattr(signal, "getitimer") and any(
        signal.getitimer(timer)[0] for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
    ):
        yield "a timer runs, which would not stop with it"
    if _is_a_server():
        yield "it listens to others, which would wait for it"


def _name_of_system_thread(thread: threading.Thread) -> str:
    """What the system calls it; empty where it does not tell."""
    with suppress(OSError):
        return Path(f"/proc/self/task/{thread.native_id}/comm").read_text()
    return ""


def _is_a_server() -> bool:
    """Whether a TCP socket of this process listens; only Linux tells."""
    sockets = set()
    for file in Path("/proc/self/fd").glob("*"):
        with suppress(OSError):
            sockets.add(str(file.readlink()))
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            rows = [line.split() for line in Path("/proc/self/net", table).read_text().splitlines()[1:]]
            if any(row[3] == _LISTENS and f"socket:[{row[9]}]" in sockets for row in rows):
                return True
    return False
