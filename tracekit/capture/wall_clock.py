"""Does a program decide anything by the clock, such as when to stop? Judged by its source: such a program must not be
stopped, because time passes while it waits."""

import ast
from collections.abc import Sequence

_CLOCKS = {"time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "now", "utcnow"}


def line_that_reads_it(statements: Sequence[ast.stmt]) -> int | None:
    """The first line that compares a time of the clock, or a duration by it; None if there is none.

    Durations that are only printed or logged are none of its business: what a function returns is not followed.
    """
    module = ast.Module([*statements], [])
    times: set[str] = set()
    while True:
        names = {
            target.id
            for node in ast.walk(module)
            if isinstance(node, ast.Assign) and _is_time(node.value, times)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        if names <= times:
            break
        times |= names
    compared = (
        node.lineno
        for node in ast.walk(module)
        if isinstance(node, ast.Compare) and any(_is_time(operand, times) for operand in (node.left, *node.comparators))
    )
    return min(compared, default=None)


def _is_time(node: ast.expr, times: set[str]) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=[]):
            return name in _CLOCKS
        case ast.BinOp(left=left, right=right):
            return _is_time(left, times) or _is_time(right, times)
        case ast.Name(id=name):
            return name in times
    return False
