"""What the user's program raised: the kind of failure, one line, and the program's own part of the traceback."""

import re
import traceback
from collections.abc import Iterator
from pathlib import Path

from tracekit.base.names import sanitize
from tracekit.capture.child.memory import out_of_memory
from tracekit.capture.job import PassResult
from tracekit.errors import TracekitError
from tracekit.errors.capturing import NoInferenceError
from tracekit.run import Outcome

_OURS = str(Path(__file__).parents[1])
_ERROR_WIDTH = 300
# Libraries that allocate memory themselves report it only in words, as does the allocator for host memory.
_NO_MEMORY = re.compile(
    r"out of memory|_STATUS_ALLOC_FAILED|ERROR_OUT_OF_(?:HOST_|DEVICE_)?MEMORY|can(?:'t|not) allocate memory"
    r"|unable to allocate|bad_alloc",
    re.IGNORECASE,
)


def failure(error: BaseException) -> PassResult:
    """The result of a pass that ended with this exception."""
    return PassResult(outcome=outcome(error), error=one_line(error), traceback=recipes_traceback(error))


def outcome(error: BaseException) -> Outcome:
    """`oom` if memory ran out, on whichever device and however the compiler wrapped the exception, else `error`."""
    if isinstance(error, NoInferenceError):
        return "skipped"
    return "oom" if any(_is_out_of_memory(cause) for cause in _causes(error)) else "error"


def one_line(error: BaseException) -> str:
    """`ValueError: the loss is gone`; of memory that ran out, how much was asked for and how much was free."""
    if isinstance(error, TracekitError):
        return sanitize(str(error))
    if short := [*filter(_is_out_of_memory, _causes(error))]:
        cause = next(filter(_is_of_memory, short), short[0])  # what a compiler wraps says more than the wrapping
        return sanitize(f"{type(cause).__name__}: {out_of_memory(str(cause))}", _ERROR_WIDTH)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # "backend='inductor' raised:" – the next line says what happened.
    sentence = " ".join(lines[: 2 if lines and lines[0].endswith(":") else 1])
    return sanitize(f"{type(error).__name__}: {sentence}", _ERROR_WIDTH)


def recipes_traceback(error: BaseException) -> str:
    """The traceback without tracekit's own frames."""
    if isinstance(error, TracekitError):
        return ""  # its sentence says everything
    report = traceback.TracebackException.from_exception(error)
    frames = [frame for frame in report.stack if not frame.filename.startswith((_OURS, "<frozen"))]
    report.stack = traceback.StackSummary.from_list(frames)
    return "".join(report.format())


def _is_out_of_memory(error: BaseException) -> bool:
    in_words = isinstance(error, RuntimeError | OSError) and _NO_MEMORY.search(str(error)) is not None
    return in_words or _is_of_memory(error)


def _is_of_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The exception and its causes; a chain may contain a cycle."""
    visited: set[int] = set()
    while error is not None and id(error) not in visited:
        visited.add(id(error))
        yield error
        inner = getattr(error, "inner_exception", None)  # torch._dynamo's BackendCompilerFailed
        error = inner if isinstance(inner, BaseException) else error.__cause__ or error.__context__
