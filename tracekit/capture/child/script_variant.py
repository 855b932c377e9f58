"""What of torch is replaced while a script runs: it runs eager or compiled, whichever of the two it was written as, and
its backward passes are counted.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from tracekit.capture.child.recipe import compile_arguments
from tracekit.capture.child.replaced import Replacements, leave_alone, out_of_dynamos_sight

if TYPE_CHECKING:
    from tracekit.run import Requested

Given: TypeAlias = Callable[[Any, tuple[Any, ...], dict[str, Any]], None]
_COUNTED_STEPS = 10  # of backward passes: later steps are timed, and should run nothing of ours


class ScriptVariant:
    """While active, the script compiles or not, as the variant requires; `called` gets each outermost module's call.

    `arguments_callback` gets the arguments.

    `Module.__call__` is replaced instead of hooked, because Dynamo would trace a hook. The replacement steps aside
    while the outermost module runs, while compiled code runs and while anything is being compiled, which might take
    hold of it – and for good after the first step.
    """

    def __init__(self, requested: "Requested", called: Callable[[Any, bool], bool], arguments_callback: Given) -> None:
        self.compiles_itself = False
        self.compiled: list[Any] = []  # modules compiled in place
        self.scripted: list[Any] = []  # modules of torch.jit, which torch.compile does not accept
        self._requested, self._called, self._arguments_callback = requested, called, arguments_callback
        self._looking = False
        self._aside = 0  # how many reasons there are to stand aside
        self._replaced = Replacements()
        self._watched: Any = None  # a module whose calls are steps

    @property
    def is_aside(self) -> bool:
        """Whether a module or compiled code is running."""
        return self._aside > 0

    def __enter__(self) -> "ScriptVariant":
        self._call: Any = torch.nn.Module.__call__
        self._compile: Any = torch.compile

        def outermost(module: Any, *args: Any, **kwargs: Any) -> Any:
            self.step_aside()
            try:
                self._met(module)
                self._arguments_callback(module, args, kwargs)
                return self._call(module, *args, **kwargs)
            finally:
                self.step_back()
                if module is self._watched:
                    self._watch()

        def compile_as_wanted(model: Any = None, **arguments: Any) -> Any:
            if model is None:
                return lambda function: compile_as_wanted(function, **arguments)
            if arguments.get("disable"):
                return self._compile(model, **arguments)
            self.compiles_itself = True
            settings = compile_arguments(self._requested, arguments) if self._requested.compile else arguments
            self.step_aside()  # a compiled module binds its own call for good
            try:
                return self._compile(model, **settings)
            finally:
                self.step_back()

        self._outermost = outermost
        self._replaced.put(torch.nn.Module, "__call__", outermost)
        self._replaced.put(torch, "compile", compile_as_wanted)
        self._looking = True
        if not self._requested.compile:
            torch.compiler.set_stance("force_eager")
        return self

    def __exit__(self, *_: object) -> None:
        self.look_no_more()
        self._replaced.undo()

    def look_no_more(self) -> None:
        """Stop looking, because after the first step every module has been called."""
        if self._looking:
            self._looking = False
            torch.nn.Module.__call__ = self._call

    def step_aside(self) -> None:
        """Remove everything of ours for the time being."""
        self._aside += 1
        if self._looking and self._aside == 1:
            torch.nn.Module.__call__ = self._call

    def step_back(self) -> None:
        """Return; has to be called once for each `step_aside`."""
        self._aside -= 1
        if self._looking and not self._aside:
            torch.nn.Module.__call__ = self._outermost

    def _met(self, module: Any) -> None:
        """Report a module, and compile it in place if that is wanted.

        Its training mode is ignored: layers with frozen statistics and wrappers do not set it.
        """
        parameters = [*module.parameters()]
        if not parameters:
            return  # a loss
        trains = torch.is_grad_enabled() and any(parameter.requires_grad for parameter in parameters)
        if not self._called(module, trains):
            return
        if self.compiles_itself or not self._requested.compile:
            return
        parts = (part for model in self.compiled for part in model.modules())
        if any(part is module for part in parts):
            return  # a checkpoint calls parts again in the backward pass
        if isinstance(module, torch.jit.ScriptModule):
            if all(scripted is not module for scripted in self.scripted):
                self.scripted.append(module)
            return
        self.compiled.append(module)
        call = module._call_impl
        if type(module).__module__.startswith("torch."):
            # Dynamo skips torch's own frames, so it would never see a bare Sequential; torch.compile adds this wrapper,
            # too.
            call = torch._dynamo.external_utils.wrap_inline(call)
        module._compiled_call_impl = self._compile(call, **compile_arguments(self._requested, {}))

    def watch(self, module: Any) -> None:
        """Treat its calls as the steps: from the next one on, it reports them itself, and nothing else is watched."""
        if self._looking and isinstance(module, torch.nn.Module):
            self._watched = module

    def _watch(self) -> None:
        module = self._watched
        call = module._compiled_call_impl or module._call_impl
        learns = any(parameter.requires_grad for parameter in module.parameters())

        def watched(*args: Any, **kwargs: Any) -> Any:
            self._called(module, learns and torch.is_grad_enabled())
            self._arguments_callback(module, args, kwargs)
            return call(*args, **kwargs)

        leave_alone(watched)
        self.look_no_more()
        object.__setattr__(module, "_compiled_call_impl", watched)  # a compiled module would pass it on to the original


class BackwardPasses:
    """While entered, counts the backward passes of the first steps; a listener, if there is one, is told about all.

    `ended` is called after each; while `wants_ends`, they are seen beyond the first steps.
    """

    def __init__(self, ended: Callable[[], None], listener: Callable[[Any], None] | None = None) -> None:
        self._listener = listener and out_of_dynamos_sight(listener)
        self._pass_ended = out_of_dynamos_sight(ended)
        self.wants_ends = False
        self._passes = 0
        self._ended: list[int] = []  # how many there had been at the end of each step
        self._replaced = Replacements()

    def __enter__(self) -> "BackwardPasses":
        backward = torch.autograd.backward

        def counting(*args: Any, **kwargs: Any) -> None:
            self._passes += 1
            if self._listener is not None:
                self._listener(args[0] if args else kwargs.get("tensors"))
            backward(*args, **kwargs)
            self._pass_ended()

        self._replaced.put(torch.autograd, "backward", counting)
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
        if len(self._ended) == _COUNTED_STEPS and self._listener is None and not self.wants_ends:
            self._replaced.undo()

    def in_a_step(self) -> float:
        """The median number of backward passes in the counted steps."""
        import statistics  # not before the end, where a pass is timed

        counted = self._ended[:_COUNTED_STEPS]
        return statistics.median(end - start for start, end in zip([0, *counted], counted, strict=False))
