"""The formats that a trace may have. A format is one entry here: how its file is recognised, read, and read again.

The first entry that recognises a file reads it. Everything behind `Trace` sees only its tables.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from tracekit.base.intervals import Ints
from tracekit.trace import kineto_details
from tracekit.trace.reading import kineto, nsys
from tracekit.trace.reading.tables import Reading

if TYPE_CHECKING:
    from tracekit.trace.model import Trace
    from tracekit.trace.rereading import Arguments, MemoryEvents

_HEAD = 1 << 10  # bytes


# Called with the path and the name of the file in messages, and with `folder` for unfinished work, `tables` for the
# events of a large trace, `workers` and `watch`, of which all but the path may be missing. Raises NotATraceError and
# EmptyTraceError, and what opening the file raises.
Read = Callable[..., Reading]


class TraceSource(Struct, frozen=True):
    """A format: `recognises` looks at the path and the first bytes of a file; a trace in JSON can be added to."""

    name: str
    recognises: Callable[[Path, bytes], bool]
    read: Read
    arguments: Callable[["Trace", Ints], "dict[int, Arguments]"] = lambda trace, rows: {}
    memory_events: Callable[["Trace"], "list[MemoryEvents]"] = lambda trace: []
    is_json: bool = False


SOURCES = {
    source.name: source
    for source in (
        TraceSource("nsys", nsys.recognises, nsys.read),
        TraceSource(
            "kineto",
            lambda path, head: True,
            kineto.read,
            kineto_details.arguments,
            kineto_details.memory_events,
            is_json=True,
        ),
    )
}


def source_of(path: Path) -> TraceSource:
    """The format of a file. One that cannot be opened has the last, whose reader says why."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except (OSError, ValueError):  # a name with a null byte is no path
        head = b""
    return next(source for source in SOURCES.values() if source.recognises(path, head))
