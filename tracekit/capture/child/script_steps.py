"""Runs any training script unchanged: its own steps resume a pass, which stops it once it has seen enough.

A pass whose time is quoted imports nothing but this until its last step: what a process imports decides how much its
memory costs it.
"""

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from tracekit.capture.child import program
from tracekit.capture.child.clocks import stopwatch
from tracekit.capture.child.graph_log import GraphCalls, GraphLog
from tracekit.capture.child.replaced import idle_profilers, out_of_dynamos_sight
from tracekit.capture.child.script_variant import BackwardPasses, ScriptVariant
from tracekit.capture.child.step_clock import EndedError, Steps
from tracekit.capture.child.step_ends import Boundary, StepEnds, allowed, of_a_call
from tracekit.capture.device import used_though_hidden
from tracekit.vocabulary import step_marks

if TYPE_CHECKING:
    from tracekit.capture.job import Job

MakePass: TypeAlias = Callable[[GraphLog], Steps[Any]]
_under_way: list["ScriptSteps"] = []


def is_captured() -> bool:
    """Whether this process belongs to a capture that runs a script."""
    return bool(_under_way)


def run_script(job: "Job", steps: "ScriptSteps") -> None:
    """Run the script as Python would, until it ends, or has taken enough steps: then it raises EnoughError."""
    _under_way.append(steps)
    try:
        with idle_profilers():
            steps.enter()
            stopwatch.enter("set up")
            file, _, line = job.step_at.rpartition(":")
            if file:
                program.mark_line(file, int(line))
            run_program = program.run_module if job.module else program.run_file
            run_program(job.program, [*job.arguments])
    finally:
        stopwatch.enter("end")
        steps.leave()


class EnoughError(BaseException):
    """Stops the script; not an `Exception`, so that the script's own handlers do not catch it."""


class ForeignError(EnoughError):
    """Stops it because it trains on an accelerator that was hidden from it, and which."""


class ScriptSteps:
    """Between `enter` and `leave`, each step of the program that runs resumes the pass that `make_pass` makes."""

    def __init__(self, job: "Job", make_pass: MakePass, backward_from: Callable[[Any], None] | None = None) -> None:
        self.job, self._make_pass = job, make_pass
        self.result: Any = None  # of the pass
        self.boundary: Boundary | None = None  # where steps end; None before the first one
        self.caller: Any = None  # whose calls are steps, if calls are steps
        self.optimizers: list[str] = []  # the kinds of those that stepped, once it is over
        self.taken = 0  # steps that have ended
        self._graphs = GraphLog()
        self._graph_calls = GraphCalls(self._graphs)
        self.script_variant = ScriptVariant(job.requested, self._called, self._graph_calls.met)
        self.backward = BackwardPasses(self._backward_ended, backward_from)
        self._steps: Steps[Any] | None = None
        self._allowed = allowed(job.step_at)
        self._calls: Counter[int] = Counter()
        self._ends_seen = 0
        self._ends = StepEnds(self._optimizer_stepped, self._compiled_code_begins, self._compiled_code_ended)
        self._marked = out_of_dynamos_sight(lambda: self._reached(Boundary.MARK))

    def enter(self) -> None:
        """Install the hooks in torch."""
        self._ends.__enter__()
        self.script_variant.__enter__()
        self.backward.__enter__()
        step_marks.listen(self._marked)

    def leave(self) -> None:
        """Remove the hooks from torch; what the script was doing when it was stopped must not be measured."""
        step_marks.stop_listening(self._marked)
        self.optimizers = [*self._ends.kinds]
        self.backward.__exit__()
        self.script_variant.__exit__()
        self._ends.__exit__()

    def end(self) -> None:
        """Tell the pass that the script has ended. Raises EndedError where it does not know what to make of that."""
        assert self._steps is not None
        try:
            self._steps.throw(EndedError)
        except StopIteration as end:
            self.result = end.value

    def begin(self, boundary: Boundary, caller: Any) -> None:
        """Begin the pass, or begin it again if what seemed to be steps was not."""
        if accelerator := used_though_hidden():
            raise ForeignError(accelerator)
        if self._steps is not None:
            self._steps.close()
        self.boundary, self.caller, self._ends_seen, self.taken = boundary, caller, 0, 0
        self.backward.forget()
        self.backward.wants_ends = boundary is Boundary.BACKWARD
        self._graphs.clear()
        self._steps = self._make_pass(self._graphs)
        next(self._steps)

    def step_ended(self) -> None:
        """Resume the pass."""
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

    def optimizer_returned(self, result: Any) -> None:
        """What the optimizer's step returned."""

    def _called(self, module: Any, trains: bool) -> bool:
        """Note that the outermost module is about to run; returns whether it should be compiled in place."""
        self._calls[id(module)] += 1
        boundary = of_a_call(self._allowed, trains, self._ends.has_optimizer)
        if boundary is not None and (self.boundary is None or boundary > self.boundary):
            # It is more specific than what seemed to end steps, so its steps begin again.
            self.begin(boundary, module)
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
        self.optimizer_returned(result)
        self._reached(Boundary.OPTIMIZER)

    def _backward_ended(self) -> None:
        """Where an optimizer may step, or a module was called, these show where steps end."""
        if not self._ends.has_optimizer and not self._calls and self.boundary in (None, Boundary.BACKWARD):
            self._reached(Boundary.BACKWARD)

    def _reached(self, boundary: Boundary) -> None:
        if boundary not in self._allowed or (self.boundary is not None and boundary < self.boundary):
            return
        if boundary != self.boundary:  # the beginning of this one is not known
            self.begin(boundary, None)
            if boundary is not Boundary.BACKWARD:  # an optimizer or a module may still show where steps end
                self._look_no_more()
        elif boundary is Boundary.BACKWARD:
            self._stepped()
        else:
            self._look_no_more()
            self._stepped()

    def _look_no_more(self) -> None:
        self.script_variant.look_no_more()
        self._graph_calls.watch()

    def _stepped(self) -> None:
        self._ends_seen += 1
        if self._ends_seen % self.job.step_every == 0:
            self.taken += 1
            self.step_ended()
