"""Any training script, run unchanged: its own steps drive the pass, which stops it once it has seen enough."""

import sys

from msgspec.structs import replace

from tracekit.capture.child import program, recipe
from tracekit.capture.child.failure import failure
from tracekit.capture.child.idle_profilers import idle_profilers
from tracekit.capture.child.script_losses import Losses
from tracekit.capture.child.script_remarks import with_remarks
from tracekit.capture.child.script_steps import Begin, EnoughError, ScriptSteps
from tracekit.capture.compiler.recorder import CompileRecorder
from tracekit.capture.job import Job, PassResult

_under_way: list[ScriptSteps] = []
_USAGE = 2  # argparse's exit code for arguments that it does not take


def is_captured() -> bool:
    """Is this the process of a capture, which runs a script?"""
    return bool(_under_way)


def run(job: Job, begin: Begin, recorder: CompileRecorder, losses: Losses | None = None) -> PassResult:
    """Run the script, resuming the pass at each of its steps; what it found, with what there is to say of it.

    `losses` hears of each, as long as it runs.
    """
    recipe.seed_all(job.seed)
    steps = ScriptSteps(job, begin, recorder, losses)
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
            failed = PassResult(outcome="error", error=error)
    except Exception as error:
        failed = failure(error)
    finally:
        steps.leave()
    return _answer(steps, failed)


def _run_program(job: Job) -> None:
    file, _, line = job.step_at.rpartition(":")
    if file:
        program.mark_line(file, int(line))
    if job.module:
        program.run_module(job.recipe, job.arguments)
    else:
        program.run_file(job.recipe, job.arguments)


def _answer(steps: ScriptSteps, failed: PassResult | None) -> PassResult:
    """What the pass found, or what can be said where the script came to its end before it did."""
    if steps.answer is not None:  # what it raised when it was stopped is not its failure
        return with_remarks(steps.answer, steps)
    if steps.taken < 1:
        return failed or PassResult(outcome="error", error=steps.why_none(), no_steps=True)
    ended = with_remarks(replace(steps.end_early(), ended=steps.taken), steps)
    if failed is None:
        return ended
    return replace(ended, outcome=failed.outcome, error=failed.error, traceback=failed.traceback)


def _left_by(end: SystemExit, steps: ScriptSteps, job: Job) -> str | None:
    """Why it failed where the script ended itself; None where it meant to, having taken its steps."""
    code = _exit_code(end)
    if steps.answer is not None or (code == 0 and steps.taken):
        return None
    when = f"after step {steps.taken}" if steps.taken else "before its first step"
    hint = ". Its own arguments go after --" if code == _USAGE and not job.arguments else ""
    return f"the script ended itself (exit code {code}) {when}{hint}"


def _exit_code(end: SystemExit) -> int:
    """As Python would end: a text is printed, and is a failure."""
    if end.code is None or isinstance(end.code, int):
        return end.code or 0
    print(end.code, file=sys.stderr)
    return 1
