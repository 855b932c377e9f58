"""What of torch is temporarily replaced by ours.

Dynamo must never see our functions: it compiles and guards whatever it traces, and with one frame of ours in it, the
graphs, recompilations and breaks would no longer be those of the script. Every replacement can therefore step aside,
and if Dynamo meets our frames anyway, it leaves them alone.

Other profilers are replaced by idle ones while ours runs, because two at once crash the process.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_INHERITED = object()  # the holder itself had no attribute of that name
_SILENT = (  # methods of a profiler that do nothing in an idle one
    *("__exit__", "start", "stop", "prepare_trace", "start_trace", "stop_trace", "_prepare_trace", "_start_trace"),
    *("_ensure_function_events", "export_chrome_trace", "export_stacks", "export_memory_timeline"),
    *("add_metadata", "add_metadata_json", "preset_metadata_json", "toggle_collection_dynamic"),
)
_profilers: list[tuple[Any, Any, Any]] = []  # module, the real class, the idle one
_met_profilers: list[str] = []


class Replacements:
    """What was replaced, so that it can be restored, for a while or for good. `with` restores everything at its end."""

    def __init__(self) -> None:
        self._made: list[tuple[Any, str, Any, Any]] = []
        self._is_aside = False

    def __enter__(self) -> "Replacements":
        return self

    def __exit__(self, *_: object) -> None:
        self.undo()

    def put(self, holder: Any, name: str, new: Any) -> None:
        """Replace the attribute by that function, which Dynamo leaves alone."""
        leave_alone(new)
        self._put(holder, name, new)

    def put_all(self, holder: Any, **names: Any) -> None:
        """`put_all(torch.cuda, is_available=…)` for runs that compile nothing; names that this version lacks are
        skipped."""
        for name, new in names.items():
            if hasattr(holder, name):
                self._put(holder, name, new)

    def _put(self, holder: Any, name: str, new: Any) -> None:
        self._made.append((holder, name, vars(holder).get(name, _INHERITED), new))
        if not self._is_aside:
            setattr(holder, name, new)

    def step_aside(self) -> None:
        """Restore the originals for the time being, except attributes that something else has replaced since."""
        if not self._is_aside:
            self._is_aside = True
            for holder, name, original, new in reversed(self._made):
                if vars(holder).get(name) is new:
                    if original is _INHERITED:
                        delattr(holder, name)
                    else:
                        setattr(holder, name, original)

    def step_back(self) -> None:
        """Put the replacements back."""
        if self._is_aside:
            self._is_aside = False
            for holder, name, original, new in self._made:
                if vars(holder).get(name, _INHERITED) is original:
                    setattr(holder, name, new)

    def undo(self) -> None:
        """Restore the originals for good, except attributes that something else has replaced since, which may go on
        calling our functions."""
        self.step_aside()
        self._is_aside = False
        self._made.clear()


def leave_alone(function: Any) -> None:
    """Make Dynamo run this function as it is, and continue in the functions that it calls."""
    from torch._dynamo.eval_frame import skip_code

    skip_code(function.__code__)


def out_of_dynamos_sight(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with Dynamo switched off in it and in everything that it calls."""
    from torch._C._dynamo.eval_frame import set_eval_frame  # the only place that torch 2.6 has it

    def hidden(*args: Any) -> Any:
        compiling = set_eval_frame(None)
        try:
            return function(*args)
        finally:
            set_eval_frame(compiling)

    leave_alone(hidden)
    return hidden


@contextmanager
def idle_profilers() -> Iterator[None]:
    """A context in which `torch.profiler.profile` and the like record nothing, call nothing back and write nothing."""
    import torch

    _met_profilers.clear()
    for holder in (torch.profiler, torch.profiler.profiler, torch.autograd.profiler):
        _profilers.append((holder, holder.profile, _idle(holder.profile)))
    try:
        _set(idle=True)
        yield
    finally:
        _set(idle=False)
        _profilers.clear()


@contextmanager
def real_profilers() -> Iterator[None]:
    """A context in which they are the real ones again, for making our own."""
    _set(idle=False)
    try:
        yield
    finally:
        _set(idle=True)


def are_idle() -> bool:
    """Whether a capture or a recording has the profiler to itself."""
    return bool(_profilers)


def was_one_met() -> bool:
    """Whether anything tried to profile meanwhile."""
    return bool(_met_profilers)


def _set(idle: bool) -> None:
    for holder, real, asleep in _profilers:
        holder.profile = asleep if idle else real


def _idle(kind: Any) -> Any:
    from torch.autograd.profiler_util import EventList

    class Idle(kind):  # type: ignore[misc]
        """Looks like the real profiler, but does nothing."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self._function_events = EventList([])
            _met_profilers.append(kind.__name__)

        def __enter__(self) -> Any:
            return self

        def step(self) -> None:
            self.step_num += 1

        def key_averages(self, *_: Any, **__: Any) -> Any:
            return EventList([])

        def events(self) -> Any:
            return EventList([])

    for name in _SILENT:
        if hasattr(kind, name):
            setattr(Idle, name, lambda *_, **__: None)
    Idle.__name__ = Idle.__qualname__ = kind.__name__
    return Idle
