"""Runs any training script unchanged: its own steps drive the pass, which stops it once it has seen enough.

What counts as a step, and what differed from a plain run, are remarks of the pass. While the script runs, it is known
when each step ended, what had been compiled by then, and how long the steps that are left will take.
"""

import statistics
import sys
import time
from collections import deque
from contextlib import suppress
from itertools import pairwise
from typing import Any, cast

import torch
from msgspec.structs import replace

from tracekit.capture.child import recipe, timing
from tracekit.capture.child.failures import failure
from tracekit.capture.child.file_journal import FileJournal
from tracekit.capture.child.loss_check import STEPS, Losses
from tracekit.capture.child.measure import FIRST_STEPS, length
from tracekit.capture.child.memory import MemoryMeter
from tracekit.capture.child.replaced import was_one_met
from tracekit.capture.child.script_steps import (
    EnoughError,
    ForeignError,
    MakePass,
    ScriptSteps,
    is_captured,
    run_script,
)
from tracekit.capture.child.step_ends import Boundary
from tracekit.capture.child.traces import DETAIL, STEADY_WARMUP
from tracekit.capture.compiler import CompileRecorder
from tracekit.capture.job import Job, PassResult
from tracekit.capture.messages import Writer
from tracekit.compile_log.ledger import total_ns
from tracekit.errors.capturing import ForeignDeviceError

__all__ = ["is_captured", "run"]

_USAGE = 2  # argparse's exit code for arguments that it does not accept
_DRIVERS = ("lightning", "pytorch_lightning")


def run(job: Job, make_pass: MakePass, recorder: CompileRecorder, losses: Losses | None = None) -> PassResult:
    """Run the script, resuming the pass at each of its steps; returns the pass's result, with remarks.

    `losses` is told about each loss while the script runs.
    """
    recipe.seed_all(job.seed)
    steps = ObservedSteps(job, make_pass, recorder, losses)
    failed: PassResult | None = None
    try:
        run_script(job, steps)
    except ForeignError as end:
        failed = failure(ForeignDeviceError(job.program, str(end)))
    except EnoughError:
        pass
    except SystemExit as end:
        if error := left_by(end, steps):
            failed = PassResult(outcome="error", error=error, refused=end.code == _USAGE and not steps.taken)
    except Exception as error:
        failed = failure(error)
    if steps.result is not None:  # an exception that it raised when it was stopped is not a failure
        return with_remarks(steps.result, steps)
    if steps.taken < 1:
        return failed or PassResult(outcome="error", error=steps.why_none(), no_steps=True)
    ended = with_remarks(replace(steps.end_early(), ended=steps.taken), steps)
    if failed is None:
        return ended
    return replace(ended, outcome=failed.outcome, error=failed.error, traceback=failed.traceback)


def left_by(end: SystemExit, steps: ScriptSteps) -> str | None:
    """Why the pass failed if the script ended itself; None if it did so as intended, having taken its steps."""
    code = 0 if end.code is None else end.code
    if not isinstance(code, int):  # a text: Python prints it, and exits with 1
        print(code, file=sys.stderr)
        code = 1
    if steps.result is not None or (code == 0 and steps.taken):
        return None
    moment = f"after step {steps.taken}" if steps.taken else "before its first step"
    hint = ". Its own arguments go after --" if code == _USAGE and not steps.job.arguments else ""
    return f"the script exited (exit code {code}) {moment}{hint}"


def with_remarks(result: PassResult, steps: "ObservedSteps") -> PassResult:
    """The result, with remarks on how it was obtained."""
    assert steps.boundary is not None
    job, script_variant = steps.job, steps.script_variant
    notes, remarks = [], []
    if result.ended is not None and job.stage != "check":
        if result.measured is not None:
            is_short = result.measured.steps < timing.LEAST_TIMED_STEPS
        else:
            is_short = result.profiled is None or result.profiled.steps < job.steps
        if is_short:
            notes.append(f"the script ended after {result.ended} steps, which is fewer than a capture takes")
    if job.stage == "check" and not result.losses:
        remarks.append(
            "losses were not compared: no backward pass begins at a single number, and no closure returns one"
        )
    if job.requested.compile and not script_variant.compiles_itself and script_variant.compiled:
        remarks.append(f"compiled in place: {', '.join(type(module).__name__ for module in script_variant.compiled)}")
    if steps.boundary is Boundary.OPTIMIZER and len(steps.optimizers) > 1:
        remarks.append(f"several optimizers step ({', '.join(steps.optimizers)}): a step ends where the first one does")
    if drivers := [name for name in _DRIVERS if name in sys.modules]:
        remarks.append(f"{drivers[0]} drives the script: what it does between two steps counts towards the second")
    if was_one_met():
        remarks.append("the script's own profiler was kept idle: two at once crash")
    effective = result.effective.plus(notes, remarks)
    if script_variant.scripted:
        names = ", ".join(_name(module) for module in script_variant.scripted)
        why = (
            f"torch.compile does not accept modules of torch.jit.script ({names}): compile the module that was scripted"
        )
        notes = [note for note in effective.notes if note != effective.ran_eagerly]
        effective = replace(effective, notes=[why, *notes], ran_eagerly=effective.ran_eagerly and why)
    return replace(result, effective=effective, boundary=steps.boundary.name.lower(), step=what_a_step_is(steps))


def what_a_step_is(steps: "ObservedSteps") -> str:
    """`4 steps of Adam, 16 micro-batches`."""
    assert steps.boundary is not None
    count, batches = steps.job.step_every, steps.backward.in_a_step()
    plural = "s" * (count > 1)
    unit = {
        Boundary.OPTIMIZER: f"step{plural} of {next(iter(steps.optimizers), 'the optimizer')}",
        Boundary.MARK: f"mark{plural} reached",
        Boundary.BACKWARD: f"backward pass{'es' * (count > 1)}",
    }.get(steps.boundary, f"call{plural} of {_name(steps.caller)}")
    if batches <= count:
        return f"{count} {unit}"
    if steps.boundary is Boundary.OPTIMIZER and len(steps.optimizers) > 1:  # each has a loss of its own
        return f"{count} {unit} and what the others do meanwhile, {batches:g} backward passes"
    return f"{count} {unit}, {batches:g} micro-batches (backward passes)"


def _name(caller: Any) -> str:
    if isinstance(caller, torch.jit.ScriptModule):
        return str(caller.original_name)
    return type(caller).__name__ if isinstance(caller, torch.nn.Module) else "what is compiled"


class ObservedSteps(ScriptSteps):
    """The same, and what the steps show: how long each took, what compiled meanwhile, which files were written."""

    def __init__(self, job: Job, make_pass: MakePass, recorder: CompileRecorder, losses: Losses | None) -> None:
        super().__init__(job, make_pass, losses.backward_from if losses else None)
        self._recorder, self._losses = recorder, losses
        self._memory: MemoryMeter | None = None
        # When each step ended, ns, and how many compilations there had been by then; the first is when the pass began.
        self._stamps: list[tuple[int, int]] = []
        self._clock = timing.StepClock(job.device)
        self._journal = None if job.in_place or not job.journal else FileJournal(job)
        self._progress, self._expected = Writer(job.scratch), ExpectedSteps(job)

    def enter(self) -> None:
        """Install the hooks in torch."""
        super().enter()
        if self._journal is not None:
            self._journal.begin()

    def leave(self) -> None:
        """Remove them."""
        if self._journal is not None:
            self._journal.end()
        super().leave()

    def begin(self, boundary: Boundary, caller: Any) -> None:
        """Begin the pass, or begin it again."""
        self._stamps.clear()
        self._clock.clear()
        if self._journal is not None and boundary is not Boundary.CALL:
            self._journal.training()
        self._stamp()
        self._memory = MemoryMeter(self.job.device)
        super().begin(boundary, caller)

    def step_ended(self) -> None:
        """Resume the pass."""
        self._stamp()
        (began_ns, compiled_before), (ended_ns, compiled) = self._stamps[-2:]
        self._expected.took(self.taken, ended_ns - began_ns, compiled=compiled > compiled_before)
        self._progress.took(self.taken, self._expected, ended_ns)
        super().step_ended()

    def optimizer_returned(self, result: Any) -> None:
        """It may be the loss of a closure."""
        if self._losses is not None:
            self._losses.optimizer_returned(result)

    def end_early(self) -> PassResult:
        """The result of the pass from the steps that the script took."""
        with suppress(timing.EndedError):
            self.end()
            return cast("PassResult", self.result)
        # Those after the first in which nothing compiled.
        compiled = [after > before for (_, before), (_, after) in pairwise(self._stamps)]
        steps_ns = self._clock.steps_ns()
        steady = [step for step in range(FIRST_STEPS, len(steps_ns)) if not compiled[step]] or [len(steps_ns) - 1]
        _, compiled_before = self._stamps[0]
        measured = timing.measured(
            self.job.device,
            [steps_ns[step] for step in steady],
            first_steps_ns=steps_ns[:FIRST_STEPS],
            warmup_steps=len(steps_ns) - len(steady),
            compile_ns=total_ns([*self._recorder.compiled]),
            compile_before_ns=total_ns(self._recorder.compiled[:compiled_before]),
            compiles=len(self._recorder.compiled),
        )
        assert self._memory is not None
        return PassResult(measured=measured, memory=self._memory.peaks(), graphs=self._graphs.of(steady))

    def why_none(self) -> str:
        """The reason why no step ended."""
        process_module = sys.modules.get("multiprocessing.process")
        counter = repr(getattr(process_module, "_process_counter", "count(1)"))
        children = int("".join(filter(str.isdigit, counter)) or 1) - 1  # that multiprocessing has started
        several = "es" * (children > 1)
        started = f"; it started {children} process{several}, whose training is not seen" if children else ""
        missed = ["no optimizer stepped"] * (Boundary.OPTIMIZER in self._allowed)
        missed += ["no module was called repeatedly"] * any(boundary.is_call for boundary in self._allowed)
        missed += ["there was no second backward pass"] * (Boundary.BACKWARD in self._allowed)
        if not missed:
            mark = self.job.step_at if ":" in self.job.step_at else "tracekit.step()"
            missed = [f"{mark} was not reached twice"]
        return f"{', and '.join(missed)}{started}"

    def _stamp(self) -> None:
        self._stamps.append((time.perf_counter_ns(), len(self._recorder.compiled)))
        self._clock.step_ended()


class ExpectedSteps:
    """What the steps so far tell about those to come. Steps that compile tell nothing about the time of others."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._settled = max(job.warmup, FIRST_STEPS + timing.QUIET_STEPS)
        self._quiet: deque[int] = deque(maxlen=timing.QUIET_STEPS)  # durations of the last steps, ns

    def took(self, steps_taken: int, step_ns: int, *, compiled: bool) -> None:
        """Note the step with that number."""
        if compiled:
            self._quiet.clear()
            self._settled = min(max(self._settled, steps_taken + timing.QUIET_STEPS), timing.MOST_WARMUP_STEPS)
        else:
            self._quiet.append(step_ns)

    def steps(self) -> int:
        """The number of all steps, if nothing compiles any more."""
        if self._job.stage == "check":
            steps = STEPS
        elif self._job.stage == "measure":
            step_ns = round(statistics.median(self._quiet)) if self._quiet else 0
            timed = length(self._job)
            steps = self._settled + 1 + (timed.steps(step_ns) if step_ns else timed.fewest_steps)
        else:
            steps = self._settled + STEADY_WARMUP + self._job.steps + DETAIL.warmup + DETAIL.steps
        return steps if self._job.available is None else min(steps, self._job.available)

    def left_ns(self, steps_taken: int) -> int | None:
        """How long the steps that are left will take; None if that cannot be known.

        While something compiles, steps have no usual duration; and a trace takes time to write, and its stacks to
        record.
        """
        steps_left = self.steps() - steps_taken
        if self._job.stage == "profile" or len(self._quiet) < timing.QUIET_STEPS or steps_left <= 0:
            return None
        return round(steps_left * statistics.median(self._quiet))
