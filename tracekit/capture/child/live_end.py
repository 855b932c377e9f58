"""What a process does after its last turn, when nothing of it is timed any more: its short trace, and its result."""

import json
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tracekit.base.atomic import put
from tracekit.capture.child import traces
from tracekit.capture.child.clocks import stopwatch
from tracekit.capture.child.failures import failure
from tracekit.capture.child.live import LINES, Turns
from tracekit.capture.child.script import left_by
from tracekit.capture.child.script_steps import ForeignError, ScriptSteps
from tracekit.capture.child.step_clock import Steps
from tracekit.capture.compiler import CompileRecorder
from tracekit.capture.job import RESULT, Job, PassResult
from tracekit.errors.capturing import ForeignDeviceError
from tracekit.run import Traces
from tracekit.statistics.typical_step import common_period

# Processes differ more than steps do, so few steps of many processes tell most.
_TRACED_STEPS, _MOST_TRACED = 4, 50


def short_trace(scratch: str, device: str) -> Steps[str | None]:
    """Take it; its name, or None if no steps were left."""
    stopwatch.enter("trace")
    job = msgspec.structs.replace(
        msgspec.json.decode(Path(scratch, "job.json").read_bytes(), type=Job), device=device, scratch=""
    )
    lines = [json.loads(line) for line in Path(scratch, LINES).read_text().splitlines()]
    traced = _steps_to_trace(job, [line["steps_ns"] for line in lines])
    return (yield from traces.short_trace(job, CompileRecorder(), traced))


def _steps_to_trace(job: Job, times: Sequence[Sequence[int]]) -> int:
    """A whole period, if earlier passes or the turns of this one show any."""
    period = job.period if job.period > 1 else common_period(times)
    return min(_TRACED_STEPS, job.steps) if period == 1 else min(period, _MOST_TRACED)


def write_result(folder: str, turns: Turns, steps: ScriptSteps | None, error: BaseException | None) -> None:
    """Write how the pass has ended; its turns are in the file of theirs."""
    result = PassResult(no_turns=turns.no_turns, traces=Traces(steady=turns.trace))
    if isinstance(error, ForeignError):
        assert steps is not None
        result = failure(ForeignDeviceError(steps.job.program, str(error)))
    elif isinstance(error, SystemExit) and steps is not None:
        why = left_by(error, steps)
        result = PassResult(outcome="error", error=why) if why else result
    elif error is not None and (steps is None or steps.result is None):
        result = failure(error)
    elif steps is not None and steps.taken < 1:
        result = PassResult(outcome="error", error="no step ended", no_steps=True)
    result = msgspec.structs.replace(result, activities=stopwatch.seconds())
    put(Path(folder, RESULT), msgspec.json.encode(result, enc_hook=repr))
