"""Stage `live`: a training that stays alive, and takes its steps in turns with those of other variants.

`tracekit.capture.turns` has the protocol: two pipes with names, in the scratch folder of the pass.
"""

import gc
import os
import statistics
import time
from pathlib import Path

import msgspec

from tracekit.capture.child import so_far, timing
from tracekit.capture.child.graph_log import GraphLog
from tracekit.capture.child.measure import ramp_ns
from tracekit.capture.child.memory import MemoryMeter
from tracekit.capture.child.traces import short_trace
from tracekit.capture.child.unstoppable import why_not_stopped
from tracekit.capture.compiler.recorder import CompileRecorder
from tracekit.capture.job import MESSAGE_BYTES, TURNS, WAITING, Job, PassResult, message
from tracekit.run import Measured, Traces, Turn
from tracekit.typical_step import typical_step
from tracekit.units import percent

_MOST_STEPS = 100  # of a turn: all their durations are kept
# Of the trace after the last turn: processes differ more than steps do, so few steps of many processes tell most.
_TRACED_STEPS, _MOST_TRACED = 4, 12
_MOST_WORK = 0.05  # of the time in which it waits; an idle process with a pool of threads takes less than a thousandth
_SPARED_NS = 20_000_000  # of that work: what waiting itself takes


class TurnPipes:
    """The end of a step, at which this process waits for its next turn."""

    def __init__(self, scratch: str) -> None:
        self._turns = os.open(Path(scratch, TURNS), os.O_RDONLY)
        self._waiting = os.open(Path(scratch, WAITING), os.O_WRONLY)
        self._waited_ns = self._worked_ns = 0
        self.is_alone = False  # nobody says anything any more, because the capture is gone

    def next_turn_ns(self, step_ns: int) -> int:
        """Say how long a step took in the last turn, wait for the next one, and return how long that is to be; 0 if
        there is none any more."""
        began_ns, worked_ns = time.perf_counter_ns(), time.process_time_ns()
        os.write(self._waiting, message(step_ns))
        answer = os.read(self._turns, MESSAGE_BYTES)
        self._waited_ns += time.perf_counter_ns() - began_ns
        self._worked_ns += time.process_time_ns() - worked_ns
        self.is_alone = not answer
        return int(answer or 0)

    @property
    def why_not(self) -> str:
        """Why this process cannot be stopped at its boundaries; empty if it can."""
        if why := why_not_stopped():
            return why
        if self._worked_ns <= _SPARED_NS + _MOST_WORK * self._waited_ns:
            return ""
        return f"it worked for {percent(self._worked_ns / self._waited_ns)} of the time in which it was to wait"


def take_turns(job: Job, recorder: CompileRecorder, graphs: GraphLog, pipes: TurnPipes) -> timing.Steps[PassResult]:
    """Warm up as a measured pass does, then take blocks of steps, each when it is told to, and a short trace at the
    end."""
    memory = MemoryMeter(job.device)
    warmup = yield from timing.settle(recorder, job.warmup, at_least_ns=ramp_ns(job))
    gc.collect()
    warmup += yield from memory.forget_peaks()
    step_ns = yield from timing.time_one(job.device)
    settled = len(recorder.compiled)
    times: list[int] = []
    turns: list[Turn] = []
    result = PassResult(no_turns=pipes.why_not)
    while not result.no_turns and (turn_ns := pipes.next_turn_ns(step_ns)):
        count = max(1, min(_MOST_STEPS, round(turn_ns / max(1, step_ns))))
        steps, began_ns = timing.StepClock(job.device, expected=count + 1), time.time_ns()
        worked_ns = time.process_time_ns()
        steps.step_ended()
        try:
            for _ in range(count):
                yield
                steps.step_ended()
        except timing.EndedError:  # the script's last step was in this turn
            return result
        turn_steps_ns = steps.steps_ns()  # on a GPU, all of them have ended now
        worked_ns = time.process_time_ns() - worked_ns
        times, step_ns = [*times, *turn_steps_ns], round(statistics.fmean(turn_steps_ns))
        turns.append(Turn(started_ns=began_ns, steps=count, processor_ns=worked_ns))
        measured = Measured(
            step_ns=typical_step(times).step_ns,
            step_all_ns=times,
            spread_ns=timing.spread_ns(times),
            warmup_steps=warmup,
            compiles=len(recorder.compiled),
            compiles_timed=len(recorder.compiled) - settled,
            clock=timing.clock(job.device),
        )
        result = PassResult(
            measured=measured, memory=memory.peaks(len(times)), graphs=graphs.last(len(times)), turns=turns
        )
        so_far.store(job, result)
        if why := pipes.why_not:
            return PassResult(no_turns=why)
    if not turns or pipes.is_alone:
        return result
    period = typical_step(times).period
    traced = min(_TRACED_STEPS, job.steps) if period == 1 else min(period, _MOST_TRACED)
    return msgspec.structs.replace(result, traces=Traces(steady=(yield from short_trace(job, recorder, traced))))
