"""Any training script, run as it is: its own steps resume the pass, which stops it once it has seen enough."""

import ast
import os
import runpy
import sys
import time
from itertools import pairwise
from pathlib import Path

from msgspec.structs import replace

from tracekit.capture.child import recipe, timing
from tracekit.capture.child.measure import FIRST_STEPS, peaks
from tracekit.capture.child.script_variant import Twin
from tracekit.capture.child.step_boundary import StepEnds
from tracekit.capture.compiler.compile_log import CompileRecorder
from tracekit.capture.compiler.ledger import total_ns
from tracekit.capture.job import Answer, Job
from tracekit.run import Measured

_DRIVERS = ("lightning", "pytorch_lightning")
_USAGE = 2  # argparse's exit code for arguments that it does not take


def is_script(path: str | Path) -> bool:
    """Is it a training script? A recipe defines `setup`. Tells by looking, without running it."""
    try:
        body = ast.parse(Path(path).read_bytes()).body
    except (SyntaxError, ValueError, OSError):
        return False  # what is wrong with it shows when it is loaded
    return not any(_defines_setup(statement) for statement in body)


def run(job: Job, steps: timing.Steps[Answer], recorder: CompileRecorder) -> Answer:
    """Run the script, resuming the pass at each of its steps; what it found, with what there is to say of it."""
    if job.device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # the script chooses its device: leave it this one
    sys.path.insert(0, str(Path(job.recipe).resolve().parent))
    sys.argv = [job.recipe, *job.arguments]
    recipe.seed_all(job.seed)
    running = _Running(job, steps, recorder)
    try:
        runpy.run_path(job.recipe, run_name="__main__")
    except _EnoughError:
        pass
    except SystemExit as end:
        if error := running.left_by(end):
            return Answer(outcome="error", error=error)
    finally:
        running.leave()
    return running.answer()


class _EnoughError(BaseException):
    """Stops the script; no `except Exception` of its own may catch it."""


class _Running:
    """The script under way: when each of its steps ended, and what had compiled by then."""

    def __init__(self, job: Job, steps: timing.Steps[Answer], recorder: CompileRecorder) -> None:
        self._job, self._steps, self._recorder = job, steps, recorder
        self._found: Answer | None = None
        self._stamps: list[tuple[int, int]] = []
        self._optimizer_steps = 0
        self._ends = StepEnds(self._stepped)
        self._twin = Twin(job.requested, self._ends, self._begin)
        self._ends.__enter__()
        self._twin.__enter__()

    def leave(self) -> None:
        """Let go of torch; what the script was stopped in must not be measured."""
        self._several = [type(each).__name__ for each in self._ends.optimizers]
        self._twin.__exit__()
        self._ends.__exit__()

    def left_by(self, end: SystemExit) -> str | None:
        """Why there is nothing to find where the script ended itself; None where it had taken its steps."""
        code = _exit_code(end)
        taken = max(0, len(self._stamps) - 1)
        if self._found is not None or (code == 0 and taken):
            return None
        when = f"after step {taken}" if taken else "before its first step"
        hint = ". Its own arguments go after --" if code == _USAGE and not self._job.arguments else ""
        return f"the script ended itself (exit code {code}) {when}{hint}"

    def answer(self) -> Answer:
        """What the pass found, or what can be said where the script came to its end before it did."""
        if self._found is not None:
            return self._noted(self._found)
        taken = len(self._stamps) - 1
        if taken < 1:
            return Answer(
                outcome="error",
                error="no optimizer stepped, so there is no step to measure. Does it train, with these arguments?",
            )
        try:
            self._steps.throw(timing.EndedError)
        except StopIteration as end:
            self._found = end.value
        except timing.EndedError:
            self._found = self._measured()
        assert self._found is not None
        return self._noted(replace(self._found, ended=taken))

    def _begin(self) -> None:
        if not self._stamps:
            self._stamp()
            next(self._steps)

    def _stepped(self) -> None:
        self._twin.look_no_more()
        if not self._stamps:  # nothing told us when this one began
            return self._begin()
        self._optimizer_steps += 1
        if self._optimizer_steps % self._job.step_every:
            return None
        self._stamp()
        if self._found is None:
            try:
                next(self._steps)
                return None
            except StopIteration as end:
                self._found = end.value
        raise _EnoughError

    def _stamp(self) -> None:
        self._stamps.append((time.perf_counter_ns(), len(self._recorder.compiled)))

    def _measured(self) -> Answer:
        """Of a script that ended early: the steps after the first in which nothing compiled."""
        every = [(end - start, after > before) for (start, before), (end, after) in pairwise(self._stamps)]
        first = [ns for ns, _ in every[:FIRST_STEPS]]
        timed = [ns for ns, compiled in every[FIRST_STEPS:] if not compiled] or [every[-1][0]]
        measured = Measured(
            step_ns=timing.median_ns(timed),
            step_all_ns=timed,
            spread_ns=timing.spread_ns(timed),
            first_steps_ns=first,
            warmup_steps=len(every) - len(timed),
            compile_ns=total_ns([*self._recorder.compiled]),
            compiles=len(self._recorder.compiled),
            clock="perf_counter",
        )
        return Answer(measured=measured, memory=peaks(self._job.device))

    def _noted(self, found: Answer) -> Answer:
        notes = [*found.effective.notes, "losses were not compared: a script keeps its own to itself"]
        if self._job.requested.compile and not self._twin.compiles_itself and self._twin.compiled:
            notes.append(f"compiled in place: {', '.join(type(each).__name__ for each in self._twin.compiled)}")
        if len(self._several) > 1:
            notes.append(f"several optimizers step ({', '.join(self._several)}): a step ends where the first one does")
        if drivers := [name for name in _DRIVERS if name in sys.modules]:
            notes.append(f"{drivers[0]} drives the script: what it does between steps counts towards the next")
        if found.ended is not None and self._is_short(found):
            notes.append(f"the script ended after {found.ended} steps: fewer than a capture takes")
        return replace(found, effective=replace(found.effective, notes=notes))

    def _is_short(self, found: Answer) -> bool:
        if found.measured is not None:
            return found.measured.steps < timing.LEAST_TIMED_STEPS
        return found.profiled is None or found.profiled.steps < self._job.steps


def _exit_code(end: SystemExit) -> int:
    """As Python would end: a text is printed, and is a failure."""
    if end.code is None or isinstance(end.code, int):
        return end.code or 0
    print(end.code, file=sys.stderr)
    return 1


def _defines_setup(statement: ast.stmt) -> bool:
    match statement:
        case ast.FunctionDef(name="setup", args=taken):
            return len(taken.args) == 1 or taken.vararg is not None  # setup(rank, world_size) is distributed training's
        case ast.ClassDef(name="setup"):
            return True
        case ast.Assign(targets=targets):
            return any(isinstance(each, ast.Name) and each.id == "setup" for each in targets)
        case ast.ImportFrom(names=names):
            return any((each.asname or each.name) == "setup" for each in names)
    return False
