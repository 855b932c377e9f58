"""How Python frames are written: by the profiler, in a stack, and by Dynamo, which renames what it resumes."""

import re
from functools import lru_cache
from typing import NamedTuple

_PROFILED = re.compile(r"(.+)\((\d+)\): (.*)", re.DOTALL)
_STACKED = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')
_RESUMED = re.compile(r"torch_dynamo_resume_in_(.*)_at_\d+")


class PythonFrame(NamedTuple):
    """A function and a line in it: in the profiler's notation that of its `def`, in a stack the running one."""

    file: str
    line: int
    function: str


@lru_cache(maxsize=1 << 14)
def profiled(name: str) -> PythonFrame | None:
    """Parse `model.py(12): forward`; None if it is not a Python function, such as a module's call."""
    shape = _PROFILED.fullmatch(name)
    return PythonFrame(shape[1], int(shape[2]), shape[3]) if shape else None


def stacked(text: str) -> list[PythonFrame]:
    """Parse the frames of a stack as Python prints it, `File "model.py", line 12, in forward`, innermost last."""
    return [PythonFrame(file, int(line), function) for file, line, function in _STACKED.findall(text)]


def plain_function(name: str) -> str:
    """`torch_dynamo_resume_in_f_at_12` is f."""
    resumed = _RESUMED.fullmatch(name)
    return resumed[1] if resumed else name
