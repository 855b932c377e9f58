"""Stages `measure` and `live`: how long a step takes when nothing observes it, which is the step time to quote.

A pass of `measure` also tells at which clocks: they are queried while more steps run, because an idle GPU lowers them.

A pass of `live` stays alive, and takes its steps in turns with those of other variants. Why a process cannot be stopped
at the end of a step, such as other threads or timers, is found out first.
"""

import gc
import os
import signal
import statistics
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tracekit.base.units import percent
from tracekit.capture import environment
from tracekit.capture.child import forks, timing
from tracekit.capture.child.clocks import RunQueue, Yardsticks, stopwatch
from tracekit.capture.child.graph_log import GraphLog
from tracekit.capture.child.memory import MemoryMeter
from tracekit.capture.child.recipe import RecipeStep
from tracekit.capture.child.traces import short_trace
from tracekit.capture.compiler import CompileRecorder
from tracekit.capture.device import gpu, is_gpu, synchronize, uuid
from tracekit.capture.job import MESSAGE_BYTES, TURNS, WAITING, Job, PassResult, message, store_so_far
from tracekit.compile_log.ledger import total_ns
from tracekit.run import Traces, Turn
from tracekit.statistics.typical_step import common_period, typical_step

FIRST_STEPS = 3
_RAMP_NS = 500_000_000
_LONGEST_QUERY_S = 5.0  # nvidia-smi answers within some 50 ms, or seconds if it first has to load the driver
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


def measure(job: Job, recorder: CompileRecorder, graphs: GraphLog) -> timing.Steps[PassResult]:
    """Time the first steps one by one, warm up, then time steps without a wait between them."""
    stopwatch.enter("warm up")
    memory, first = MemoryMeter(job.device), []
    before_ns = total_ns([*recorder.compiled])  # of an evaluation, say
    for _ in range(FIRST_STEPS):
        first.append((yield from timing.time_one(job.device)))
    warmup = FIRST_STEPS + (yield from timing.settle(recorder, job.warmup - FIRST_STEPS, at_least_ns=ramp_ns(job)))
    gc.collect()  # otherwise, garbage from compiling would be collected inside a timed step
    warmup += yield from memory.forget_peaks()
    settled = len(recorder.compiled)
    stopwatch.enter("steps")
    times = yield from timing.time_many(job.device, length(job), job.period)
    stopwatch.enter("end")
    peaks = memory.peaks(len(times))
    compiled = [*recorder.compiled]
    measured = timing.measured(
        job.device,
        times,
        first_steps_ns=first,
        warmup_steps=warmup,
        compile_ns=total_ns(compiled),
        compile_before_ns=before_ns,
        compiles=len(compiled),
        compiles_timed=len(compiled) - settled,
    )
    result = PassResult(measured=measured, memory=peaks, graphs=graphs.last(len(times)))
    store_so_far(job, result)
    if job.round:
        return result
    try:
        return replace(result, gpu=(yield from sample(job.device)))
    except timing.EndedError:  # a script's last step was a timed one
        return result


def length(job: Job) -> timing.TimingBudget:
    """How many steps the pass times."""
    return timing.ONE_OF_SEVERAL if job.round else timing.ALONE


def infer_ns(feed: RecipeStep, job: Job, recorder: CompileRecorder) -> int | None:
    """The median duration of the recipe's inference, ns, if it has one."""
    if feed.infer is None:
        return None
    timing.run_steps(timing.settle(recorder, FIRST_STEPS), feed.infer)
    return typical_step(timing.run_steps(timing.time_many(job.device, timing.ONE_OF_SEVERAL), feed.infer)).step_ns


def ramp_ns(job: Job) -> int:
    """How long to let an idle GPU raise its clocks; less in a script, whose steps are limited."""
    return _RAMP_NS if is_gpu(job.device) and not job.is_script else 0


def sample(device: str) -> timing.Steps[dict[str, Any]]:
    """Take steps until nvidia-smi has answered; empty without a GPU, or if it does not answer."""
    if not is_gpu(device):
        return {}
    with ThreadPoolExecutor(1) as pool:
        query = pool.submit(_state, uuid(gpu().get_device_properties(device)))
        deadline_s = time.monotonic() + _LONGEST_QUERY_S
        while timing.agreed(not query.done() and time.monotonic() < deadline_s):
            yield
        synchronize(device)
        return query.result()


def _state(name: str | None) -> dict[str, Any]:
    """What nvidia-smi says of the GPU while it works, and of those that share it."""
    rows = environment.under_load(name)
    processes = environment.processes_on(name) if name is not None else None
    state: dict[str, Any] = {}
    if rows:
        state = {field: value for field, value in rows[0].items() if not field.endswith("reasons.active")}
        state["throttled_by"] = environment.throttled_by(rows[0])
    return state if processes is None else {**state, "processes": processes}


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
    times: list[list[int]] = []  # by turn
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
        times, step_ns = [*times, turn_steps_ns], round(statistics.fmean(turn_steps_ns))
        yards_ns = [sum(before_and_after) // 2 for before_and_after in zip(yards_before, yardsticks.ns(), strict=True)]
        turn = Turn(
            started_ns=began_ns,
            steps=len(turn_steps_ns),
            processor_ns=worked_ns,
            thread_ns=driven_ns,
            queued_ns=queued_ns if queue.is_known and clock == "perf_counter" else None,
            yardsticks_ns=yards_ns,
        )
        turns.append(turn)
        compiles = len(recorder.compiled)
        all_ns = [*chain(*times)]
        measured = timing.measured(
            job.device, all_ns, warmup_steps=warmup, compiles=compiles, compiles_timed=compiles - settled
        )
        memory_peaks, sizes = memory.peaks(len(all_ns)), graphs.last(len(all_ns))
        result = PassResult(measured=measured, memory=memory_peaks, graphs=sizes, turns=turns)
        store_so_far(job, result)
        if has_ended:
            return result
        if why := pipes.why_not:
            return PassResult(no_turns=why)
    if not turns or not pipes.wants_trace:
        return result
    stopwatch.enter("trace")
    traced = _steps_to_trace(job, times)
    return replace(result, traces=Traces(steady=(yield from short_trace(job, recorder, traced))))


def _steps_to_trace(job: Job, times: Sequence[Sequence[int]]) -> int:
    """A whole period, if earlier passes or the turns of this one show any."""
    period = job.period if job.period > 1 else common_period(times)
    return min(_TRACED_STEPS, job.steps) if period == 1 else min(period, _MOST_TRACED)


def _steps_in_turn(turn_ns: int, step_ns: int, period: int) -> int:
    """As many steps as fill the turn, and some at least unless they are long; whole periods, where steps have one."""
    steps = max(1, min(_MOST_STEPS, max(round(turn_ns / step_ns), _LEAST_STEPS), _MOST_TURN_NS // step_ns))
    if period > _MOST_STEPS or period * step_ns > _MOST_PERIOD_NS:
        return steps
    return min(max(1, round(steps / period)), _MOST_STEPS // period) * period


def why_not_stopped() -> str:
    """The first reason found; empty if there is none."""
    if processes := forks.own_processes():
        return f"it has {processes} of its own, which would not stop with it"
    for thread in threading.enumerate():
        target = getattr(thread, "_target", None)
        module = str(getattr(target, "__module__", None) or type(thread).__module__)  # where its code is from
        if thread is threading.main_thread() or module.partition(".")[0] in _IDLE_MODULES:
            continue
        name_of_system = ""
        with suppress(OSError):
            name_of_system = Path(f"/proc/self/task/{thread.native_id}/comm").read_text()
        if not name_of_system.startswith(_AUTOGRAD):
            return f"it has a thread of its own ({thread.name}), which would not stop with it"
    timers = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF) if hasattr(signal, "getitimer") else ()
    if any(signal.getitimer(timer)[0] for timer in timers):
        return "a timer runs, which would not stop with it"
    return "it listens to others, which would wait for it" if _is_a_server() else ""


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
