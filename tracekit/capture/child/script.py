"""Runs any training script unchanged: its own steps drive the pass, which stops it once it has seen enough."""

import sys

from msgspec.structs import replace

from tracekit.capture.child import program, recipe
from tracekit.capture.child.failure import failure
from tracekit.capture.child.idle_profilers import idle_profilers
from tracekit.capture.child.script_losses import Losses
from tracekit.capture.child.script_remarks import with_remarks
from tracekit.capture.child.script_steps import EnoughError, MakePass, ScriptSteps
from tracekit.capture.compiler.recorder import CompileRecorder
from tracekit.capture.job import Job, PassResult

_under_way: list[ScriptSteps] = []
_USAGE = 2  # argparse's exit code for arguments that it does not accept


def is_captured() -> bool:
    """Whether this process belongs to a capture that runs a script."""
    return bool(_under_way)


def run(job: Job, make_pass: MakePass, recorder: CompileRecorder, losses: Losses | None = None) -> PassResult:
    """Run the script, resuming the pass at each of its steps; returns the pass's result, with remarks.

    `losses` is told about each loss while the script runs.
    """
    recipe.seed_all(job.seed)
    steps = ScriptSteps(job, make_pass, recorder, losses)
    _under_way.append(steps)
    failed: PassResult | None = None
    try:
        with idle_profilers():
            steps.enter()
            _run_program(job)
    except EnoughError as end:
        failed = end.failed
    except SystemExit as end:
        if error := _left_by(end, steps, job):
            failed = PassResult(outcome="error", error=error, refused=end.code == _USAGE and not steps.taken)
    except Exception as error:
        failed = failure(error)
    finally:
        steps.leave()
    return _result(steps, failed)


def _run_program(job: Job) -> None:
    file, _, line = job.step_at.rpartition(":")
    if file:
        program.mark_line(file, int(line))
    if job.module:
        program.run_module(job.program, job.arguments)
    else:
        program.run_file(job.program, job.arguments)


def _result(steps: ScriptSteps, failed: PassResult | None) -> PassResult:
    """The result of the pass, or what can be said if the script ended first."""
    if steps.result is not None:  # an exception that it raised when it was stopped is not a failure
        return with_remarks(steps.result, steps)
    if steps.taken < 1:
        return failed or PassResult(outcome="error", error=steps.why_none(), no_steps=True)
    ended = with_remarks(replace(steps.end_early(), ended=steps.taken), steps)
    if failed is None:
        return ended
    return replace(ended, outcome=failed.outcome, error=failed.error, traceback=failed.traceback)


def _left_by(end: SystemExit, steps: ScriptSteps, job: Job) -> str | None:
    """Why the pass failed if the script ended itself; None if it did so as intended, having taken its steps."""
    code = _exit_code(end)
    if steps.result is not None or (code == 0 and steps.taken):
        return None
    moment = f"after step {steps.taken}" if steps.taken else "before its first step"
    hint = ". Its own arguments go after --" if code == _USAGE and not job.arguments else ""
    return f"the script exited (exit code {code}) {moment}{hint}"


def _exit_code(end: SystemExit) -> int:
    """The exit code that Python would use: a text is printed, and means failure."""
    if end.code is None or isinstance(end.code, int):
        return end.code or 0
    print(end.code, file=sys.stderr)
    return 1
