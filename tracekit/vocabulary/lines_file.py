"""The lines file: which line of the user's ran when, as the interpreter and the profiler's event tree tell it, and
which lines the compiler's kernels come from.

It is beside a trace, `steady.lines.json.gz` beside `steady.json.gz`: columns in JSON, compressed. Times are unix ns on
the trace's clock: `baseTimeNanoseconds + ts`.
"""

import gzip
import re
import zlib
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from tracekit.base import disclosure

SCHEMA = "tracekit.lines/1"
MODULE_CALL = "nn.Module: "  # the profiler's prefix for the name of a module that is called
GRAPH_CALL = re.compile(r"## Call CompiledFxGraph (\S+) ##")  # the name of the span in which a compiled graph runs
_ENDINGS = (".json.gz", ".json.zst", ".json", ".gz")
_MOST_BYTES = 128 << 20  # unpacked: a larger one is not a lines file
_Moment = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
_Number = Annotated[int, msgspec.Meta(ge=0, le=1 << 31)]


class Function(NamedTuple):
    """A Python function: its name in the trace, and where it is defined."""

    name: str  # of the trace's python_function events
    file: str  # full path
    line: _Number  # of its `def`
    function: str
    owner: str  # as decided by `tracekit.vocabulary.code_owner`


class Code(msgspec.Struct, frozen=True, array_like=True):
    """The lines of a function; files of earlier versions have more of it."""

    file: str
    line: _Number  # of its `def`, or of its first decorator
    function: str
    lines: Annotated[list[_Number], msgspec.Meta(min_length=1)]


class Graph(NamedTuple):
    """A compiled graph: its kernels and calls in order, each with the stacks of the user's code it comes from."""

    key: str  # as in GRAPH_CALL
    compile: str  # compile id
    kernels: list[tuple[str, list[str]]]  # "name:handle", stacks as Python prints them, innermost last
    backward: bool = False
    by_code: bool = False  # without stacks, the lines come from comments in the generated code, less precisely


class Mark(NamedTuple):
    """From that moment on, a line of the user's runs on a thread."""

    ns: _Moment
    place: Annotated[int, msgspec.Meta(ge=-1, le=1 << 31)]  # the row of it; −1 for none of the user's
    thread: _Number  # as the system numbers it
    is_estimated: Annotated[int, msgspec.Meta(ge=0, le=1)] = 0  # a share of a loop whose lines were not told apart


class LinesFile(msgspec.Struct, frozen=True, kw_only=True):
    """Marks and the calls of the user's functions, one row each in order of time, and what the columns refer to."""

    schema: str
    python: str = ""
    functions: list[Function] = []
    callers: list[tuple[str, str]] = []  # file and function of the user's code
    call_start_ns: list[_Moment] = []
    call_caller: list[_Number] = []  # the row of its caller
    call_line: list[_Number] = []
    mark_places: list[tuple[_Number, _Number]] = []  # the row of a caller, and a line; 0 is the whole function
    marks: list[Mark] = []  # empty: the interpreter was not asked
    code: list[Code] = []
    sources: dict[str, str] = {}  # contents of the user's files at capture
    graphs: list[Graph] = []
    modules: dict[str, str] = {}  # "SAGEConv_3", as the trace counts them, and its path: "layers.1.conv"


def lines_path(trace: Path) -> Path:
    """The path of a trace's lines file."""
    return trace.with_name(f"{_parts(trace)[0]}.lines.json.gz")


def marked_path(trace: Path) -> Path:
    """The path of a trace of other steps of the same training, whose lines are marked: marking them slows steps down
    where the interpreter cannot be asked about the user's code alone (before Python 3.12)."""
    stem, ending = _parts(trace)
    return trace.with_name(f"{stem}.marked{ending}")


def _parts(trace: Path) -> tuple[str, str]:
    ending = next((end for end in _ENDINGS if trace.name.endswith(end)), "")
    return trace.name.removesuffix(ending), ending


def read(trace: Path) -> LinesFile | None:
    """The lines file beside a trace; None if there is none, or it is not valid."""
    try:
        with gzip.open(lines_path(trace)) as file:
            content = file.read(_MOST_BYTES)
        lines = msgspec.json.decode(content, type=LinesFile)
    except (OSError, EOFError, zlib.error, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if lines.schema != SCHEMA or not _fits(lines):
        return None
    filter_ = disclosure.current()
    return filter_.lines(lines) if filter_ is not None else lines


def _fits(lines: LinesFile) -> bool:
    """Whether the columns have equal lengths and their indices are within bounds."""
    length = len(lines.call_start_ns)
    if not length == len(lines.call_caller) == len(lines.call_line):
        return False
    if max((caller for caller, _ in lines.mark_places), default=-1) >= len(lines.callers):
        return False
    if max((mark.place for mark in lines.marks), default=-1) >= len(lines.mark_places):
        return False
    return not length or 0 <= min(lines.call_caller) <= max(lines.call_caller) < len(lines.callers)
