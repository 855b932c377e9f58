"""Functions of torch's that are ours for a while, and that Dynamo must never meet.

Whatever Dynamo traces it compiles and guards: one frame of ours in it, and the graphs, the recompilations and the
breaks are no longer the script's own. So every replacement can step aside, and where Dynamo comes upon our frames
between its own it leaves them alone.
"""

from collections.abc import Callable
from typing import Any

_INHERITED = object()  # nothing of that name was in the holder itself


class Replacements:
    """What was replaced, so that it can be put back: for a while, or for good. `with` undoes it all in the end."""

    def __init__(self) -> None:
        self._made: list[tuple[Any, str, Any, Any]] = []
        self._is_aside = False

    def __enter__(self) -> "Replacements":
        return self

    def __exit__(self, *_: object) -> None:
        self.undo()

    def put(self, holder: Any, name: str, new: Any) -> None:
        """That function instead of the attribute, which Dynamo leaves alone."""
        leave_alone(new)
        self._put(holder, name, new)

    def put_all(self, holder: Any, **names: Any) -> None:
        """`put_all(torch.cuda, is_available=…)`, where nothing is compiled; a name of another version is left out."""
        for name, new in names.items():
            if hasattr(holder, name):
                self._put(holder, name, new)

    def _put(self, holder: Any, name: str, new: Any) -> None:
        self._made.append((holder, name, vars(holder).get(name, _INHERITED), new))
        if not self._is_aside:
            setattr(holder, name, new)

    def step_aside(self) -> None:
        """Let the originals be seen. What somebody else has replaced since stays."""
        if not self._is_aside:
            self._is_aside = True
            for holder, name, original, new in reversed(self._made):
                if vars(holder).get(name) is new:
                    _restore(holder, name, original)

    def step_back(self) -> None:
        """The replacements, again."""
        if self._is_aside:
            self._is_aside = False
            for holder, name, original, new in self._made:
                if vars(holder).get(name, _INHERITED) is original:
                    setattr(holder, name, new)

    def undo(self) -> None:
        """Put everything back, the latest first."""
        for holder, name, original, _ in reversed(self._made):
            _restore(holder, name, original)
        self._is_aside = False
        self._made.clear()


def _restore(holder: Any, name: str, original: Any) -> None:
    if original is not _INHERITED:
        setattr(holder, name, original)
    elif name in vars(holder):
        delattr(holder, name)


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
