"""Which line of the user's is running, as opposed to torch's, a library's, or ours?"""

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from types import FrameType

from tracekit.code_owner import TORCH, TRACEKIT, USER, CodeOwners

_BACKWARD = ("_engine_run_backward", "the backward pass")
_EMULATION = os.path.dirname(os.path.abspath(__file__)) + os.sep
_PLUMBING = tuple(
    f"torch/{part}"
    for part in ("_tensor.py", "_ops.py", "_compile.py", "_dynamo/", "autograd/", "nn/modules/module.py", "utils/")
)


@dataclass(frozen=True)
class Line:
    """A line of the user's, and the position in a library that its call has reached."""

    file: str
    line: int
    function: str
    via: str | None = None  # "torch_geometric/utils/loop.py:120 remove_self_loops"


def running() -> Line:
    """The innermost line of the user's or, without one, the innermost that is not torch's."""
    frames = [*_frames()]
    position = next((position for position, frame in enumerate(frames) if _owner(frame) == USER), None)
    if position is None:
        position = next((position for position, frame in enumerate(frames) if not _is_torch(frame)), len(frames) - 1)
    frame = frames[position]
    return Line(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name, _via(frames[:position]))


def asked_by_us() -> bool:
    """Whether tracekit's own measuring makes the call that is being emulated, rather than the user's program."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_EMULATION):
        frame = frame.f_back
    return frame is not None and _owner(frame) == TRACEKIT


def _frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if _owner(frame) != TRACEKIT:
            yield frame
        frame = frame.f_back


@cache
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
