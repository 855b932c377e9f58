"""Remarks on a script's pass: what counts as a step, and what differed from a plain run."""

import sys
from typing import Any

from msgspec.structs import replace

from tracekit.capture.child import timing
from tracekit.capture.child.idle_profilers import was_one_met
from tracekit.capture.child.script_steps import ScriptSteps
from tracekit.capture.child.step_boundary import Boundary
from tracekit.capture.job import PassResult
from tracekit.run import Effective

_DRIVERS = ("lightning", "pytorch_lightning")


def with_remarks(result: PassResult, steps: ScriptSteps) -> PassResult:
    """The result, with remarks on how it was obtained."""
    assert steps.boundary is not None
    notes, remarks = [*result.effective.notes], [*result.effective.remarks, *_remarks(result, steps)]
    if result.ended is not None and _is_short(result, steps):
        notes.append(f"the script ended after {result.ended} steps, which is fewer than a capture takes")
    effective = replace(result.effective, notes=notes, remarks=remarks)
    return replace(
        result,
        effective=_of_scripted(effective, steps),
        boundary=steps.boundary.name.lower(),
        step=what_a_step_is(steps),
    )


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
    import torch

    if isinstance(caller, torch.jit.ScriptModule):
        return str(caller.original_name)
    return type(caller).__name__ if isinstance(caller, torch.nn.Module) else "what is compiled"
