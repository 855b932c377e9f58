"""A step ends where the optimizer steps: noticed from outside, for code that knows nothing of tracekit."""

import functools
from collections.abc import Callable, Iterator
from typing import Any


class StepEnds:
    """While entered, calls `ended` after each step of the optimizer that steps first, whatever others do.

    Not from the optimizer's post hook where it can be helped: that one runs inside the range the profiler records
    for the optimizer, so a step would end within it, and the next begin. An optimizer that a learning rate
    scheduler took hold of before we came is met there all the same.
    """

    def __init__(self, ended: Callable[[], None]) -> None:
        self.optimizers: list[Any] = []  # those that stepped, the one that counts first
        self._ended = ended
        self._calls = 0
        self._inside = False
        self._restore: list[tuple[Any, str, Any]] = []

    def __enter__(self) -> "StepEnds":
        from torch.optim import Optimizer
        from torch.optim.optimizer import register_optimizer_step_post_hook

        self._hook = register_optimizer_step_post_hook(lambda optimizer, *_: self._hooked(optimizer))
        for kind in _subclasses(Optimizer):
            self._wrap_step(kind)
        self._replace(Optimizer, "_patch_step_function", self._patching(Optimizer._patch_step_function))
        if scaler := _grad_scaler():
            self._replace(scaler, "step", self._scaling(scaler.step))
        return self

    def __exit__(self, *_: object) -> None:
        self._hook.remove()
        for holder, name, original in reversed(self._restore):
            setattr(holder, name, original)
        self.optimizers.clear()

    def around(self, call: Callable[..., Any], optimizer: Any = None) -> Callable[..., Any]:
        """That call, as the end of a step, too, unless an optimizer stepped in it."""

        def calling(*args: Any, **kwargs: Any) -> Any:
            before = self._calls
            made = call(*args, **kwargs)
            if self._calls == before:
                self._stepped(optimizer)
            return made

        return calling

    def _stepped(self, optimizer: Any) -> None:
        self._calls += 1
        if all(each is not optimizer for each in self.optimizers):
            self.optimizers.append(optimizer)
        if optimizer is self.optimizers[0]:
            self._ended()

    def _hooked(self, optimizer: Any) -> None:
        import torch

        if not self._inside and not torch.compiler.is_compiling():
            self._stepped(optimizer)

    def _wrap_step(self, kind: type) -> None:
        step: Any = vars(kind).get("step")
        # torch hooks a class when its first optimizer is made; ours comes after, for it must be around.
        if not getattr(step, "hooked", False) or getattr(step, "counted", False):
            return

        @functools.wraps(step)
        def counted(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            import torch

            if self._inside or torch.compiler.is_compiling():
                return step(optimizer, *args, **kwargs)
            self._inside = True
            try:
                made = step(optimizer, *args, **kwargs)
            finally:
                self._inside = False
            self._stepped(optimizer)
            return made

        counted.counted = True  # type: ignore[attr-defined]
        self._replace(kind, "step", counted)

    def _patching(self, patch: Callable[[Any], None]) -> Callable[[Any], None]:
        def patching(optimizer: Any) -> None:
            patch(optimizer)
            kinds: tuple[type, ...] = type(optimizer).__mro__
            for kind in kinds:
                self._wrap_step(kind)

        return patching

    def _scaling(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """A step that the scaler skips, its gradients being infinite, was a step of training all the same."""

        def scaling(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            return self.around(step, optimizer)(scaler, optimizer, *args, **kwargs)

        return scaling

    def _replace(self, holder: Any, name: str, new: Any) -> None:
        self._restore.append((holder, name, getattr(holder, name)))
        setattr(holder, name, new)


def _subclasses(kind: type[Any]) -> Iterator[type[Any]]:
    for each in kind.__subclasses__():
        yield each
        yield from _subclasses(each)


def _grad_scaler() -> Any:
    try:
        from torch.amp.grad_scaler import GradScaler

        return GradScaler
    except ImportError:
        return None
