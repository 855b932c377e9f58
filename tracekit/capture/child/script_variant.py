"""The eager and the compiled twin of a script, whichever of the two it was written as."""

import functools
from collections.abc import Callable
from typing import Any

from tracekit.capture.child.recipe import compile_arguments
from tracekit.capture.child.step_boundary import StepEnds
from tracekit.run import Requested


class Twin:
    """While entered, the script compiles or does not, as the variant wants it; `begin` is called as it first trains.

    `Module.__call__` is replaced rather than hooked: whatever stands in a module's way Dynamo would trace, so it
    steps aside while the outermost module runs, and for good after the first step.
    """

    def __init__(self, requested: Requested, ends: StepEnds, begin: Callable[[], None]) -> None:
        self.compiles_itself = False
        self.compiled: list[Any] = []  # modules compiled in place
        self._requested, self._ends, self._begin = requested, ends, begin
        self._looking = True

    def __enter__(self) -> "Twin":
        import torch

        self._call: Any = torch.nn.Module.__call__
        self._compile: Any = torch.compile
        self._outermost = self._make_outermost()
        torch.nn.Module.__call__ = self._outermost
        torch.compile = self._compile_as_wanted
        if not self._requested.compile:
            torch.compiler.set_stance("force_eager")
        return self

    def __exit__(self, *_: object) -> None:
        import torch

        self.look_no_more()
        torch.compile = self._compile

    def look_no_more(self) -> None:
        """The first step is done: what will ever be called was called."""
        import torch

        # Once: whoever changes a class makes Python look up anew what a thousand subclasses inherit from it.
        if self._looking:
            self._looking = False
            torch.nn.Module.__call__ = self._call

    def _make_outermost(self) -> Callable[..., Any]:
        def outermost(module: Any, *args: Any, **kwargs: Any) -> Any:
            return self._out_of_the_way(module.training, self._call, module, *args, **kwargs)

        return outermost

    def _out_of_the_way(self, training: bool, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        import torch

        torch.nn.Module.__call__ = self._call
        try:
            if training and torch.is_grad_enabled():
                self._begin()
                self._compile_in_place(args[0] if args else None)
            return call(*args, **kwargs)
        finally:
            if self._looking:
                torch.nn.Module.__call__ = self._outermost

    def _compile_in_place(self, module: Any) -> None:
        import torch

        if self.compiles_itself or not self._requested.compile or not isinstance(module, torch.nn.Module):
            return
        parts = (part for whole in self.compiled for part in whole.modules())
        if any(part is module for part in parts) or not any(each.requires_grad for each in module.parameters()):
            return  # a checkpoint calls parts again, in the backward pass; a loss has nothing to train
        self.compiled.append(module)
        call = module._call_impl
        if type(module).__module__.startswith("torch."):
            # Dynamo skips torch's own frames, and never sees a bare Sequential; torch.compile puts this around it, too.
            call = torch._dynamo.external_utils.wrap_inline(call)
        module._compiled_call_impl = self._compile(call, **compile_arguments(self._requested, {}))

    def _compile_as_wanted(self, model: Any = None, **own: Any) -> Any:
        """What the script gets for torch.compile."""
        import torch

        if model is None:
            return lambda made: self._compile_as_wanted(made, **own)
        self.compiles_itself = True
        wanted = compile_arguments(self._requested, own) if self._requested.compile else own
        made = self._compile(model, **wanted)
        if isinstance(model, torch.nn.Module) or isinstance(getattr(model, "__self__", None), torch.nn.Module):
            return made
        return self._watched(model, self._ends.around(made) if _is_whole_step(model) else made)

    def _watched(self, function: Any, call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def watched(*args: Any, **kwargs: Any) -> Any:
            if self._looking:
                return self._out_of_the_way(True, call, *args, **kwargs)
            return call(*args, **kwargs)

        return watched


def _is_whole_step(function: Any) -> bool:
    """Does it step the optimizer itself? Compiled, that happens where nobody sees it."""
    import torch

    if isinstance(getattr(function, "__self__", None), torch.optim.Optimizer):
        return True
    return "step" in getattr(getattr(function, "__code__", None), "co_names", ())
