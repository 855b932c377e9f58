"""What Kineto's JSON leaves out of a recording with stacks, written to a file beside the trace.

`<trace>.lines.json.gz` is described, and read, by `tracekit.vocabulary.lines_file`.

The profiler's own event tree has the calling lines and the full paths of the user's code, with the same times as the
JSON. The code itself tells in which order, and on which lines, a function computes what no call shows: `a + b`, `x[i]`,
`if x:`. The modules tell the user's name of each, `layers.0.lin`: the profiler only numbers those of a class,
`Linear_3`.

The profiler knows a frame's line only when the frame calls something. A thread beside the training reads the line in
between, now and then. Nothing is traced and no code is changed, so Dynamo cannot notice, and what it costs depends on
the time that passes and not on what happens in it.
"""

import _thread
import dis
import gc
import gzip
import linecache
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

import msgspec

from tracekit.vocabulary.code_owner import GENERATED, USER, CodeOwners
from tracekit.vocabulary.lines_file import MODULE_CALL, SCHEMA, Code, Function, Graph, LinesFile, Place, lines_path

_MOST_SOURCE_BYTES = 1 << 20  # of one file: larger ones are data or generated code
_KINDS = {
    "BINARY_SUBSCR": "[]",
    "BINARY_SLICE": "[]",
    "STORE_SUBSCR": "[]=",
    "STORE_SLICE": "[]=",
    "UNARY_NEGATIVE": "neg",
    "UNARY_INVERT": "~",
    "UNARY_NOT": "bool",
    "TO_BOOL": "bool",
    "CONTAINS_OP": "in",
    "GET_ITER": "iter",
    "UNPACK_SEQUENCE": "iter",
    "LOAD_ATTR": "attr",
    "STORE_ATTR": "attr=",
    "FORMAT_VALUE": "format",
    "FORMAT_SIMPLE": "format",
}
_WRAPPER = "_orig_mod."  # what torch.compile puts around a module
_EVERY_S = 0.0005
_USUAL = 4000  # samples: a recording of more than this many intervals is sampled ever more rarely
_SWITCH_S = 0.0002  # after which Python lets the sampler run; usually 5 ms


class Sample(NamedTuple):
    """A moment, unix ns, at which a frame of the user's was innermost, and the instruction that it was at."""

    t_ns: int
    code: CodeType
    instruction: int


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
        moments, sample_places, places = self._looked_up(samples)
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
            places=places,
            sample_ns=moments,
            sample_place=sample_places,
            code=[code for file, text in sources.items() for code in of_file(file, text)],
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


def of_file(file: str, source: str) -> list[Code]:
    """What each function of a file computes; empty for a file that is not Python."""
    try:
        module = compile(source, file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    computed = []
    for code in _functions(module):
        lines_and_kinds = [
            (line, kind)
            for instruction in dis.get_instructions(code)
            if (kind := _kind(instruction)) is not None
            and (line := instruction.positions.lineno if instruction.positions else None) is not None
        ]
        if lines_and_kinds:
            lines, kinds = zip(*lines_and_kinds, strict=True)
            computed.append(Code(file, code.co_firstlineno, code.co_name, [*lines], [*kinds]))
    return computed


def _functions(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _functions(constant)


def _kind(instruction: dis.Instruction) -> str | None:
    name = instruction.opname
    if name in ("BINARY_OP", "COMPARE_OP"):
        symbol = instruction.argrepr.removeprefix("bool(").removesuffix(")")
        return symbol if symbol not in ("[]", "NB_SUBSCR") else "[]"
    if name.startswith(("POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE", "POP_JUMP_FORWARD_IF_", "JUMP_IF_")):
        return None if name.endswith("NONE") else "bool"
    if name.startswith("CALL") and not name.startswith("CALL_INTRINSIC"):
        return "call"
    return _KINDS.get(name)


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


class LineSampler:
    """While active, samples the line of the thread that made it."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self._thread = threading.get_ident()
        self._stop = _thread.allocate_lock()
        self._stopped = _thread.allocate_lock()
        self._switch_s = sys.getswitchinterval()
        self._owner_of = CodeOwners().of

    def start(self) -> None:
        """Begin. The thread is none of `threading`'s, so that the profiler does not record it."""
        self._stop.acquire()
        self._stopped.acquire()
        sys.setswitchinterval(_SWITCH_S)
        _thread.start_new_thread(self._run, ())

    def stop(self) -> None:
        """End; nothing happens if it did not begin, or has ended."""
        if self._stop.locked():
            self._stop.release()
            self._stopped.acquire()
            self._stopped.release()
            sys.setswitchinterval(self._switch_s)

    def _run(self) -> None:
        began = time.monotonic()
        while not self._stop.acquire(timeout=max(_EVERY_S, (time.monotonic() - began) / _USUAL)):
            frame = sys._current_frames().get(self._thread)
            if frame is not None and self._owner_of(frame.f_code.co_filename) == USER:
                self.samples.append(Sample(time.time_ns(), frame.f_code, frame.f_lasti))
            frame = None  # otherwise, it would keep the user's objects alive until the next sample
        self._stop.release()
        self._stopped.release()


def place_of(code: CodeType, instruction: int, caller: int) -> Place | None:
    """The line of an instruction; for a jump back, all lines of the loop, with their numbers of instructions.

    Python lets other threads run only at certain instructions: in a loop, where it jumps back. So a sample there stands
    for a round of the loop.
    """
    executed = [operation for operation in dis.get_instructions(code) if operation.offset <= instruction]
    if not executed:
        return None
    begins = executed[-1].argval if executed[-1].opname.startswith("JUMP_BACKWARD") else executed[-1].offset
    lines = Counter(
        operation.positions.lineno
        for operation in executed
        if operation.offset >= begins and operation.positions is not None and operation.positions.lineno is not None
    )
    return Place(caller, [*lines], [*lines.values()]) if lines else None
