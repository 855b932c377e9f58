"""Is a file a training script or a recipe? Judged by its source, without running it."""

import ast
from pathlib import Path

from tracekit.errors import BrokenSyntaxError


def is_script(path: str | Path) -> bool:
    """Whether it is a training script; a recipe defines `setup`. Raises BrokenSyntaxError."""
    return not any(_defines_setup(statement) for statement in statements(path))


def statements(path: str | Path) -> list[ast.stmt]:
    """The statements of the file. Raises BrokenSyntaxError."""
    try:
        return ast.parse(Path(path).read_bytes()).body
    except SyntaxError as error:
        raise BrokenSyntaxError(path, error.lineno or 1, error.msg) from None
    except (ValueError, RecursionError, MemoryError) as error:  # old versions, and code that is nested too deeply
        raise BrokenSyntaxError(path, 1, str(error) or type(error).__name__) from None


def _defines_setup(statement: ast.stmt) -> bool:
    match statement:
        case ast.FunctionDef(name="setup", args=arguments):
            return len(arguments.args) == 1 or arguments.vararg is not None  # setup(rank, world_size) is distributed
        case ast.ClassDef(name="setup"):
            return True
        case ast.Assign(targets=targets):
            return any(isinstance(target, ast.Name) and target.id == "setup" for target in targets)
        case ast.ImportFrom(names=names):
            return any((alias.asname or alias.name) == "setup" for alias in names)
    return False
