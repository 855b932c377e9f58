"""The user's program: run as Python itself would, with the same `__main__`, arguments and `sys.path`.

And what it raised: the kind of failure, one line, and the program's own part of the traceback.
"""

import ast
import builtins
import os
import re
import runpy
import sys
import traceback
from collections.abc import Callable, Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from tracekit.base.names import sanitize
from tracekit.capture.child.memory import out_of_memory
from tracekit.capture.job import PassResult
from tracekit.errors import TracekitError
from tracekit.errors.capturing import NoInferenceError, NoSuchLineError
from tracekit.run import Outcome

_OURS = str(Path(__file__).parents[1])
_ERROR_WIDTH = 300
# Libraries that allocate memory themselves report it only in words, as does the allocator for host memory.
_NO_MEMORY = re.compile(
    r"out of memory|_STATUS_ALLOC_FAILED|ERROR_OUT_OF_(?:HOST_|DEVICE_)?MEMORY|can(?:'t|not) allocate memory"
    r"|unable to allocate|bad_alloc",
    re.IGNORECASE,
)
_GET_CODE: Callable[..., Any] = SourceFileLoader.get_code


def run_file(path: str, arguments: list[str]) -> None:
    """Run `python path ARGUMENTS`."""
    file = os.path.abspath(path)
    _path_begins_with(os.path.dirname(os.path.realpath(path)))
    sys.argv = [path, *arguments]
    main = ModuleType("__main__")
    loader = SourceFileLoader("__main__", file)
    main.__dict__.update(__file__=file, __builtins__=builtins, __cached__=None, __loader__=loader, __spec__=None)
    sys.modules["__main__"] = main
    if SourceFileLoader.get_code is _GET_CODE:
        code: Any = compile(Path(file).read_bytes(), file, "exec", dont_inherit=True)
    else:
        code = loader.get_code("__main__")  # with the mark of a line
    exec(code, main.__dict__)


def run_module(name: str, arguments: list[str]) -> None:
    """Run `python -m name ARGUMENTS`."""
    _path_begins_with(os.getcwd())
    sys.argv = [name, *arguments]
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def mark_line(path: str, line: int) -> None:
    """From now on, whether this file is run or imported, a step ends each time that the line is reached."""
    marked_path, load = os.path.realpath(path), SourceFileLoader.get_code

    def get_code(loader: Any, fullname: str) -> Any:
        file = loader.get_filename(fullname)
        if os.path.realpath(file) != marked_path:
            return load(loader, fullname)
        return compile(marked(Path(file).read_bytes(), path, line), file, "exec", dont_inherit=True)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]


def marked(source: bytes, path: str, line: int) -> ast.Module:
    """The program, with the end of a step inserted before the statement that begins on that line."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        for _, block in ast.iter_fields(node):
            for position, statement in enumerate(block if isinstance(block, list) else ()):
                if isinstance(statement, ast.stmt) and statement.lineno == line:
                    mark = ast.parse('__import__("tracekit").step()').body[0]
                    for part in ast.walk(mark):
                        ast.copy_location(part, statement)
                    block.insert(position, mark)
                    return tree
    raise NoSuchLineError(path, line)


def _path_begins_with(folder: str) -> None:
    if not sys.flags.safe_path:  # -P, PYTHONSAFEPATH
        sys.path.insert(0, folder)


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
