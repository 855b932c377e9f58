"""Functions of torch's that are ours for a while, and that Dynamo must never meet.

Whatever Dynamo traces it compiles and guards: one frame of ours in it, and the graphs, the recompilations and the
breaks are no longer the script's own. So every replacement can step aside, and where Dynamo comes upon our frames
between its own it leaves them alone.
"""

from collections.abc import Callable
from typing import Any


class Replacements:
    """What was replaced, so that it can be put back: for a while, or for good."""

    def __init__(self) -> None:
        self._made: list[tuple[Any, str, Any, Any]] = []
        self._is_aside = False

    def put(self, holder: Any, name: str, new: Any) -> None:
        """`new` instead of that attribute."""
        original = vars(holder).get(name, getattr(holder, name))
        leave_alone(new)
        self._made.append((holder, name, original, new))
        if not self._is_aside:
            setattr(holder, name, new)

    def step_aside(self) -> None:
        """Let the originals be seen. What somebody else has replaced since stays."""
        if not self._is_aside:
            self._is_aside = True
            for holder, name, original, new in reversed(self._made):
                if vars(holder).get(name) is new:
                    setattr(holder, name, original)

    def step_back(self) -> None:
        """The replacements, again."""
        if self._is_aside:
            self._is_aside = False
            for holder, name, original, new in self._made:
                if vars(holder).get(name) is original:
                    setattr(holder, name, new)

    def undo(self) -> None:
        """Put everything back, the latest first."""
        self._is_aside = False
        for holder, name, original, _ in reversed(self._made):
            setattr(holder, name, original)
        self._made.clear()


def leave_alone(function: Any) -> None:
    """Dynamo runs this function as it is, and goes on in those that it calls."""
    from torch._dynamo.eval_frame import skip_code

    skip_code(function.__code__)


def out_of_dynamos_sight(function: Callable[..., Any]) -> Callable[..., Any]:
    """That function, with Dynamo switched off in it and in all that it calls."""
    from torch._C._dynamo.eval_frame import set_eval_frame  # 2.6 has it nowhere else

    def hidden(*args: Any) -> Any:
        compiling = set_eval_frame(None)
        try:
            return function(*args)
        finally:
            set_eval_frame(compiling)

    leave_alone(hidden)
    return hidden
