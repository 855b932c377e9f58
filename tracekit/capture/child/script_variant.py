"""The eager and the compiled twin of a script, whichever of the two it was written as."""

from collections.abc import Callable
from typing import Any, TypeAlias

from tracekit.capture.child.recipe import compile_arguments
from tracekit.capture.child.replaced import Replacements, leave_alone
from tracekit.run import Requested

Given: TypeAlias = Callable[[Any, tuple[Any, ...], dict[str, Any]], None]


class ScriptVariant:
    """While entered, the script compiles or does not, as the variant wants it; `called` hears of outermost modules.

    `given` hears of what they are called with.

    `Module.__call__` is replaced rather than hooked: Dynamo would trace whatever is hooked in. So it
    steps aside while the outermost module runs, while compiled code runs, while anything is being compiled, which
    may take hold of it – and for good after the first step.
    """

    def __init__(self, requested: Requested, called: Callable[[Any, bool], bool], given: Given) -> None:
        self.compiles_itself = False
        self.compiled: list[Any] = []  # modules compiled in place
        self.scripted: list[Any] = []  # modules of torch.jit, which torch.compile does not take
        self._requested, self._called, self._given = requested, called, given
        self._looking = False
        self._aside = 0  # how many reasons there are to be
        self._replaced = Replacements()
        self._watched: Any = None  # a module whose calls are steps

    @property
    def is_aside(self) -> bool:
        """Is a module or compiled code at work?"""
        return self._aside > 0

    def __enter__(self) -> "ScriptVariant":
        import torch

        self._call: Any = torch.nn.Module.__call__
        self._compile: Any = torch.compile
        self._outermost = self._make_outermost()
        self._replaced.put(torch.nn.Module, "__call__", self._outermost)
        self._replaced.put(torch, "compile", self._make_compile())
        self._looking = True
        if not self._requested.compile:
            torch.compiler.set_stance("force_eager")
        return self

    def __exit__(self, *_: object) -> None:
        self.look_no_more()
        self._replaced.undo()

    def look_no_more(self) -> None:
        """The first step is done: what will ever be called was called."""
        import torch

        if self._looking:
            self._looking = False
            torch.nn.Module.__call__ = self._call

    def step_aside(self) -> None:
        """Let nothing of ours be in the way of what comes."""
        import torch

        self._aside += 1
        if self._looking and self._aside == 1:
            torch.nn.Module.__call__ = self._call

    def step_back(self) -> None:
        """Once for each time it stepped aside."""
        import torch

        self._aside -= 1
        if self._looking and not self._aside:
            torch.nn.Module.__call__ = self._outermost

    def _make_outermost(self) -> Callable[..., Any]:
        def outermost(module: Any, *args: Any, **kwargs: Any) -> Any:
            self.step_aside()
            try:
                self._met(module)
                self._given(module, args, kwargs)
                return self._call(module, *args, **kwargs)
            finally:
                self.step_back()
                if module is self._watched:
                    self._watch()

        return outermost

    def _met(self, module: Any) -> None:
        """Whether it is in training mode says nothing: layers with frozen statistics and wrappers are not."""
        import torch

        parameters = [*module.parameters()]
        if not parameters:
            return  # a loss
        trains = torch.is_grad_enabled() and any(each.requires_grad for each in parameters)
        if self._called(module, trains):
            self._compile_in_place(module)

    def watch(self, module: Any) -> None:
        """Its calls are the steps: from the next on, hear of them from itself, and of nothing else."""
        import torch

        if self._looking and isinstance(module, torch.nn.Module):
            self._watched = module

    def _watch(self) -> None:
        import torch

        module = self._watched
        call = module._compiled_call_impl or module._call_impl
        learns = any(each.requires_grad for each in module.parameters())

        def watched(*args: Any, **kwargs: Any) -> Any:
            self._called(module, learns and torch.is_grad_enabled())
            self._given(module, args, kwargs)
            return call(*args, **kwargs)

        leave_alone(watched)
        self.look_no_more()
        object.__setattr__(module, "_compiled_call_impl", watched)  # a compiled module would hand it on

    def _compile_in_place(self, module: Any) -> None:
        import torch

        if self.compiles_itself or not self._requested.compile:
            return
        parts = (part for whole in self.compiled for part in whole.modules())
        if any(part is module for part in parts):
            return  # a checkpoint calls parts again, in the backward pass
        if isinstance(module, torch.jit.ScriptModule):
            if all(each is not module for each in self.scripted):
                self.scripted.append(module)
            return
        self.compiled.append(module)
        call = module._call_impl
        if type(module).__module__.startswith("torch."):
            # Dynamo skips torch's own frames, and never sees a bare Sequential; torch.compile puts this around it, too.
            call = torch._dynamo.external_utils.wrap_inline(call)
        module._compiled_call_impl = self._compile(call, **compile_arguments(self._requested, {}))

    def _make_compile(self) -> Callable[..., Any]:
        """What the script gets for torch.compile."""

        def compile_as_wanted(model: Any = None, **arguments: Any) -> Any:
            if model is None:
                return lambda made: compile_as_wanted(made, **arguments)
            if arguments.get("disable"):
                return self._compile(model, **arguments)
            self.compiles_itself = True
            wanted = compile_arguments(self._requested, arguments) if self._requested.compile else arguments
            self.step_aside()  # a compiled module binds its own call, and keeps it
            try:
                return self._compile(model, **wanted)
            finally:
                self.step_back()

        return compile_as_wanted
