"""What the user's program raised, in words."""

import traceback
from pathlib import Path

from tracekit.errors import TracekitError
from tracekit.sanitize import sanitize

_OURS = str(Path(__file__).parents[1])
_ERROR_WIDTH = 300


def one_line(error: BaseException) -> str:
    """`ValueError: the data is gone`."""
    if isinstance(error, TracekitError):
        return sanitize(str(error))
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # "backend='inductor' raised:" – the next line says what happened.
    told = " ".join(lines[: 2 if lines and lines[0].endswith(":") else 1])
    return sanitize(f"{type(error).__name__}: {told}", _ERROR_WIDTH)


def users_traceback(error: BaseException) -> str:
    """Without frames of ours."""
    if isinstance(error, TracekitError):
        return ""  # its sentence says all
    told = traceback.TracebackException.from_exception(error)
    frames = [frame for frame in told.stack if not frame.filename.startswith((_OURS, "<frozen"))]
    told.stack = traceback.StackSummary.from_list(frames)
    return "".join(told.format())
