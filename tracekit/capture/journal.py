"""The entries of the journal in which a pass notes what its program does to files, and by which they are restored."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import msgspec

JOURNAL, BACKUPS = "journal.jsonl", "backups"  # in the scratch folder of a pass


class _OfFile(msgspec.Struct, frozen=True, tag_field="op"):
    path: str
    preparing: bool  # whether it happened before the program's first step


class Made(_OfFile, frozen=True, tag="made"):
    """A file that did not exist before."""


class MadeFolder(_OfFile, frozen=True, tag="made folder"):
    """A folder that did not exist before."""


class Read(_OfFile, frozen=True, tag="read"):
    """A file that the program made earlier, and reads back."""


class Changed(_OfFile, frozen=True, tag="changed"):
    """A file that existed, and its copy among the backups."""

    backup: str
    times: tuple[int, int]  # when it was last read and last written, ns


class ChangedLink(_OfFile, frozen=True, tag="changed link"):
    """A symbolic link that existed, and where it led."""

    target: str


class Renamed(_OfFile, frozen=True, tag="renamed"):
    """A file or folder that was moved from `path`."""

    to: str


class RemovedFolder(_OfFile, frozen=True, tag="removed folder"):
    """A folder that existed, and was empty when it was removed."""


class Unknown(msgspec.Struct, frozen=True, tag_field="op", tag="unknown"):
    """A change that could not be examined, for people who read the journal: nothing can be undone."""

    what: str


Entry: TypeAlias = Made | MadeFolder | Read | Changed | ChangedLink | Renamed | RemovedFolder


def encoded(entry: Entry | Unknown) -> bytes:
    """The line for an entry. Names of files need not be UTF-8, and only the standard library writes such names."""
    return json.dumps(msgspec.to_builtins(entry)).encode() + b"\n"


def read(file: Path) -> Iterator[Entry]:
    """The entries of a journal that can be undone, in order."""
    if not file.exists():
        return
    for line in file.read_bytes().splitlines():
        try:
            entry = msgspec.convert(json.loads(line), Entry | Unknown)
        except ValueError:
            continue  # the incomplete last entry of a pass that was killed, or one of another version of tracekit
        if not isinstance(entry, Unknown):
            yield entry
