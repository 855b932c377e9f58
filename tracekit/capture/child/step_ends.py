"""A step ends where the optimizer steps; this is detected from outside, for code that knows nothing about tracekit.

Where compiled code steps the optimizer, its parameters show it, because in-place changes raise a tensor's
version; when compiled code is entered and left is detected where Dynamo itself prepares for it, outside the
traced code. If several things may end a step, the highest one counts.
"""

import functools
import gc
import sys
import weakref
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from enum import IntEnum
from typing import Any

from tracekit.capture.child.replaced import Replacements, leave_alone, out_of_dynamos_sight


class Region:
    """The code that one call of torch.compile made."""

    def __init__(self) -> None:
        self.steps: list[Any] = []  # the optimizers that Dynamo met while tracing it


class StepEnds:
    """While active, calls `ended` after each step of the optimizer that steps first, whatever others do. When that is
    gone, as after a fold of a cross-validation, the next one counts.

    `ended` gets what the step returned: the loss of its closure, if it was given one. It is not called for steps of an
    optimizer for which `noted` is true; this is asked outside of compiled code, and must be none that Dynamo traces.

    It is not called from the optimizer's post hook, which runs inside the range that the profiler records for the
    optimizer: a step would end, and the next begin, within that range.
    """

    def __init__(
        self,
        ended: Callable[[Any], None],
        entered: Callable[[Region], None] = lambda _: None,
        exited: Callable[[], None] = lambda: None,
        noted: Callable[[Any], bool] | None = None,
    ) -> None:
        self.kinds: list[str] = []  # of the optimizers that stepped
        # Those of them that are still there, by id; the first one counts. None is kept from being freed.
        self._known: dict[int, weakref.ref[Any]] = {}
        self.has_optimizer = False  # whether there is any
        self._ended, self._noted = ended, noted
        self._entered, self._left = entered, exited  # compiled code
        self._told = 0  # steps that were counted
        self._replaced = Replacements()
        self._versions: dict[int, int] = {}  # of the parameters of each optimizer, before compiled code ran
        self._seen: set[int] = set()  # the optimizers whose steps were called visibly since
        self._regions = CompiledRegions(self._region_entered, self._compilation_begins, self._region_left)

    def __enter__(self) -> "StepEnds":
        from torch.amp.grad_scaler import GradScaler
        from torch.optim import Optimizer

        self._stepped = out_of_dynamos_sight(self._count)
        self._counted = self._counting()
        kinds = [kind for kind in _subclasses(Optimizer) if _is_hooked(kind)]
        for kind in kinds:
            self._wrap_step(kind)
        # Optimizers that a learning rate scheduler wrapped earlier, and whose original step it calls. A list of all
        # objects takes megabytes, which alone changes what memory costs later: only where there is any optimizer.
        candidates = gc.get_objects() if kinds else []
        optimizers = [candidate for candidate in candidates if issubclass(type(candidate), Optimizer)]
        for optimizer in [optimizer for optimizer in optimizers if "step" in vars(optimizer)]:
            self._wrap_own_step(optimizer)
        patch: Callable[[Any], None] = Optimizer._patch_step_function
        scaler_step: Callable[..., Any] = GradScaler.step

        def patching(optimizer: Any) -> None:
            patch(optimizer)
            self.has_optimizer = True
            kinds: tuple[type, ...] = type(optimizer).__mro__
            for kind in kinds:
                self._wrap_step(kind)

        def scaling(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            before = self._calls()
            result = scaler_step(scaler, optimizer, *args, **kwargs)
            if self._calls() == before:  # skipped because of infinite gradients: it is a step of training, too
                self._stepped(optimizer)
            return result

        self._replaced.put(Optimizer, "_patch_step_function", patching)
        self._replaced.put(GradScaler, "step", scaling)
        self._regions.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._regions.__exit__()
        self._replaced.undo()
        self._known.clear()

    @property
    def first(self) -> Any:
        """The optimizer whose steps count; None if none stepped."""
        return next((known() for known in self._known.values()), None)

    def _count(self, optimizer: Any, result: Any = None) -> None:
        self._told += 1
        self._seen.add(id(optimizer))
        if (number := id(optimizer)) not in self._known:
            self._known[number] = weakref.ref(optimizer, functools.partial(self._known.pop, number))
            self.kinds.append(type(optimizer).__name__)
        if number == next(iter(self._known)):
            self._ended(result)

    def _region_entered(self, region: Region) -> None:
        if region.steps:
            self._replaced.step_aside()
        self._versions = {id(optimizer): _version(optimizer) for optimizer in region.steps}
        self._seen.clear()
        self._entered(region)

    def _compilation_begins(self) -> None:
        if self._regions:  # a backward pass is compiled outside of them, not by Dynamo
            self._replaced.step_aside()

    def _region_left(self, region: Region) -> None:
        if not self._regions:
            self._replaced.step_back()
        self._left()
        # On the first call, while the code is being traced, all optimizers that Dynamo meets have stepped.
        stepped = [
            optimizer
            for optimizer in region.steps
            if id(optimizer) not in self._seen and self._versions.get(id(optimizer)) != _version(optimizer)
        ]
        for optimizer in stepped:
            self._count(optimizer)

    def _wrap_step(self, kind: type) -> None:
        step: Any = vars(kind).get("step")
        # torch hooks a class when its first optimizer is made; ours comes later, because it has to enclose that hook.
        if _is_hooked(kind) and getattr(step, "counted_for", None) is not self:
            counted = self._counted(step)
            counted.counted_for = self
            self._replaced.put(kind, "step", counted)

    def _wrap_own_step(self, optimizer: Any) -> None:
        own = optimizer.step  # it is called without `self`

        def step(_: Any, *args: Any, **kwargs: Any) -> Any:
            return own(*args, **kwargs)

        counted = self._counted(step)

        @functools.wraps(own)
        def counted_own(*args: Any, **kwargs: Any) -> Any:
            return counted(optimizer, *args, **kwargs)

        for function in (step, counted):
            leave_alone(function)
        self._replaced.put(optimizer, "step", counted_own)

    def _counting(self) -> Callable[[Any], Any]:
        """Returns what puts counting around a function that steps an optimizer. Each step of torch's drives nearly
        everything out of the processor's caches; variables of a function are then read faster than attributes."""
        noted, stepped, regions = self._noted, self._stepped, self._regions.running
        running = calls = 0  # steps of all threads

        def counting(step: Any) -> Any:
            @functools.wraps(step)
            def counted(optimizer: Any, /, *args: Any, **kwargs: Any) -> Any:
                nonlocal running, calls
                if running and _is_part_of_another():
                    return step(optimizer, *args, **kwargs)
                running += 1
                try:
                    result = step(optimizer, *args, **kwargs) if args or kwargs else step(optimizer)
                finally:
                    running -= 1
                calls += 1
                if noted is None or regions or not noted(optimizer):
                    stepped(optimizer, result)
                return result

            return counted

        def all_calls() -> int:
            return calls + self._told

        self._calls = all_calls
        return counting


def _is_part_of_another() -> bool:
    """Whether the caller runs within another call of the same code, which is one of the same thread."""
    caller = sys._getframe(1)
    frame = caller.f_back
    while frame is not None and frame.f_code is not caller.f_code:
        frame = frame.f_back
    return frame is not None


def _is_hooked(kind: type) -> bool:
    """Whether torch has hooked the step of that class, because an optimizer of it was made."""
    return bool(getattr(vars(kind).get("step"), "hooked", False))


def _subclasses(kind: type[Any]) -> Iterator[type[Any]]:
    for subclass in kind.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


class Boundary(IntEnum):
    """From the least to the most specific."""

    BACKWARD = -1  # a backward pass is over, where no optimizer was made and no module called
    CALL = 0  # the outermost module is called
    TRAINING_CALL = 1  # … while gradients are recorded, for parameters that take them
    OPTIMIZER = 2  # the optimizer has stepped
    MARK = 3  # a line is reached, or tracekit.step()

    @property
    def is_call(self) -> bool:
        """Whether steps end at calls of the outermost module."""
        return self in (Boundary.CALL, Boundary.TRAINING_CALL)


def allowed(step_at: str) -> Collection[Boundary]:
    """The boundaries that `--step-at`, or an earlier pass, allows: "call" leaves open whether the calls train."""
    if not step_at:
        return tuple(Boundary)
    if step_at == "call":
        return (Boundary.CALL, Boundary.TRAINING_CALL)
    return tuple(boundary for boundary in Boundary if boundary.name.lower() == step_at) or (Boundary.MARK,)


def of_a_call(among: Collection[Boundary], trains: bool, has_optimizer: bool) -> Boundary | None:
    """The boundary whose first step begins with this call of a module; None if the call begins no step.

    Optimizers and marks end steps, so only such a call shows where the first step of theirs begins:

        allowed               a call that trains                 any other call
        only TRAINING_CALL    TRAINING_CALL                      None
        only OPTIMIZER        OPTIMIZER                          None
        only MARK             MARK                               MARK
        only BACKWARD         None                               None
        several               OPTIMIZER if there is one and      CALL
                              it is allowed, or TRAINING_CALL
    """
    if len(among) == 1:
        (boundary,) = among
        if boundary is Boundary.BACKWARD:
            return None
        return boundary if trains or boundary is Boundary.MARK else None
    if not trains:
        return Boundary.CALL
    return Boundary.OPTIMIZER if has_optimizer and Boundary.OPTIMIZER in among else Boundary.TRAINING_CALL


class CompiledRegions:
    """While active, calls `entered` before compiled code runs, `compiling` before any is made, `left` after it ran.

    A compiled optimizer step makes no call that could be noticed. But Dynamo met the optimizer while tracing, and from
    then on the region is known to be able to step it.
    """

    def __init__(
        self, entered: Callable[[Region], None], compiling: Callable[[], None], exited: Callable[[Region], None]
    ) -> None:
        self._entered, self._compiling, self._left = entered, compiling, exited
        self.running: list[Region] = []  # the innermost last
        self._replaced = Replacements()
        self._begins = out_of_dynamos_sight(lambda *_: self._compiling())

    def __enter__(self) -> "CompiledRegions":
        from torch._dynamo.callback import callback_handler
        from torch._dynamo.eval_frame import OptimizeContext
        from torch._dynamo.variables.optimizer import OptimizerVariable

        make: Callable[..., None] = OptimizeContext.__init__
        trace: Callable[..., Any] = OptimizerVariable.call_method

        def hook(region: Region) -> Callable[[], Callable[[], None]]:
            def leave() -> None:
                self.running.pop()
                self._left(region)

            def enter() -> Callable[[], None]:
                self.running.append(region)
                self._entered(region)
                return leave

            return enter

        def making(context: Any, *args: Any, **kwargs: Any) -> None:
            make(context, *args, **kwargs)
            context.enter_exit_hooks.append(hook(Region()))

        def tracing(variable: Any, tx: Any, name: str, *args: Any, **kwargs: Any) -> Any:
            if name == "_init_group" and self.running:
                optimizers = self.running[-1].steps
                if all(optimizer is not variable.value for optimizer in optimizers):
                    optimizers.append(variable.value)
            return trace(variable, tx, name, *args, **kwargs)

        self._replaced.put(OptimizeContext, "__init__", making)
        self._replaced.put(OptimizerVariable, "call_method", tracing)
        callback_handler.register_start_callback(self._begins)
        return self

    def __exit__(self, *_: object) -> None:
        from torch._dynamo.callback import callback_handler

        with suppress(ValueError):  # torch._dynamo.reset() has removed it
            callback_handler.remove_start_callback(self._begins)
        self._replaced.undo()
        self._entered = self._left = lambda _: None  # code that was compiled meanwhile lives on

    def __bool__(self) -> bool:
        """Whether compiled code is running."""
        return bool(self.running)


def _version(optimizer: Any) -> int:
    return sum(parameter._version for group in optimizer.param_groups for parameter in group["params"])
