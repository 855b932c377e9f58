"""What Kineto's JSON leaves out of a recording with stacks: the calling lines and the full paths of the user's code.

The profiler's own event tree has both, with the same times as the JSON. They are written to a file beside the trace,
`<trace>.lines.json.gz`: see `tracekit.lines_file`, which also reads it.
"""

import gzip
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import CodeType
from typing import Any

import msgspec

from tracekit.capture.child import bytecode
from tracekit.capture.child.line_samples import Sample, place_of
from tracekit.capture.child.module_paths import address_of, module_paths
from tracekit.code_owner import GENERATED, USER, CodeOwners
from tracekit.lines_file import MODULE_CALL, SCHEMA, Function, Graph, LinesFile, Place, lines_path

_MOST_SOURCE_BYTES = 1 << 20  # of one file: larger ones are data or generated code


def write(profiler: Any, trace: Path, graphs: list[Graph], samples: Sequence[Sample] = ()) -> None:
    """Write what the profiler's events know about lines beside the exported trace; nothing if there are no stacks."""
    try:
        tree = profiler.profiler.kineto_results.experimental_event_tree()
        content = msgspec.json.encode(_Gathering(CodeOwners()).of(tree, graphs, samples))
    except (AttributeError, RuntimeError):  # this interface is not public; a capture without lines is still useful
        return
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

    def of(self, tree: list[Any], graphs: list[Graph], samples: Sequence[Sample] = ()) -> LinesFile:
        """Everything in the tree that is worth storing."""
        for event in _python(tree):
            with suppress(
                UnicodeDecodeError
            ):  # torch keeps no copy of some names, and what is left of them is not text
                self._take(event)
        self._calls.sort()
        moments, sample_places, places = self._looked_up(samples)
        files = dict.fromkeys(function.file for function in self._functions.values() if function.owner == USER)
        files |= dict.fromkeys(file for file, _ in self._callers)
        sources = {file: text for file in files if (text := _source(file)) is not None}
        return LinesFile(
            schema=SCHEMA,
            python="{}.{}".format(*sys.version_info),
            functions=[*self._functions.values()],
            callers=[*self._callers],
            call_start_ns=[start for start, _, _ in self._calls],
            call_caller=[caller for _, caller, _ in self._calls],
            call_line=[line for _, _, line in self._calls],
            places=places,
            sample_ns=moments,
            sample_place=sample_places,
            code=[code for file, text in sources.items() for code in bytecode.of_file(file, text)],
            sources=sources,
            graphs=graphs,
            modules=module_paths(self._modules),
        )

    def _looked_up(self, samples: Sequence[Sample]) -> tuple[list[int], list[int], list[Place]]:
        """The moments of the samples, the place of each, and all places."""
        places: dict[tuple[CodeType, int], int] = {}
        distinct: list[Place] = []
        moments, sample_places = [], []
        for sample in samples:
            key = (sample.code, sample.instruction)
            if key not in places:
                place = place_of(*key, self._caller(sample.code.co_filename, sample.code.co_name))
                places[key] = len(distinct) if place is not None else -1
                distinct += [place] if place is not None else []
            if places[key] >= 0:
                moments.append(sample.t_ns)
                sample_places.append(places[key])
        return moments, sample_places, distinct

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


def _python(tree: list[Any]) -> Iterator[Any]:
    """The calls of the tree. (It uses a loop, because the tree may be deeper than Python can recurse.)"""
    from torch._C._profiler import _EventType

    call_types = (_EventType.PyCall, _EventType.PyCCall)
    pending = [*tree]
    while pending:
        event = pending.pop()
        if event.tag in call_types:
            yield event
        pending += event.children


def _source(file: str) -> str | None:
    """The text of a file, or of a notebook's cell."""
    import linecache

    text = "".join(linecache.getlines(file))
    return text if text and len(text) <= _MOST_SOURCE_BYTES else None
