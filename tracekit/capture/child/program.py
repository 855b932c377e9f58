"""The user's program: run as Python itself would, with the same `__main__`, arguments and `sys.path`."""

import ast
import builtins
import os
import runpy
import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

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
    from tracekit.errors.capturing import NoSuchLineError

    raise NoSuchLineError(path, line)


def _path_begins_with(folder: str) -> None:
    if not sys.flags.safe_path:  # -P, PYTHONSAFEPATH
        sys.path.insert(0, folder)
