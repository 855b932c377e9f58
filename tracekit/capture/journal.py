"""The journal in which passes note what their program does to files, before it does it, and by which the files are
restored as they were.

Where a pass runs in a view, its journal only shows which files are data. Where it does not, the journal and the backups
lie in the user's state folder, because they must outlive a kill and a reboot.
"""

import errno
import hashlib
import json
import os
import shutil
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias, assert_never

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


Entry: TypeAlias = Made | MadeFolder | Read | Changed | ChangedLink | ChangedStatus | Renamed | RemovedFolder


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


def paths(entries: Iterable[Entry]) -> list[str]:
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


class Undone(msgspec.Struct):
    """What was undone of the files that passes wrote."""

    undone: list[str] = []
    prepared_data: list[str] = []  # what the program prepared and read before its first step
    failed: dict[str, str] = {}  # and why

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left to be restored."""
        return not self.failed


def undo(folder: Path, states: dict[str, State] | None = None) -> Undone:
    """Undo the journal of this folder, latest entries first.

    With `states`, those in which the passes left the files, a file in any other state is not touched, and neither is
    anything that was moved from or to it. A backup is not copied but moved into its place, which needs no space on the
    disk and leaves no file half written; a backup that was not used remains.
    """
    entries = [*read(folder / JOURNAL)]
    result, is_data = Undone(), data(entries)
    spared = {path for path in paths(entries) if is_data(path)}
    result.failed = {} if states is None else _changed_since(entries, states)
    handled: set[int] = set()  # what an undoing that was interrupted has undone, by number
    with suppress(OSError):
        handled = {int(line) for line in (folder / HANDLED).read_text().split()}
    for number, entry in reversed([*enumerate(entries)]):
        if number in handled or not result.failed.keys().isdisjoint(paths([entry])):
            continue
        try:
            if _undo(entry, spared, is_live=states is None):
                result.undone.append(entry.path)
            if states is not None:
                states |= {path: state(path) for path in paths([entry])}
                put_states(folder, states)
            # If this process is killed, the next one must not begin anew: it would remove what has been moved back.
            with open(folder / HANDLED, "a") as file:
                file.write(f"{number}\n")
        except OSError as error:
            result.failed[entry.path] = error.strerror or str(error)
    for entry in entries:
        if isinstance(entry, Changed) and entry.path in result.failed:
            result.failed[entry.path] += f"; as it was before: {entry.backup}" * (
                entry.backup not in result.failed[entry.path]
            )
    result.undone = [*dict.fromkeys(path for path in reversed(result.undone) if path not in result.failed)]
    result.prepared_data = sorted(path for path in spared if os.path.lexists(path))
    if result.is_whole:
        discard(folder)
    return result


def discard(folder: Path) -> None:
    """Remove the journal, and the backups that were not used."""
    for entry in read(folder / JOURNAL):
        if isinstance(entry, Changed):
            with suppress(OSError):
                os.unlink(entry.backup)
            with suppress(OSError):
                os.rmdir(os.path.dirname(entry.backup))
    for name in (JOURNAL, LEFT, HANDLED):
        (folder / name).unlink(missing_ok=True)


def _changed_since(entries: Sequence[Entry], states: dict[str, State]) -> dict[str, str]:
    """The files that are not as the passes left them, with all that were moved from or to these."""
    why = "it has changed since, or its state when the capture ended is not known"
    changed = {
        path: why
        for path in paths(entry for entry in entries if not isinstance(entry, Read))
        if not os.path.isdir(path) and (path not in states or states[path] != state(path))
    }
    about = Counter(path for entry in entries for path in paths([entry]))
    for entry in entries:  # it was about to be changed, and was not
        if about[entry.path] == 1 and (
            (isinstance(entry, Changed) and _is_as_before(entry))
            or (isinstance(entry, ChangedStatus) and _has_status(entry))
        ):
            changed.pop(entry.path, None)
    moved = [{entry.path, entry.to} for entry in entries if isinstance(entry, Renamed)]
    while connected := {path for pair in moved if pair & changed.keys() for path in pair} - changed.keys():
        changed |= dict.fromkeys(connected, why)
    return changed


def data(entries: Sequence[Entry]) -> Callable[[str], bool]:
    """Whether a path is data that the program made before its first step and read back, or lies beside such data.

    Beside means in a folder that it made then. A later pass finds it, as a second run would, so that no data set is
    fetched again for each pass.
    """
    new_files = {entry.path for entry in entries if isinstance(entry, Made) and entry.preparing}
    new_files |= {entry.to for entry in entries if isinstance(entry, Renamed) and entry.preparing}
    reads = {entry.path for entry in entries if isinstance(entry, Read)}
    folders = {entry.path for entry in entries if isinstance(entry, MadeFolder) and entry.preparing}
    tops = {folder for folder in folders if os.path.dirname(folder) not in folders}
    with_data = tuple(f"{top}{os.sep}" for top in tops if any(path.startswith(f"{top}{os.sep}") for path in reads))
    return lambda path: path in new_files and (path in reads or path.startswith(with_data))


def _undo(entry: Entry, spared: set[str], is_live: bool) -> bool:
    """Undo one entry; returns whether there was anything to do.

    While the capture runs, a folder that the program made is removed with what other programs wrote into it.
    """
    match entry:
        case Made(path):
            return path not in spared and _remove(path)
        case MadeFolder(path):
            if not is_live:
                with suppress(OSError):  # it holds data, or what something else than the program's Python code wrote
                    os.rmdir(path)
                    return True
                return False
            removed = False
            for folder, folders, names in os.walk(path, topdown=False):
                links = (name for name in folders if os.path.islink(os.path.join(folder, name)))
                for file in (os.path.join(folder, name) for name in [*names, *links]):
                    if file not in spared:
                        os.unlink(file)
                if not os.listdir(folder):
                    os.rmdir(folder)
                    removed = True
            return removed
        case Changed():
            return _restore(entry)
        case ChangedLink(path, target=target):
            _remove(path)
            os.symlink(target, path)
            return True
        case ChangedStatus(path, mode=mode, owner=owner, group=group):
            if _has_status(entry):
                return False
            os.chown(path, owner, group)
            os.chmod(path, mode)
            return True
        case Renamed(path, to=to, inode=inode):
            if to in spared or not os.path.lexists(to):
                return False
            if os.path.lexists(path):
                if os.lstat(path).st_ino == inode:
                    return False  # the program was killed before it moved the file
                raise FileExistsError(errno.EEXIST, f"{to} was moved from there, and there is another file now")
            os.rename(to, path)
            return True
        case RemovedFolder(path):
            os.makedirs(path, exist_ok=True)
            return False
        case Read():
            return False
        case _:
            assert_never(entry)


def _remove(path: str) -> bool:
    if not os.path.lexists(path) or (os.path.isdir(path) and not os.path.islink(path)):
        return False
    os.unlink(path)
    return True


def _has_status(entry: ChangedStatus) -> bool:
    status = os.stat(entry.path)
    return (stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid) == (entry.mode, entry.owner, entry.group)


def _is_as_before(entry: Changed) -> bool:
    return os.path.isfile(entry.path) and digest(entry.path) == entry.digest


def _restore(entry: Changed) -> bool:
    """Move the backup to where the file was, if it is whole."""
    if not os.path.exists(entry.backup):
        if _is_as_before(entry):
            return False  # an undoing that was interrupted has moved it already
        raise FileNotFoundError(errno.ENOENT, f"its backup is gone: {entry.backup}")
    if digest(entry.backup) != entry.digest:
        raise OSError(errno.EIO, f"its backup is damaged: {entry.backup}")
    os.makedirs(os.path.dirname(entry.path), exist_ok=True)
    os.utime(entry.backup, ns=entry.times)
    if os.path.isfile(entry.path) and os.stat(entry.path).st_nlink > 1:
        _restore_content(entry)  # the other names of the file are to have it back, too
    else:
        try:
            os.replace(entry.backup, entry.path)
        except OSError as error:
            if error.errno != errno.EXDEV:  # two mounts of one disk
                raise
            _restore_content(entry)
    with suppress(OSError):
        os.rmdir(os.path.dirname(entry.backup))
    return True


def _restore_content(entry: Changed) -> None:
    """Copy the backup into the file, and remove it once the file is as it was."""
    with open(entry.backup, "rb") as backup, open(entry.path, "r+b" if os.path.exists(entry.path) else "xb") as file:
        shutil.copyfileobj(backup, file)
        file.truncate()
        os.fsync(file.fileno())
    shutil.copystat(entry.backup, entry.path)
    if not _is_as_before(entry):
        raise OSError(errno.EIO, f"it could not be written whole: its backup is {entry.backup}")
    os.unlink(entry.backup)


def back_up(path: str, folder: Path, name: str) -> str:
    """Copy the file to where it can be moved back from, safe from a power failure; raises OSError if it cannot be."""
    backups = folder / BACKUPS
    if os.stat(folder).st_dev != (device := os.stat(path).st_dev):
        # As far up as possible: a program may remove the folder of the file.
        parents = [
            parent for parent in Path(path).parents if os.stat(parent).st_dev == device and os.access(parent, os.W_OK)
        ]
        backups = (parents or [Path(path).parent])[-1] / f"{BESIDE}-{folder.name}"
    backups.mkdir(mode=0o700, exist_ok=True)
    backup = str(backups / name)
    try:
        shutil.copy2(path, backup)
        with suppress(OSError):
            status = os.stat(path)
            os.chown(backup, status.st_uid, status.st_gid)  # it is moved back one day
        for target in (backup, str(backups)):
            handle = os.open(target, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
    except OSError:
        with suppress(OSError):
            os.unlink(backup)
        with suppress(OSError):
            os.rmdir(backups)
        raise
    return backup
