"""Any training script, run as it is: its own steps resume the pass, which stops it once it has seen enough."""

import ast
import sys
import time
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tracekit import step_marks
from tracekit.capture.child import program, recipe, timing
from tracekit.capture.child.boundary import Boundary, allowed, of_a_call
from tracekit.capture.child.failure import failure
from tracekit.capture.child.file_journal import FileJournal
from tracekit.capture.child.idle_profilers import idle_profilers, was_one_met
from tracekit.capture.child.measure import FIRST_STEPS, peaks
from tracekit.capture.child.micro_batches import MicroBatches
from tracekit.capture.child.replaced import out_of_dynamos_sight
from tracekit.capture.child.script_variant import Twin
from tracekit.capture.child.steering import used_all_the_same
from tracekit.capture.child.step_boundary import StepEnds
from tracekit.capture.compiler.compile_log import CompileRecorder
from tracekit.capture.compiler.ledger import total_ns
from tracekit.capture.job import Answer, Job
from tracekit.capture.progress import Writer
from tracekit.errors import ForeignDeviceError
from tracekit.run import Effective, Measured

_DRIVERS = ("lightning", "pytorch_lightning")
_under_way: list["_Running"] = []
_USAGE = 2  # argparse's exit code for arguments that it does not take


def is_script(path: str | Path) -> bool:
    """Is it a training script? A recipe defines `setup`. Tells by looking, without running it."""
    try:
        body = ast.parse(Path(path).read_bytes()).body
    except (SyntaxError, ValueError, OSError):
        return False  # what is wrong with it shows when it is loaded
    return not any(_defines_setup(statement) for statement in body)


def is_captured() -> bool:
    """Is this the process of a capture, which runs a script?"""
    return bool(_under_way)


def run(job: Job, begin: Callable[[], timing.Steps[Answer]], recorder: CompileRecorder) -> Answer:
    """Run the script, resuming the pass at each of its steps; what it found, with what there is to say of it."""
    recipe.seed_all(job.seed)
    running = _Running(job, begin, recorder)
    _under_way.append(running)
    failed: Answer | None = None
    try:
        with idle_profilers():
            if running.journal is not None:
                running.journal.begin()
            _run_program(job)
    except _EnoughError as end:
        failed = end.failure
    except SystemExit as end:
        if error := running.left_by(end):
            failed = Answer(outcome="error", error=error)
    except Exception as error:
        failed = failure(error)
    finally:
        running.leave()
    return running.answer(failed)


def _run_program(job: Job) -> None:
    file, _, line = job.step_at.rpartition(":")
    if file:
        program.mark_line(file, int(line))
    if job.module:
        program.run_module(job.recipe, job.arguments)
    else:
        program.run_file(job.recipe, job.arguments)


class _EnoughError(BaseException):
    """Stops the script; no `except Exception` of its own may catch it."""

    def __init__(self, failure: Answer | None = None) -> None:
        self.failure = failure


class _Running:
    """The script under way: where its steps end, when each of them did, and what had compiled by then."""

    def __init__(self, job: Job, begin: Callable[[], timing.Steps[Answer]], recorder: CompileRecorder) -> None:
        self._job, self._make, self._recorder = job, begin, recorder
        self._steps: timing.Steps[Answer] | None = None
        self._found: Answer | None = None
        self._allowed = allowed(job.step_at)
        self._at: Boundary | None = None
        self._caller: Any = None  # whose calls are steps, where they are
        self._calls: Counter[int] = Counter()
        self._stamps: list[tuple[int, int]] = []
        self._marks = timing.Marks(job.device)
        self._ends_seen = 0
        self._ends = StepEnds(self._optimizer_stepped, self._compiled_code_begins, self._compiled_code_ended)
        self._twin = Twin(job.requested, self._called)
        self._batches = MicroBatches()
        self.journal = None if job.in_place or not job.scratch else FileJournal(Path(job.scratch), [job.folder])
        self._progress = Writer(job.scratch, _usual_steps(job))
        self._marked = out_of_dynamos_sight(self._mark_reached)
        self._ends.__enter__()
        self._twin.__enter__()
        self._batches.__enter__()
        step_marks.listen(self._marked)

    def leave(self) -> None:
        """Let go of torch; what the script was stopped in must not be measured."""
        if self.journal is not None:
            self.journal.end()
        step_marks.listen_no_more(self._marked)
        self._several = [type(each).__name__ for each in self._ends.optimizers]
        self._batches.__exit__()
        self._twin.__exit__()
        self._ends.__exit__()

    def left_by(self, end: SystemExit) -> str | None:
        """Why it failed where the script ended itself; None where it meant to, having taken its steps."""
        code, taken = _exit_code(end), self._taken
        if self._found is not None or (code == 0 and taken):
            return None
        when = f"after step {taken}" if taken else "before its first step"
        hint = ". Its own arguments go after --" if code == _USAGE and not self._job.arguments else ""
        return f"the script ended itself (exit code {code}) {when}{hint}"

    def answer(self, failed: Answer | None) -> Answer:
        """What the pass found, or what can be said where the script came to its end before it did."""
        if self._found is not None:  # what it raised when it was stopped is not its failure
            return self._noted(self._found)
        if self._taken < 1:
            return failed or Answer(outcome="error", error=self._why_no_steps(), no_steps=True)
        found = self._noted(replace(self._end_early(), ended=self._taken))
        if failed is None:
            return found
        return replace(found, outcome=failed.outcome, error=failed.error, traceback=failed.traceback)

    @property
    def _taken(self) -> int:
        return max(0, len(self._stamps) - 1)

    def _end_early(self) -> Answer:
        assert self._steps is not None
        try:
            self._steps.throw(timing.EndedError)
        except StopIteration as end:
            answer: Answer = end.value
            return answer
        except timing.EndedError:
            pass
        return self._measured()

    def _called(self, module: Any, trains: bool) -> bool:
        """The outermost module is about to run; whether it should be compiled, where modules are."""
        self._calls[id(module)] += 1
        boundary = of_a_call(self._allowed, trains, self._ends.made)
        if boundary is not None and (self._at is None or boundary > self._at):
            self._begin(boundary, module)
        elif boundary is not None and boundary == self._at and boundary.is_call and module is self._caller:
            self._stepped()
            self._twin.watch(module)
        # The first call that does not train may be there to make lazy parameters.
        return trains or (self._at is Boundary.CALL and (len(self._allowed) == 1 or self._calls[id(module)] > 1))

    def _compiled_code_begins(self, function: Any) -> None:
        import torch

        self._batches.step_aside()
        if not self._twin.is_aside:  # no module has called it
            self._called(function, torch.is_grad_enabled())
        self._twin.step_aside()

    def _compiled_code_ended(self) -> None:
        self._twin.step_back()
        if not self._twin.is_aside:
            self._batches.step_back()

    def _optimizer_stepped(self) -> None:
        self._reached(Boundary.OPTIMIZER)

    def _mark_reached(self) -> None:
        self._reached(Boundary.MARK)

    def _reached(self, boundary: Boundary) -> None:
        if boundary not in self._allowed or (self._at is not None and boundary < self._at):
            return
        if boundary != self._at:  # nothing told us when this one began
            self._begin(boundary, None)
            self._twin.look_no_more()
        else:
            self._twin.look_no_more()
            self._stepped()

    def _begin(self, boundary: Boundary, caller: Any) -> None:
        """Begin the pass, or begin it anew: what was thought to be steps was not."""
        if other := used_all_the_same():
            raise _EnoughError(failure(ForeignDeviceError(self._job.recipe, other)))
        if self._steps is not None:
            self._steps.close()
        self._at, self._caller, self._ends_seen = boundary, caller, 0
        self._stamps.clear()
        self._marks.clear()
        self._batches.forget()
        if self.journal is not None and boundary is not Boundary.CALL:
            self.journal.training()
        self._stamp()
        self._steps = self._make()
        next(self._steps)

    def _stepped(self) -> None:
        self._ends_seen += 1
        if self._ends_seen % self._job.step_every:
            return
        self._stamp()
        (last_ns, _), (now_ns, _) = self._stamps[-2:]
        self._progress.took(self._taken, now_ns, last_ns)
        self._batches.step_ended()
        if self._found is None:
            assert self._steps is not None
            try:
                next(self._steps)
                return
            except StopIteration as end:
                self._found = end.value
        raise _EnoughError

    def _stamp(self) -> None:
        self._stamps.append((time.perf_counter_ns(), len(self._recorder.compiled)))
        self._marks.mark()

    def _why_no_steps(self) -> str:
        children = _children()
        started = f"; it started {children} processes, and what they train is not seen" if children else ""
        if ":" in self._job.step_at:
            return f"{self._job.step_at} was not reached twice{started}"
        return f"no optimizer stepped, and no module was called again and again{started}"

    def _measured(self) -> Answer:
        """Of a script that ended early: the steps after the first in which nothing compiled."""
        compiled = [after > before for (_, before), (_, after) in pairwise(self._stamps)]
        every = [*zip(self._marks.steps_ns(), compiled, strict=True)]
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
            clock=timing.clock(self._job.device),
        )
        return Answer(measured=measured, memory=peaks(self._job.device))

    def _noted(self, found: Answer) -> Answer:
        assert self._at is not None
        notes, remarks = [*found.effective.notes], [*found.effective.remarks]
        remarks.append("losses were not compared: a script keeps its own to itself")
        if self._job.requested.compile and not self._twin.compiles_itself and self._twin.compiled:
            remarks.append(f"compiled in place: {', '.join(type(each).__name__ for each in self._twin.compiled)}")
        if self._at is Boundary.OPTIMIZER and len(self._several) > 1:
            remarks.append(
                f"several optimizers step ({', '.join(self._several)}): a step ends where the first one does"
            )
        if drivers := [name for name in _DRIVERS if name in sys.modules]:
            remarks.append(f"{drivers[0]} drives the script: what it does between steps counts towards the next")
        if was_one_met():
            remarks.append("the script's own profiler was kept idle: two at once crash")
        if found.ended is not None and self._is_short(found):
            notes.append(f"the script ended after {found.ended} steps: fewer than a capture takes")
        return replace(
            found,
            effective=self._of_scripted(replace(found.effective, notes=notes, remarks=remarks)),
            boundary=self._at.name.lower(),
            step=self._what_a_step_is(),
        )

    def _of_scripted(self, effective: Effective) -> Effective:
        """Asked to compile a torch.jit.script module, torch.compile refuses."""
        if not self._twin.scripted:
            return effective
        names = ", ".join(_name(each) for each in self._twin.scripted)
        why = f"torch.compile takes no module of torch.jit.script ({names}): compile the module that it was made of"
        notes = [each for each in effective.notes if each != effective.ran_eagerly]
        return replace(effective, notes=[why, *notes], ran_eagerly=effective.ran_eagerly and why)

    def _what_a_step_is(self) -> str:
        """`4 steps of Adam, 16 micro-batches`."""
        assert self._at is not None
        count, batches = self._job.step_every, self._batches.in_a_step()
        each = {
            Boundary.OPTIMIZER: f"step{'s' * (count > 1)} of {self._several[0] if self._several else 'the optimizer'}",
            Boundary.MARK: f"mark{'s' * (count > 1)} reached",
        }.get(self._at, f"call{'s' * (count > 1)} of {_name(self._caller)}")
        passes = f", {batches:g} micro-batches (backward passes)" if batches > count else ""
        return f"{count} {each}{passes}"

    def _is_short(self, found: Answer) -> bool:
        if found.measured is not None:
            return found.measured.steps < timing.LEAST_TIMED_STEPS
        return found.profiled is None or found.profiled.steps < self._job.steps


def _usual_steps(job: Job) -> int:
    """That a pass takes where nothing compiles late."""
    warmup = max(job.warmup, FIRST_STEPS + timing.QUIET_STEPS)
    return warmup + (timing.LEAST_TIMED_STEPS + 1 if job.stage == "measure" else job.steps + 6)


def _name(caller: Any) -> str:
    import torch

    if isinstance(caller, torch.jit.ScriptModule):
        return str(caller.original_name)
    return type(caller).__name__ if isinstance(caller, torch.nn.Module) else "what is compiled"


def _children() -> int:
    """How many processes multiprocessing has started."""
    known = sys.modules.get("multiprocessing.process")
    counter = repr(getattr(known, "_process_counter", "count(1)"))
    return int("".join(filter(str.isdigit, counter)) or 1) - 1


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
