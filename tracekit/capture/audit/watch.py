"""Counts what happens on the emulated device while the counted steps run, by the user's line that is running, as
opposed to torch's, a library's, or ours.

And tells whether that line is in code that torch.compile would compile, where a size or a value from the data breaks
the graph. Such code is whatever the script passes to torch.compile or, if it compiles nothing, its outermost modules
that have parameters. What a DataLoader calls, such as a transform, is no part of the model.
"""

import functools
import linecache
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import torch
from msgspec import Struct

from tracekit.capture.job import KINDS, Kind, Row
from tracekit.vocabulary.code_owner import TORCH, TRACEKIT, USER, CodeOwners

_BACKWARD = ("_engine_run_backward", "the backward pass")
_EMULATION = os.path.dirname(os.path.abspath(__file__)) + os.sep
_PLUMBING = tuple(
    f"torch/{part}"
    for part in ("_tensor.py", "_ops.py", "_compile.py", "_dynamo/", "autograd/", "nn/modules/module.py", "utils/")
)


class AuditedLine(Struct, frozen=True):
    """A line of the user's, and the position in a library that its call has reached."""

    file: str
    line: int
    function: str
    via: str | None = None  # "torch_geometric/utils/loop.py:120 remove_self_loops"


class _Sighting(Struct, frozen=True):
    kind: Kind
    operator: str
    line: AuditedLine
    why: str
    loading: bool = False


class Watch:
    """Collects rows as events happen."""

    def __init__(self) -> None:
        self.counting = False
        self.steps = 0
        self.loading = False  # whether a DataLoader makes a batch in this process
        self._silences = 0  # how many `silenced` contexts are open
        self.notes: dict[str, None] = {}  # questions of the script that the emulation cannot answer, in order
        self._counts: Counter[_Sighting] = Counter()
        self._steps: defaultdict[_Sighting, set[int]] = defaultdict(set)  # those in which it happened
        self._excused: dict[int, _Sighting] = {}

    @property
    def silent(self) -> bool:
        """Whether nothing is recorded."""
        return self._silences > 0

    @contextmanager
    def silenced(self) -> Iterator[None]:
        """A context in which nothing is recorded, because what happens is not the user's doing."""
        self._silences += 1
        try:
            yield
        finally:
            self._silences -= 1

    def begin(self) -> None:
        """Start counting again, because what was counted so far was not in a counted step; crashes stay recorded."""
        self.steps = 0
        self._counts = Counter({sighting: 0 for sighting in self._counts if sighting.kind == "mixed"})
        self._steps.clear()

    def see(self, kind: Kind, operator: str, why: str, line: AuditedLine | None = None) -> None:
        """Count an event at the line of the user's that is running."""
        if not self.silent and not asked_by_us():
            self._add(_Sighting(kind, operator, line or running(), why, self.loading))

    def see_mixed(self, operator: str, why: str, storages: list[int]) -> None:
        """Record two devices in one operator. Later ones are not reported: a run would have ended at the first."""
        if self.silent:
            return
        sighting = _Sighting("mixed", operator, running(), why)
        first = [self._excused.setdefault(storage, sighting) for storage in storages]
        if sighting in first:
            self._add(sighting)

    def note(self, sentence: str) -> None:
        """Note a question of the script's that no emulation can answer."""
        if not self.silent and not asked_by_us():
            self.notes[sentence] = None

    def rows(self) -> list[Row]:
        """The rows, the most important first. Events outside the steps do not count, unless they would crash."""
        rows = [
            Row(
                kind=sighting.kind,
                operator=sighting.operator,
                file=sighting.line.file,
                line=sighting.line.line,
                function=sighting.line.function,
                per_step=round(count / max(1, self.steps), 3),
                count=count,
                in_steps=len(self._steps[sighting]),
                loading=sighting.loading,
                source=linecache.getline(sighting.line.file, sighting.line.line).strip(),
                via=sighting.line.via,
                why=sighting.why,
            )
            for sighting, count in self._counts.items()
        ]
        return sorted(rows, key=lambda row: (KINDS.index(row.kind), -row.per_step, row.file, row.line, row.operator))

    def _add(self, sighting: _Sighting) -> None:
        if self.counting:
            self._counts[sighting] += 1
            self._steps[sighting].add(self.steps)
        elif sighting.kind == "mixed":
            self._counts[sighting] += 0


def running() -> AuditedLine:
    """The innermost line of the user's or, without one, the innermost that is not torch's."""
    frames = []
    caller: FrameType | None = sys._getframe(1)
    while caller is not None:
        if _owner(caller) != TRACEKIT:
            frames.append(caller)
        caller = caller.f_back
    position = next((position for position, frame in enumerate(frames) if _owner(frame) == USER), None)
    if position is None:
        position = next((position for position, frame in enumerate(frames) if not _is_torch(frame)), len(frames) - 1)
    frame = frames[position]
    return AuditedLine(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name, _via(frames[:position]))


def asked_by_us() -> bool:
    """Whether tracekit's own measuring makes the call that is being emulated, rather than the user's program."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_EMULATION):
        frame = frame.f_back
    return frame is not None and _owner(frame) == TRACEKIT


@functools.cache
def _owners() -> CodeOwners:
    return CodeOwners()


def _owner(frame: FrameType) -> str:
    return _owners().of(frame.f_code.co_filename)


def _is_file(frame: FrameType) -> bool:
    return not frame.f_code.co_filename.startswith("<")


def _is_torch(frame: FrameType) -> bool:
    return not _is_file(frame) or _owner(frame) == TORCH


def _via(inner: list[FrameType]) -> str | None:
    """The position in a library, innermost first; torch's own frames would not help anyone."""
    if any(frame.f_code.co_name == _BACKWARD[0] for frame in inner):
        return _BACKWARD[1]
    telling = [frame for frame in inner if _is_file(frame)]
    library_frames = [frame for frame in telling if not _is_torch(frame)]
    torch_frames = [frame for frame in telling if not _short(frame).startswith(_PLUMBING)]
    frame = next(iter(library_frames or torch_frames), None)
    return f"{_short(frame)}:{frame.f_lineno} {frame.f_code.co_name}" if frame else None


def _short(frame: FrameType) -> str:
    """`torch_geometric/utils/loop.py`."""
    return _owners().relative(frame.f_code.co_filename)


class Regions:
    """Tracks whether, and how deep, execution is in code that would be compiled."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self.depth = 0
        self.compiles = False  # whether anything was passed to torch.compile

    def compile(self, model: Any = None, *_: Any, **options: Any) -> Any:
        """Replaces torch.compile: the same code, run eagerly and marked as a region."""
        if options.get("disable"):
            return model
        if model is None:
            return self.compile
        self.compiles = True
        if isinstance(model, torch.nn.Module):
            return _Compiled(model, self)
        return self.around(model)

    def around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with each call as a region."""

        @functools.wraps(call)
        def compiled(*args: Any, **kwargs: Any) -> Any:
            with self.entered():
                return call(*args, **kwargs)

        return compiled

    @contextmanager
    def entered(self) -> Iterator[None]:
        """A context that counts as compiled code."""
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1

    def call_module(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Replaces `Module.__call__`: if the script compiles nothing, an outermost module with parameters is a region,
        as it is compiled in place in a capture."""

        def calling(module: Any, *args: Any, **kwargs: Any) -> Any:
            if self.compiles or self.depth or self._watch.loading or next(module.parameters(), None) is None:
                return call(module, *args, **kwargs)
            with self.entered():
                return call(module, *args, **kwargs)

        return calling


def loading(watch: Watch, following: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Replaces `__next__` of a DataLoader's iterator: what happens meanwhile belongs to the loader."""

    def next_batch(iterator: Any) -> Any:
        before, watch.loading = watch.loading, True
        try:
            return following(iterator)
        finally:
            watch.loading = before

    return next_batch


class _Compiled(torch.nn.Module):  # type: ignore[misc]
    """Like torch.compile's wrapper: everything except the call is delegated to the module."""

    def __init__(self, module: torch.nn.Module, regions: Regions) -> None:
        super().__init__()
        self._orig_mod = module
        object.__setattr__(self, "_regions", regions)

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return super().__getattr__(name)
        return getattr(self._orig_mod, name)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module in the region."""
        with self._regions.entered():
            return self._orig_mod(*args, **kwargs)
