"""The running script: where its steps end, when each of them ended, and what had been compiled by then.

The backward passes of a script: how many a step has (its micro-batches), and the tensors that they start from.

How many steps will a pass over a script take, and how long will the rest of them take?
"""

import statistics
import sys
import time
from collections import Counter, deque
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import torch

from tracekit.capture.child import timing
from tracekit.capture.child.failure import failure
from tracekit.capture.child.file_journal import FileJournal
from tracekit.capture.child.graph_log import GraphCalls, GraphLog
from tracekit.capture.child.loss_check import STEPS, Losses
from tracekit.capture.child.measure import FIRST_STEPS, length
from tracekit.capture.child.memory import MemoryMeter
from tracekit.capture.child.replaced import Replacements, out_of_dynamos_sight
from tracekit.capture.child.script_variant import ScriptVariant
from tracekit.capture.child.step_ends import Boundary, StepEnds, allowed, of_a_call
from tracekit.capture.child.traces import DETAIL, STEADY_WARMUP
from tracekit.capture.compiler import CompileRecorder
from tracekit.capture.device import used_though_hidden
from tracekit.capture.job import Job, PassResult
from tracekit.capture.messages import Writer
from tracekit.compile_log.ledger import total_ns
from tracekit.errors.capturing import ForeignDeviceError
from tracekit.run import Measured
from tracekit.statistics.typical_step import typical_step
from tracekit.vocabulary import step_marks

MakePass: TypeAlias = Callable[[GraphLog], timing.Steps[PassResult]]
_COUNTED_STEPS = 10  # enough to count; later steps are timed, and should run nothing of ours


class _Stamp(NamedTuple):
    """When a step ended, and how many compilations there had been by then."""

    t_ns: int
    compiled: int


class EnoughError(BaseException):
    """Stops the script; not an `Exception`, so that the script's own handlers do not catch it."""

    def __init__(self, failed: PassResult | None = None) -> None:
        self.failed = failed


class ScriptSteps:
    """Between `enter` and `leave`, each step of the program that runs resumes the pass that `make_pass` makes."""

    def __init__(
        self,
        job: Job,
        make_pass: MakePass,
        recorder: CompileRecorder,
        losses: Losses | None = None,
    ) -> None:
        self.job, self._make_pass, self._recorder, self._losses = job, make_pass, recorder, losses
        self.result: PassResult | None = None
        self.boundary: Boundary | None = None  # where steps end; None before the first one
        self.caller: Any = None  # whose calls are steps, if calls are steps
        self.optimizers: list[str] = []  # the kinds of those that stepped, once it is over
        self._graphs = GraphLog()
        self._graph_calls = GraphCalls(self._graphs)
        self.script_variant = ScriptVariant(job.requested, self._called, self._graph_calls.met)
        self.backward = BackwardPasses(losses.backward_from if losses else None)
        self._steps: timing.Steps[PassResult] | None = None
        self._memory: MemoryMeter | None = None
        self._allowed = allowed(job.step_at)
        self._calls: Counter[int] = Counter()
        self._stamps: list[_Stamp] = []  # one more than steps: the first is when the pass began
        self._clock = timing.StepClock(job.device)
        self._ends_seen = 0
        self._ends = StepEnds(self._optimizer_stepped, self._compiled_code_begins, self._compiled_code_ended)
        self._journal = None if job.in_place or not job.journal else FileJournal(job)
        self._progress, self._expected = Writer(job.scratch), ExpectedSteps(job)
        self._marked = out_of_dynamos_sight(lambda: self._reached(Boundary.MARK))

    @property
    def taken(self) -> int:
        """How many steps have ended."""
        return max(0, len(self._stamps) - 1)

    def enter(self) -> None:
        """Install the hooks in torch."""
        self._ends.__enter__()
        self.script_variant.__enter__()
        self.backward.__enter__()
        step_marks.listen(self._marked)
        if self._journal is not None:
            self._journal.begin()

    def leave(self) -> None:
        """Remove the hooks from torch; what the script was doing when it was stopped must not be measured."""
        if self._journal is not None:
            self._journal.end()
        step_marks.stop_listening(self._marked)
        self.optimizers = [type(optimizer).__name__ for optimizer in self._ends.optimizers]
        self.backward.__exit__()
        self.script_variant.__exit__()
        self._ends.__exit__()

    def end_early(self) -> PassResult:
        """The result of the pass from the steps that the script took."""
        assert self._steps is not None
        try:
            self._steps.throw(timing.EndedError)
        except StopIteration as end:
            result: PassResult = end.value
            return result
        except timing.EndedError:
            pass
        return self._measured()

    def why_none(self) -> str:
        """The reason why no step ended."""
        children = _children()
        several = "es" * (children > 1)
        started = f"; it started {children} process{several}, whose training is not seen" if children else ""
        missed = ["no optimizer stepped"] * (Boundary.OPTIMIZER in self._allowed)
        missed += ["no module was called repeatedly"] * any(boundary.is_call for boundary in self._allowed)
        if not missed:
            mark = self.job.step_at if ":" in self.job.step_at else "tracekit.step()"
            missed = [f"{mark} was not reached twice"]
        return f"{', and '.join(missed)}{started}"

    def _called(self, module: Any, trains: bool) -> bool:
        """Note that the outermost module is about to run; returns whether it should be compiled in place."""
        self._calls[id(module)] += 1
        boundary = of_a_call(self._allowed, trains, self._ends.has_optimizer)
        if boundary is not None and (self.boundary is None or boundary > self.boundary):
            # It is more specific than what seemed to end steps, so its steps begin again.
            self._begin(boundary, module)
        elif boundary is not None and boundary == self.boundary and boundary.is_call and module is self.caller:
            self._stepped()
            self.script_variant.watch(module)
        # What takes part in steps is compiled. A first call that does not train may only set lazy parameters.
        return trains or (self.boundary is Boundary.CALL and self._calls[id(module)] > 1)

    def _compiled_code_begins(self, function: Any) -> None:
        self.backward.step_aside()
        if not self.script_variant.is_aside:  # it was not called by a module
            self._called(function, torch.is_grad_enabled())
        self.script_variant.step_aside()

    def _compiled_code_ended(self) -> None:
        self.script_variant.step_back()
        if not self.script_variant.is_aside:
            self.backward.step_back()

    def _optimizer_stepped(self, result: Any) -> None:
        if self._losses is not None:
            self._losses.optimizer_returned(result)
        self._reached(Boundary.OPTIMIZER)

    def _reached(self, boundary: Boundary) -> None:
        if boundary not in self._allowed or (self.boundary is not None and boundary < self.boundary):
            return
        if boundary != self.boundary:  # the beginning of this one is not known
            self._begin(boundary, None)
            self._look_no_more()
        else:
            self._look_no_more()
            self._stepped()

    def _look_no_more(self) -> None:
        self.script_variant.look_no_more()
        self._graph_calls.watch()

    def _begin(self, boundary: Boundary, caller: Any) -> None:
        """Begin the pass, or begin it again if what seemed to be steps was not."""
        if accelerator := used_though_hidden():
            raise EnoughError(failure(ForeignDeviceError(self.job.program, accelerator)))
        if self._steps is not None:
            self._steps.close()
        self.boundary, self.caller, self._ends_seen = boundary, caller, 0
        self._stamps.clear()
        self._clock.clear()
        self.backward.forget()
        self._graphs.clear()
        if self._journal is not None and boundary is not Boundary.CALL:
            self._journal.training()
        self._stamp()
        self._memory = MemoryMeter(self.job.device)
        self._steps = self._make_pass(self._graphs)
        next(self._steps)

    def _stepped(self) -> None:
        self._ends_seen += 1
        if self._ends_seen % self.job.step_every:
            return
        self._stamp()
        before, now = self._stamps[-2:]
        self._expected.took(self.taken, now.t_ns - before.t_ns, compiled=now.compiled > before.compiled)
        self._progress.took(self.taken, self._expected, now.t_ns)
        self.backward.step_ended()
        self._graphs.step_ended()
        if self.result is None:
            assert self._steps is not None
            try:
                next(self._steps)
                return
            except StopIteration as end:
                self.result = end.value
        raise EnoughError

    def _stamp(self) -> None:
        self._stamps.append(_Stamp(time.perf_counter_ns(), len(self._recorder.compiled)))
        self._clock.step_ended()

    def _measured(self) -> PassResult:
        """The steps after the first in which nothing compiled, for a script that ended early."""
        compiled = [after.compiled > before.compiled for before, after in pairwise(self._stamps)]
        steps_ns = self._clock.steps_ns()
        steady = [step for step in range(FIRST_STEPS, len(steps_ns)) if not compiled[step]] or [len(steps_ns) - 1]
        timed = [steps_ns[step] for step in steady]
        measured = Measured(
            step_ns=typical_step(timed).step_ns,
            step_all_ns=timed,
            spread_ns=timing.spread_ns(timed),
            first_steps_ns=steps_ns[:FIRST_STEPS],
            warmup_steps=len(steps_ns) - len(timed),
            compile_ns=total_ns([*self._recorder.compiled]),
            compile_before_ns=total_ns(self._recorder.compiled[: self._stamps[0].compiled]),
            compiles=len(self._recorder.compiled),
            clock=timing.clock(self.job.device),
        )
        assert self._memory is not None
        return PassResult(measured=measured, memory=self._memory.peaks(), graphs=self._graphs.of(steady))


def _children() -> int:
    """The number of processes that multiprocessing has started."""
    process_module = sys.modules.get("multiprocessing.process")
    counter = repr(getattr(process_module, "_process_counter", "count(1)"))
    return int("".join(filter(str.isdigit, counter)) or 1) - 1


class BackwardPasses:
    """While entered, counts the backward passes of the first steps; a listener, if there is one, is told about all."""

    def __init__(self, listener: Callable[[Any], None] | None = None) -> None:
        self._listener = listener and out_of_dynamos_sight(listener)
        self._passes = 0
        self._ended: list[int] = []  # how many there had been at the end of each step
        self._replaced = Replacements()

    def __enter__(self) -> "BackwardPasses":
        self._replaced.put(torch.autograd, "backward", self._counting(torch.autograd.backward))
        return self

    def __exit__(self, *_: object) -> None:
        self._replaced.undo()

    def step_aside(self) -> None:
        """Stand aside, because compiled code is about to run or to be made."""
        if self._listener is None:
            self._replaced.step_aside()

    def step_back(self) -> None:
        """Return, because the compiled code has run."""
        self._replaced.step_back()

    def forget(self) -> None:
        """Forget what was counted: steps begin here."""
        self._passes = 0
        self._ended.clear()

    def step_ended(self) -> None:
        """Count the end of a step."""
        self._ended.append(self._passes)
        if len(self._ended) == _COUNTED_STEPS and self._listener is None:
            self._replaced.undo()

    def in_a_step(self) -> float:
        """The median number of backward passes in the counted steps."""
        counted = self._ended[:_COUNTED_STEPS]
        return statistics.median(end - start for start, end in zip([0, *counted], counted, strict=False))

    def _counting(self, backward: Callable[..., None]) -> Callable[..., None]:
        def counting(*args: Any, **kwargs: Any) -> None:
            self._passes += 1
            if self._listener is not None:
                self._listener(args[0] if args else kwargs.get("tensors"))
            backward(*args, **kwargs)

        return counting


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
