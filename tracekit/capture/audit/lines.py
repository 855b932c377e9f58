"""Which line of the user's is being run? Not torch's, not a library's, not ours."""

import os
import site
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType

_PACKAGE = f"{Path(__file__).parents[2]}{os.sep}"
_BACKWARD = ("_engine_run_backward", "the backward pass")
_PLUMBING = tuple(
    f"torch/{part}"
    for part in ("_tensor.py", "_ops.py", "_compile.py", "_dynamo/", "autograd/", "nn/modules/module.py", "utils/")
)


@dataclass(frozen=True)
class Line:
    """A line of the user's, and where in a library its call had got to."""

    file: str
    line: int
    function: str
    via: str | None = None  # "torch_geometric/utils/loop.py:120 remove_self_loops"


def running() -> Line:
    """The innermost line of the user's; without one, the innermost that is not torch's."""
    frames = [*_frames()]
    at = next((at for at, frame in enumerate(frames) if not is_library(frame.f_code.co_filename)), None)
    if at is None:
        at = next((at for at, frame in enumerate(frames) if not _is_torch(frame.f_code.co_filename)), len(frames) - 1)
    frame = frames[at]
    return Line(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name, _via(frames[:at]))


def _frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not frame.f_code.co_filename.startswith(_PACKAGE):
            yield frame
        frame = frame.f_back


@cache
def is_library(filename: str) -> bool:
    """Nobody edits it: installed, or generated."""
    return filename.startswith(("<", *_library_folders())) or _is_template(filename)


def _is_template(filename: str) -> bool:
    """Written by PyG, `package.module_….py`: it is in the temporary folder, where a file of the user's may be, too."""
    return filename.startswith(f"{tempfile.gettempdir()}{os.sep}") and "." in Path(filename).stem


@cache
def _library_folders() -> tuple[str, ...]:
    installed = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders = {*installed, site.getusersitepackages(), _torch_folder()}
    generated = tempfile.gettempdir()  # PyG writes code there; a pass has a folder of its own for it
    if not Path.cwd().is_relative_to(generated):
        folders.add(generated)
    return tuple(f"{each}{os.sep}" for each in folders)


@cache
def _torch_folder() -> str:
    import torch

    return str(Path(torch.__file__).parent)


def _is_torch(filename: str) -> bool:
    return filename.startswith(("<", f"{_torch_folder()}{os.sep}"))


def _via(inner: list[FrameType]) -> str | None:
    """Where a library had got to, innermost first: torch's own plumbing says nothing to anybody."""
    if any(frame.f_code.co_name == _BACKWARD[0] for frame in inner):
        return _BACKWARD[1]
    telling = [frame for frame in inner if not frame.f_code.co_filename.startswith("<")]
    others = [frame for frame in telling if not _is_torch(frame.f_code.co_filename)]
    of_torch = [frame for frame in telling if not _short(frame).startswith(_PLUMBING)]
    frame = next(iter(others or of_torch), None)
    return f"{_short(frame)}:{frame.f_lineno} {frame.f_code.co_name}" if frame else None


def _short(frame: FrameType) -> str:
    """`torch_geometric/utils/loop.py`."""
    name = frame.f_code.co_filename
    for folder in sorted(_library_folders(), key=len, reverse=True):
        if name.startswith(folder):
            relative = Path(name).relative_to(folder)
            return f"torch/{relative}" if _is_torch(name) else str(relative)
    return name
