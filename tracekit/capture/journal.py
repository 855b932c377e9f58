"""The journal in which passes note what their program does to files, before it does it, and by which they are restored.

Where a pass runs in a view, its journal only shows which files are data. Where it does not, the journal and the backups
lie in the user's state folder, because they must outlive a kill and a reboot.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

import msgspec

from tracekit.base.atomic import put
from tracekit.base.workspace import state_folder

JOURNAL, BACKUPS, LEFT, HANDLED, LOCK = "journal.jsonl", "backups", "left.json", "undone", "lock"
BESIDE = ".tracekit-backups"  # a folder of another file system than that of the state folder
State: TypeAlias = list[int] | None  # of a file: inode, size in bytes, last change of content and of status in unix ns


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
    """A file that existed, and where its copy is, on the same file system."""

    backup: str
    digest: str
    times: tuple[int, int]  # when it was last read and last written, ns


class ChangedLink(_OfFile, frozen=True, tag="changed link"):
    """A symbolic link that existed, and where it led."""

    target: str


class ChangedStatus(_OfFile, frozen=True, tag="changed status"):
    """A file or folder that existed, and whose it was, with which permissions."""

    mode: int
    owner: int
    group: int


class Renamed(_OfFile, frozen=True, tag="renamed"):
    """A file or folder that is about to be moved from `path`, and its inode, which shows whether it was."""

    to: str
    inode: int


class RemovedFolder(_OfFile, frozen=True, tag="removed folder"):
    """A folder that existed, and was empty when it was removed."""


class Unknown(msgspec.Struct, frozen=True, tag_field="op", tag="unknown"):
    """A change that could not be examined, for people who read the journal: nothing can be undone."""

    what: str


def home() -> Path:
    """The folder of the journals of captures without a view."""
    return state_folder("captures")


def state(path: str) -> State:
    """What tells whether a file is still the same: no program can set the time at which its status changed."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return [status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def digest(path: str) -> str:
    """Of the content of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def paths(entries: Iterable["Entry"]) -> list[str]:
    """Every file and folder that the entries are about."""
    pairs = ([entry.path, entry.to] if isinstance(entry, Renamed) else [entry.path] for entry in entries)
    return [*dict.fromkeys(path for pair in pairs for path in pair)]


def record_states(folder: Path) -> None:
    """Note how the files are that the program has changed until now: only as such may they be put back later."""
    put_states(folder, {path: state(path) for path in paths(read(folder / JOURNAL))})


def record_process(folder: Path) -> None:
    """Note that this process writes: what it does must not be undone while it runs."""
    (folder / f"process-{os.getpid()}").write_text(_started(os.getpid()))


def processes(folder: Path) -> Iterator[int]:
    """Those that were noted and still run; other processes may have got their numbers since."""
    for file in folder.glob("process-*"):
        process = int(file.name.partition("-")[2])
        if file.read_text() and file.read_text() == _started(process):
            yield process


def _started(process: int) -> str:
    """When that process started; empty if it does not run."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def put_states(folder: Path, states: dict[str, State]) -> None:
    """Replace what was noted."""
    put(folder / LEFT, json.dumps(states).encode())


def recorded_states(folder: Path) -> dict[str, State]:
    """The states that were noted last."""
    try:
        states: dict[str, State] = json.loads((folder / LEFT).read_bytes())
    except (OSError, ValueError):
        return {}
    return states


Entry: TypeAlias = Made | MadeFolder | Read | Changed | ChangedLink | ChangedStatus | Renamed | RemovedFolder


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
