"""Runs any training script unchanged: its own steps drive the pass, which stops it once it has seen enough. What
counts as a step, and what differed from a plain run, are remarks of the pass.
"""

import sys
from typing import Any

import torch
from msgspec.structs import replace

from tracekit.capture.child import program, recipe, timing
from tracekit.capture.child.failure import failure
from tracekit.capture.child.idle_profilers import idle_profilers, was_one_met
from tracekit.capture.child.loss_check import Losses
from tracekit.capture.child.script_steps import EnoughError, MakePass, ScriptSteps
from tracekit.capture.child.step_ends import Boundary
from tracekit.capture.child.stopwatch import stopwatch
from tracekit.capture.compiler import CompileRecorder
from tracekit.capture.job import Job, PassResult
from tracekit.run import Effective

_under_way: list[ScriptSteps] = []
_USAGE = 2  # argparse's exit code for arguments that it does not accept
_DRIVERS = ("lightning", "pytorch_lightning")


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
        stopwatch.enter("end")
        steps.leave()
    return _result(steps, failed)


def _run_program(job: Job) -> None:
    stopwatch.enter("set up")
    file, _, line = job.step_at.rpartition(":")
    if file:
        program.mark_line(file, int(line))
    if job.module:
        program.run_module(job.program, [*job.arguments])
    else:
        program.run_file(job.program, [*job.arguments])


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
    code = 0 if end.code is None else end.code
    if not isinstance(code, int):  # a text: Python prints it, and exits with 1
        print(code, file=sys.stderr)
        code = 1
    if steps.result is not None or (code == 0 and steps.taken):
        return None
    moment = f"after step {steps.taken}" if steps.taken else "before its first step"
    hint = ". Its own arguments go after --" if code == _USAGE and not job.arguments else ""
    return f"the script exited (exit code {code}) {moment}{hint}"


def with_remarks(result: PassResult, steps: ScriptSteps) -> PassResult:
    """The result, with remarks on how it was obtained."""
    assert steps.boundary is not None
    notes = []
    if result.ended is not None and _is_short(result, steps):
        notes.append(f"the script ended after {result.ended} steps, which is fewer than a capture takes")
    effective = _of_scripted(result.effective.plus(notes, _remarks(result, steps)), steps)
    return replace(result, effective=effective, boundary=steps.boundary.name.lower(), step=what_a_step_is(steps))


def _remarks(result: PassResult, steps: ScriptSteps) -> list[str]:
    remarks, script_variant = [], steps.script_variant
    if steps.job.stage == "check" and not result.losses:
        remarks.append(
            "losses were not compared: no backward pass begins at a single number, and no closure returns one"
        )
    if steps.job.requested.compile and not script_variant.compiles_itself and script_variant.compiled:
        remarks.append(f"compiled in place: {', '.join(type(module).__name__ for module in script_variant.compiled)}")
    if steps.boundary is Boundary.OPTIMIZER and len(steps.optimizers) > 1:
        remarks.append(f"several optimizers step ({', '.join(steps.optimizers)}): a step ends where the first one does")
    if drivers := [name for name in _DRIVERS if name in sys.modules]:
        remarks.append(f"{drivers[0]} drives the script: what it does between two steps counts towards the second")
    if was_one_met():
        remarks.append("the script's own profiler was kept idle: two at once crash")
    return remarks


def _of_scripted(effective: Effective, steps: ScriptSteps) -> Effective:
    """A remark on modules of torch.jit.script, which torch.compile refuses."""
    if not steps.script_variant.scripted:
        return effective
    names = ", ".join(_name(module) for module in steps.script_variant.scripted)
    why = f"torch.compile does not accept modules of torch.jit.script ({names}): compile the module that was scripted"
    notes = [note for note in effective.notes if note != effective.ran_eagerly]
    return replace(effective, notes=[why, *notes], ran_eagerly=effective.ran_eagerly and why)


def what_a_step_is(steps: ScriptSteps) -> str:
    """`4 steps of Adam, 16 micro-batches`."""
    assert steps.boundary is not None
    count, batches = steps.job.step_every, steps.backward.in_a_step()
    plural = "s" * (count > 1)
    unit = {
        Boundary.OPTIMIZER: f"step{plural} of {next(iter(steps.optimizers), 'the optimizer')}",
        Boundary.MARK: f"mark{plural} reached",
    }.get(steps.boundary, f"call{plural} of {_name(steps.caller)}")
    passes = f", {batches:g} micro-batches (backward passes)" if batches > count else ""
    return f"{count} {unit}{passes}"


def _is_short(result: PassResult, steps: ScriptSteps) -> bool:
    if steps.job.stage == "check":
        return False
    if result.measured is not None:
        return result.measured.steps < timing.LEAST_TIMED_STEPS
    return result.profiled is None or result.profiled.steps < steps.job.steps


def _name(caller: Any) -> str:
    if isinstance(caller, torch.jit.ScriptModule):
        return str(caller.original_name)
    return type(caller).__name__ if isinstance(caller, torch.nn.Module) else "what is compiled"
