"""Output files: written whole or not at all, and never over something that cannot be recreated."""

import os
import re
from collections.abc import Callable, Collection
from pathlib import Path

from msgspec import Struct

from tracekit.base.atomic import filling, reason, replacing
from tracekit.errors.asking import OutputError
from tracekit.run import is_run
from tracekit.trace.reading.source import Source

# No name in a report can look like this, because quotes are escaped in JSON.
_TRACES_BEGINNING = re.compile(
    rb'(?:\xef\xbb\xbf)?\s*[\[{].*?"(?:schemaVersion|traceEvents|displayTimeUnit|ph)"\s*:', re.DOTALL
)
_LOOKED_AT = 1 << 16  # bytes


class Overwriting(Struct, frozen=True):
    """What must not be overwritten: the inputs in any case, other traces and runs unless forced."""

    inputs: Collection[Path] = ()
    force: bool = False

    def refuse(self, path: Path) -> None:
        """Raise OutputError if a file must not be written there."""
        if os.path.isdir(path):
            raise OutputError(path, f"it is a folder: name a file in it, as in {path / 'report.txt'}")
        if not os.path.isdir(path.parent):
            raise OutputError(path, "its folder does not exist")
        if os.path.isfile(path):
            if any(os.path.exists(source) and os.path.samefile(source, path) for source in self.inputs):
                raise OutputError(path, "it is an input")
            if not self.force and holds_a_trace(path):
                raise OutputError(path, "a trace or a run is there, which only --force replaces")


def holds_a_trace(path: Path) -> bool:
    """Whether a file begins like a trace or a run, packed or not."""
    head = bytearray(_LOOKED_AT)
    with Source(path) as source:
        begun = bytes(head[: source.readinto(memoryview(head))])
    return is_run(begun) or _TRACES_BEGINNING.match(begun) is not None or begun.startswith(b"SQLite format 3\0")


def write_content(path: Path, content: str | bytes, overwriting: Overwriting) -> None:
    """Write the content to a file; if that fails, an earlier file stays. Raises OutputError."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    write_atomically(path, lambda part: part.write_bytes(data), overwriting)


def write_atomically(path: Path, make: Callable[[Path], object], overwriting: Overwriting) -> None:
    """Let `make` write a file; if that fails, an earlier one stays. Raises OutputError."""
    overwriting.refuse(path)
    try:
        if os.path.exists(path) and not os.path.isfile(path):  # /dev/null or a pipe, which cannot be replaced
            make(path)
        else:
            with replacing(Path(os.path.realpath(path))) as part:  # a link stays a link
                make(part)
    except OSError as error:
        raise OutputError(path, reason(error)) from None


def fill(folder: Path, make: Callable[[Path], object], overwriting: Overwriting) -> list[Path]:
    """Let `make` fill an empty folder, then move its files to the named folder, all or none. Raises OutputError."""
    try:
        with filling(folder) as part:
            make(part)
            written = [folder / file.relative_to(part) for file in sorted(part.rglob("*")) if file.is_file()]
            for path in written:
                if path.is_dir():
                    raise OutputError(path, "there is a folder of that name")
                if path.parent.is_dir():
                    overwriting.refuse(path)
    except OSError as error:
        raise OutputError(folder, reason(error)) from None
    return written
