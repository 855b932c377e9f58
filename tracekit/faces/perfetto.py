"""A trace for ui.perfetto.dev: the original, byte for byte, preceded by tracks of ours that explain its events.

Our events use the phases `B` and `E`, which the profiler never writes: any program that reads duration events from the
file, including tracekit, gets only those of the original. Times are on the trace's own clock.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import IO

from isal import igzip

from tracekit.errors import OutputError
from tracekit.faces import variant_face
from tracekit.faces.shared.perfetto_tracks import tracks
from tracekit.profile import Profile
from tracekit.report import Report
from tracekit.trace.reading.chunks import after_bracket
from tracekit.trace.reading.source import Source

_PIECE = 1 << 20  # bytes copied at a time
_HEADER = 64 << 20  # bytes in which the list of events must begin


@variant_face("perfetto", ".json.gz")
def export(report: Report, profile: Profile, path: Path) -> None:
    """One variant's trace with our tracks. Raises OutputError if the original cannot be read again."""
    original = profile.trace.path
    if not original.is_file():
        raise OutputError(path, f"{original} is not a file that can be read again")
    with Source(original) as source, igzip.open(path, "wb", compresslevel=1) as output:
        head = _head(source)
        if head is None:
            raise OutputError(path, f"{original} begins its list of events too late")
        opened, rest = head
        output.write(opened)
        _write_tracks(output, tracks(report, profile), rest.lstrip()[:1] == b"]")
        output.write(rest)
        for piece in _pieces(source):
            output.write(piece)


def _write_tracks(output: IO[bytes], events: Iterator[bytes], alone: bool) -> None:
    """Write our events, each piece ending with a comma; the last comma is left out if no other event follows."""
    waiting = b""
    for piece in events:
        output.write(waiting)
        waiting = piece
    output.write(waiting.rstrip(b",\n") + b"\n" if alone else waiting)


def _head(source: Source) -> tuple[bytes, bytes] | None:
    """The text before the first event, including the bracket, and the rest of what was read."""
    begun = bytearray()
    for piece in _pieces(source):
        begun += piece
        events_start = after_bracket(begun)
        if events_start is not None and begun[events_start:].strip():
            return bytes(begun[:events_start]), bytes(begun[events_start:])
        if len(begun) > _HEADER:
            return None
    events_start = after_bracket(begun)
    return (bytes(begun[:events_start]), bytes(begun[events_start:])) if events_start is not None else None


def _pieces(source: Source) -> Iterator[bytes]:
    buffer = bytearray(_PIECE)
    while count := source.readinto(memoryview(buffer)):
        yield bytes(memoryview(buffer)[:count])
