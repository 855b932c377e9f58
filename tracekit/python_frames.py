"""How Python frames are written: by the profiler, in a stack, and by Dynamo, which renames what it resumes."""

import re
from typing import NamedTuple

_PROFILED = re.compile(r"(.+)\((\d+)\): (.*)", re.DOTALL)
_STACKED = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')
_RESUMED = re.compile(r"torch_dynamo_resume_in_(.*)_at_\d+")


class PythonFrame(NamedTuple):
    """A function, and a line in it: that of its `def` where the profiler says it, in a stack the one that runs."""

    file: str
    line: int
    function: str


def profiled(name: str) -> PythonFrame | None:
    """`model.py(12): forward`; None for what is no Python function, as a module's call."""
    shape = _PROFILED.fullmatch(name)
    return PythonFrame(shape[1], int(shape[2]), shape[3]) if shape else None


def stacked(text: str) -> list[PythonFrame]:
    """`File "model.py", line 12, in forward`: the frames of a stack as Python prints it, innermost last."""
    return [PythonFrame(file, int(line), function) for file, line, function in _STACKED.findall(text)]


def plain_function(name: str) -> str:
    """`torch_dynamo_resume_in_f_at_12` is f."""
    resumed = _RESUMED.fullmatch(name)
    return resumed[1] if resumed else name
