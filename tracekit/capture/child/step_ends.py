"""A step ends where the optimizer steps; this is detected from outside, for code that knows nothing about tracekit."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

from tracekit.capture.child.compiled_regions import CompiledRegions, Region
from tracekit.capture.child.compiled_steps import CompiledSteps
from tracekit.capture.child.replaced import Replacements, out_of_dynamos_sight


class StepEnds:
    """While active, calls `ended` after each step of the optimizer that steps first, whatever others do.

    `ended` gets what the step returned: the loss of its closure, if it was given one.

    It is not called from the optimizer's post hook, which runs inside the range that the profiler records for the
    optimizer: a step would end, and the next begin, within that range.
    """

    def __init__(
        self,
        ended: Callable[[Any], None],
        entered: Callable[[Region], None] = lambda _: None,
        exited: Callable[[], None] = lambda: None,
    ) -> None:
        self.optimizers: list[Any] = []  # those that stepped; the first one counts
        self.has_optimizer = False  # whether there is any
        self._ended = ended
        self._entered, self._left = entered, exited  # compiled code
        self._calls = 0
        self._inside = False
        self._replaced = Replacements()
        self._compiled = CompiledSteps()
        self._regions = CompiledRegions(self._region_entered, self._compilation_begins, self._region_left)

    def __enter__(self) -> "StepEnds":
        from torch.optim import Optimizer

        self._stepped = out_of_dynamos_sight(self._count)
        for kind in _subclasses(Optimizer):
            self._wrap_step(kind)
        for optimizer in _with_steps_of_their_own():
            self._replaced.put(optimizer, "step", self._counted(optimizer.step, optimizer))
        self._replaced.put(Optimizer, "_patch_step_function", self._patching(Optimizer._patch_step_function))
        if scaler := _grad_scaler():
            self._replaced.put(scaler, "step", self._scaling(scaler.step))
        self._regions.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._regions.__exit__()
        self._replaced.undo()
        self.optimizers.clear()

    def _count(self, optimizer: Any, result: Any = None) -> None:
        self._calls += 1
        self._compiled.saw(optimizer)
        if all(stepped is not optimizer for stepped in self.optimizers):
            self.optimizers.append(optimizer)
        if optimizer is self.optimizers[0]:
            self._ended(result)

    def _region_entered(self, region: Region) -> None:
        if region.steps:
            self._replaced.step_aside()
        self._compiled.begin(region)
        self._entered(region)

    def _compilation_begins(self) -> None:
        if self._regions:  # a backward pass is compiled outside of them, not by Dynamo
            self._replaced.step_aside()

    def _region_left(self, region: Region) -> None:
        if not self._regions:
            self._replaced.step_back()
        self._left()
        for optimizer in self._compiled.stepped(region):
            self._count(optimizer)

    def _wrap_step(self, kind: type) -> None:
        step: Any = vars(kind).get("step")
        # torch hooks a class when its first optimizer is made; ours comes later, because it has to enclose that hook.
        if getattr(step, "hooked", False) and not getattr(step, "counted", False):
            self._replaced.put(kind, "step", self._counted(step))

    def _counted(self, step: Any, optimizer: Any = None) -> Any:
        """The function with counting; an optimizer that has its own `step` is handled without `self`."""

        @functools.wraps(step)
        def counted(*args: Any, **kwargs: Any) -> Any:
            if self._inside:
                return step(*args, **kwargs)
            self._inside = True
            try:
                result = step(*args, **kwargs)
            finally:
                self._inside = False
            self._stepped(args[0] if optimizer is None else optimizer, result)
            return result

        counted.counted = True  # type: ignore[attr-defined]
        return counted

    def _patching(self, patch: Callable[[Any], None]) -> Callable[[Any], None]:
        def patching(optimizer: Any) -> None:
            patch(optimizer)
            self.has_optimizer = True
            kinds: tuple[type, ...] = type(optimizer).__mro__
            for kind in kinds:
                self._wrap_step(kind)

        return patching

    def _scaling(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """Count steps that the scaler skips because of infinite gradients: they are steps of training, too."""

        def scaling(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            before = self._calls
            result = step(scaler, optimizer, *args, **kwargs)
            if self._calls == before:
                self._stepped(optimizer)
            return result

        return scaling


def _subclasses(kind: type[Any]) -> Iterator[type[Any]]:
    for subclass in kind.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


def _with_steps_of_their_own() -> list[Any]:
    """Optimizers that a learning rate scheduler wrapped earlier, and whose original step it calls."""
    import gc

    from torch.optim import Optimizer

    return [
        candidate
        for candidate in gc.get_objects()
        if issubclass(type(candidate), Optimizer) and "step" in vars(candidate)
    ]


def _grad_scaler() -> Any:
    try:
        from torch.amp.grad_scaler import GradScaler

        return GradScaler
    except ImportError:
        return None
