"""What Kineto's JSON leaves out, written to a file beside the trace.

`<trace>.lines.json.gz` is described, and read, by `tracekit.vocabulary.lines_file`.

The marks say which line of the user's ran when. The profiler's own event tree, where stacks are recorded, has the
calling lines and the full paths of the user's code, with the same times as the JSON. The modules tell the user's name
of each, `layers.0.lin`: the profiler only numbers those of a class, `Linear_3`.
"""

import gc
import gzip
import linecache
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import CodeType
from typing import Any

import msgspec

from tracekit.capture.child.line_marks import NO_MARKS, Taken
from tracekit.vocabulary.code_owner import GENERATED, USER, CodeOwners
from tracekit.vocabulary.lines_file import MODULE_CALL, SCHEMA, Code, Function, Graph, LinesFile, lines_path

_MOST_SOURCE_BYTES = 1 << 20  # of one file: larger ones are data or generated code
_WRAPPER = "_orig_mod."  # what torch.compile puts around a module


def write(profiler: Any, trace: Path, graphs: list[Graph], taken: Taken = NO_MARKS, *, stacks: bool = True) -> None:
    """Write what is known about lines beside the exported trace; nothing if nothing is."""
    tree = []
    if stacks:
        with suppress(AttributeError, RuntimeError):  # this interface is not public
            tree = profiler.profiler.kineto_results.experimental_event_tree()
    if tree or taken.marks:
        content = msgspec.json.encode(_Gathering(CodeOwners()).of(tree, graphs, taken))
        lines_path(trace).write_bytes(gzip.compress(content, 5))


class _Gathering:
    """Gathers the functions that occur, each once, and the calls that the user's functions made."""

    def __init__(self, owners: CodeOwners) -> None:
        self._owner_of: Callable[[str], str] = owners.of
        self._full: Callable[[str], str] = owners.full
        self._functions: dict[tuple[str, str, int], Function] = {}
        self._callers: dict[tuple[str, str], int] = {}
        self._calls: list[tuple[int, int, int]] = []  # start, caller, line
        self._modules: dict[str, int] = {}  # the profiler's name, and the module's address

    def of(self, tree: list[Any], graphs: list[Graph], taken: Taken) -> LinesFile:
        """Everything in the tree that is worth storing, and the marks."""
        from torch._C._profiler import _EventType

        call_types = (_EventType.PyCall, _EventType.PyCCall)
        pending = [*tree]
        while pending:  # the tree may be deeper than Python can recurse
            event = pending.pop()
            if event.tag in call_types:
                # Of some names, torch keeps no copy, and what is left of them is not text.
                with suppress(UnicodeDecodeError):
                    self._take(event)
            pending += event.children
        self._calls.sort()
        mark_places = [(self._caller(code.co_filename, code.co_name), line) for code, line in taken.places]
        files = dict.fromkeys(function.file for function in self._functions.values() if function.owner == USER)
        files |= dict.fromkeys(file for file, _ in self._callers)
        texts = {file: "".join(linecache.getlines(file)) for file in files}  # of files and of a notebook's cells
        sources = {file: text for file, text in texts.items() if text and len(text) <= _MOST_SOURCE_BYTES}
        return LinesFile(
            schema=SCHEMA,
            python="{}.{}".format(*sys.version_info),
            functions=[*self._functions.values()],
            callers=[*self._callers],
            call_start_ns=[start for start, _, _ in self._calls],
            call_caller=[caller for _, caller, _ in self._calls],
            call_line=[line for _, _, line in self._calls],
            mark_places=mark_places,
            marks=taken.marks,
            code=[code for file, text in sources.items() for code in of_file(file, text)],
            sources=sources,
            graphs=graphs,
            modules=module_paths(self._modules),
        )

    def _caller(self, file: str, function: str) -> int:
        return self._callers.setdefault((self._full(file), function), len(self._callers))

    def _take(self, event: Any) -> None:
        fields = event.extra_fields
        caller = fields.caller
        if self._owner_of(caller.file_name) == USER:
            caller_index = self._caller(caller.file_name, caller.function_name)
            self._calls.append((event.start_time_ns, caller_index, caller.line_number))
        if (address := address_of(fields)) is not None:
            self._modules.setdefault(event.name.removeprefix(MODULE_CALL), address)
        callee = getattr(fields, "callsite", None)
        if callee is not None and fields.module is None:
            key = (event.name, callee.file_name, callee.line_number)
            if key not in self._functions:
                owner = self._owner_of(callee.file_name)
                full = self._full(callee.file_name) if owner in (USER, GENERATED) else callee.file_name
                self._functions[key] = Function(event.name, full, callee.line_number, callee.function_name, owner)


def of_file(file: str, source: str) -> list[Code]:
    """The functions of a file; none of one that is not Python."""
    try:
        module = compile(source, file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    lines_of_functions = (
        (code, sorted({line for _, _, line in code.co_lines() if line})) for code in _functions(module)
    )
    return [Code(file, code.co_firstlineno, code.co_name, lines) for code, lines in lines_of_functions if lines]


def _functions(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _functions(constant)


def module_paths(addresses: Mapping[str, int]) -> dict[str, str]:
    """For each of the profiler's names, the path within the outermost module; an outermost module has none."""
    import torch

    modules = [candidate for candidate in gc.get_objects() if issubclass(type(candidate), torch.nn.Module)]
    child_ids = {id(child) for parent in modules for child in parent._modules.values() if child is not None}
    paths: dict[int, str] = {}
    for outermost in modules:
        if id(outermost) not in child_ids:
            for path, module in outermost.named_modules():
                paths.setdefault(id(module), f"{path}.".removeprefix(_WRAPPER).removesuffix("."))
    return {name: path for name, address in addresses.items() if (path := paths.get(address))}


def address_of(fields: Any) -> int | None:
    """The address of the module of a call in the profiler's event; None if it is not the call of a module."""
    pointer = getattr(getattr(fields, "module", None), "self_ptr", None)
    return pointer if isinstance(pointer, int) else None
