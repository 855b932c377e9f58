"""When is compiled code entered and left? Detected where Dynamo itself prepares for it, outside the traced code."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tracekit.capture.child.replaced import Replacements, out_of_dynamos_sight


@dataclass(eq=False)
class Region:
    """The code that one call of torch.compile made."""

    steps: list[Any] = field(default_factory=list)  # the optimizers that Dynamo met while tracing it


class CompiledRegions:
    """While active, calls `entered` before compiled code runs, `compiling` before any is made, `left` after it ran.

    A compiled optimizer step makes no call that could be noticed. But Dynamo met the optimizer while tracing, and from
    then on the region is known to be able to step it.
    """

    def __init__(
        self, entered: Callable[[Region], None], compiling: Callable[[], None], exited: Callable[[Region], None]
    ) -> None:
        self._entered, self._compiling, self._left = entered, compiling, exited
        self._open: list[Region] = []
        self._replaced = Replacements()
        self._begins = out_of_dynamos_sight(lambda *_: self._compiling())

    def __enter__(self) -> "CompiledRegions":
        from torch._dynamo.callback import callback_handler
        from torch._dynamo.eval_frame import OptimizeContext
        from torch._dynamo.variables.optimizer import OptimizerVariable

        self._replaced.put(OptimizeContext, "__init__", self._making(OptimizeContext.__init__))
        self._replaced.put(OptimizerVariable, "call_method", self._tracing(OptimizerVariable.call_method))
        callback_handler.register_start_callback(self._begins)
        return self

    def __exit__(self, *_: object) -> None:
        from torch._dynamo.callback import callback_handler

        callback_handler.remove_start_callback(self._begins)
        self._replaced.undo()
        self._entered = self._left = _nothing  # code that was compiled meanwhile lives on

    def __bool__(self) -> bool:
        """Whether compiled code is running."""
        return bool(self._open)

    def _making(self, make: Callable[..., None]) -> Callable[..., None]:
        def making(context: Any, *args: Any, **kwargs: Any) -> None:
            make(context, *args, **kwargs)
            context.enter_exit_hooks.append(self._hook(Region()))

        return making

    def _hook(self, region: Region) -> Callable[[], Callable[[], None]]:
        def leave() -> None:
            self._open.pop()
            self._left(region)

        def enter() -> Callable[[], None]:
            self._open.append(region)
            self._entered(region)
            return leave

        return enter

    def _tracing(self, trace: Callable[..., Any]) -> Callable[..., Any]:
        def tracing(variable: Any, tx: Any, name: str, *args: Any, **kwargs: Any) -> Any:
            if (
                name == "_init_group"
                and self._open
                and all(optimizer is not variable.value for optimizer in self._open[-1].steps)
            ):
                self._open[-1].steps.append(variable.value)
            return trace(variable, tx, name, *args, **kwargs)

        return tracing


def _nothing(_: Region) -> None:
    return None
