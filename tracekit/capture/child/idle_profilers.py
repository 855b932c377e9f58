"""Keeps other profilers idle while ours runs, because two at once crash the process."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_replaced: list[tuple[Any, Any, Any]] = []  # module, the real class, the idle one
_met: list[str] = []
_SILENT = (
    "__exit__",
    "start",
    "stop",
    "prepare_trace",
    "start_trace",
    "stop_trace",
    "_prepare_trace",
    "_start_trace",
    "_ensure_function_events",
    "export_chrome_trace",
    "export_stacks",
    "export_memory_timeline",
    "add_metadata",
    "add_metadata_json",
    "preset_metadata_json",
    "toggle_collection_dynamic",
)


@contextmanager
def idle_profilers() -> Iterator[None]:
    """A context in which `torch.profiler.profile` and the like record nothing, call nothing back and write nothing."""
    import torch

    _met.clear()
    for holder in (torch.profiler, torch.profiler.profiler, torch.autograd.profiler):
        _replaced.append((holder, holder.profile, _idle(holder.profile)))
    try:
        _set(idle=True)
        yield
    finally:
        _set(idle=False)
        _replaced.clear()


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
    return bool(_replaced)


def was_one_met() -> bool:
    """Whether anything tried to profile meanwhile."""
    return bool(_met)


def _set(idle: bool) -> None:
    for holder, real, asleep in _replaced:
        holder.profile = asleep if idle else real


def _idle(kind: Any) -> Any:
    from torch.autograd.profiler_util import EventList

    class Idle(kind):  # type: ignore[misc]
        """Looks like the real profiler, but does nothing."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self._function_events = EventList([])
            _met.append(kind.__name__)

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
