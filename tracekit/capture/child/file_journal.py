"""A journal of what the program does to files, written before each change: the parent undoes it after the pass.

A pass runs the program in the program's own folder, as the user does. Without the journal, each pass would overwrite
the user's checkpoints, and resume from those of the pass before it. Python reports every file that it opens, moves or
removes, and every SQLite database; of what other code writes, only torch.save is noticed.
"""

import errno
import os
import stat
import sys
import threading
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import torch

from tracekit.capture import journal
from tracekit.capture.child.replaced import leave_alone, out_of_dynamos_sight
from tracekit.capture.file_view import caches
from tracekit.capture.job import Job

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_LARGEST_DATABASE_BYTES = 1 << 28  # small enough to be copied in every pass, even if it is only read
_EVENTS = {
    *("open", "sqlite3.connect", "os.remove", "os.truncate", "os.mkdir", "os.rmdir", "os.rename", "os.link"),
    *("os.symlink", "os.chmod", "os.chown"),
}
_SAVE = "torch.save"  # no event of Python's
_NOT_THE_PROGRAMS = (f"{os.sep}__pycache__{os.sep}", f"{os.sep}dev{os.sep}", f"{os.sep}proc{os.sep}")


class NoBackupError(OSError):
    """A file could not be backed up: the program gets this instead of the permission to change it."""


class FileJournal:
    """Records every change from `begin` to `end`, with a copy of what was there unless the pass runs in a view.

    In a view it only shows which new files are data that the program prepared.
    """

    def __init__(self, job: Job) -> None:
        self._folder, self._backs_up = Path(job.journal), not job.viewed
        self._keeps_new = not job.is_script  # a recipe's new files are data that it fetched
        spared = [os.path.realpath(path) for path in filter(None, (job.scratch, job.journal, job.folder, job.meeting))]
        self._spared = tuple(
            f"{path}{os.sep}" for path in (*spared, *caches([os.getcwd(), os.path.dirname(job.program)]))
        )
        self._lock = threading.RLock()
        self._known: set[str] = set()  # already noted since their names last changed
        self._made: set[str] = set()  # did not exist before the pass
        self._preparing = self._on = True
        self._backups = 0

    def begin(self) -> None:
        """Start listening. An audit hook cannot be removed, so after `end` it ignores what it hears."""
        self._out = os.open(self._folder / journal.JOURNAL, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        if self._backs_up:
            journal.record_process(self._folder)
        self._writer = torch._C.PyTorchFileWriter
        handle = out_of_dynamos_sight(self._handle)

        def hook(event: str, args: tuple[Any, ...]) -> None:
            if event in _EVENTS and self._on:
                handle(event, args)

        leave_alone(hook)
        torch._C.PyTorchFileWriter = self._saving
        sys.addaudithook(hook)

    def training(self) -> None:
        """Note that the first step begins: what is written from now on is not prepared data."""
        self._preparing = False

    def end(self) -> None:
        """Stop, because the program is over."""
        self._on = False
        torch._C.PyTorchFileWriter = self._writer

    def _handle(self, event: str, args: tuple[Any, ...]) -> None:
        """Note what is about to happen, unless we do it, and without exceptions that would stop the program."""
        if self._lock._is_owned():  # type: ignore[attr-defined]
            return
        with self._lock:
            try:
                self._note_event(event, args)
            except NoBackupError:
                raise
            except (OSError, ValueError, TypeError):
                self._write(journal.Unknown(repr(args)[:200]))

    def _saving(self, target: Any, *args: Any, **kwargs: Any) -> Any:
        """Note the file of torch.save, which writes outside of Python if it is given a name."""
        if isinstance(target, str | os.PathLike) and self._on:
            self._handle(_SAVE, (target,))
        return self._writer(target, *args, **kwargs)

    def _note_event(self, event: str, args: tuple[Any, ...]) -> None:
        match event:
            case "open":
                path, _, flags = args
                if not isinstance(path, str | bytes | os.PathLike):
                    return  # a file descriptor, which is already open
                path = os.path.realpath(_path(path))
                if isinstance(flags, int) and flags & _WRITING:
                    self._changes(path)
                elif self._preparing and path in self._made:
                    self._note(journal.Read(path, self._preparing))
            case "os.remove":
                self._changes(_path(args[0], args[1]))
            case "os.truncate":
                self._changes(os.path.realpath(_path(args[0])))
            case "os.mkdir":
                path = _path(args[0], args[2])
                if not self._keeps_new and not os.path.lexists(path):
                    self._note(journal.MadeFolder(path, self._preparing))
            case "os.rmdir":
                path = _path(args[0], args[1])
                self._changes_status(path)  # when it is made again, it gets the usual one
                self._note(journal.RemovedFolder(path, self._preparing))
            case "os.rename":
                self._renames(_path(args[0], args[2]), _path(args[1], args[3]))
            case "os.link":
                source, target = _path(args[0], args[2]), _path(args[1], args[3])
                self._changes(source)  # it can be written under its other name from now on
                self._changes(target)
            case "os.symlink":
                self._changes(_path(args[1], args[2]))
            case "os.chmod":
                self._changes_status(_path(args[0], args[2]))
            case "os.chown":
                self._changes_status(_path(args[0], args[3]))
            case "sqlite3.connect":
                self._database(os.fsdecode(args[0]))
            case _:  # _SAVE
                self._changes(_path(args[0]))

    def _changes(self, path: str) -> None:
        if path in self._known or not self._is_the_programs(path):
            return
        if not os.path.lexists(path):
            self._made.add(path)
            if self._keeps_new:
                return
            self._note(journal.Made(path, self._preparing))
        elif not self._backs_up:
            pass
        elif os.path.islink(path):
            self._note(journal.ChangedLink(path, self._preparing, os.readlink(path)))
        elif stat.S_ISREG((status := os.stat(path)).st_mode):
            self._backups += 1
            try:
                backup = journal.back_up(path, self._folder, f"{os.getpid()}-{self._backups}")
            except OSError as error:
                raise NoBackupError(error.errno, f"tracekit cannot back it up ({error.strerror})", path) from None
            # Copying changes when it was last read.
            times = status.st_atime_ns, status.st_mtime_ns
            self._note(journal.Changed(path, self._preparing, backup, journal.digest(backup), times))
        self._known.add(path)

    def _changes_status(self, path: str) -> None:
        path = os.path.realpath(path)
        if self._backs_up and path not in self._made and os.path.exists(path):
            status = os.stat(path)
            mode = stat.S_IMODE(status.st_mode)
            self._note(journal.ChangedStatus(path, self._preparing, mode, status.st_uid, status.st_gid))

    def _database(self, name: str) -> None:
        """Note a database, which SQLite may write outside of Python, with a file or two beside it."""
        if not name or name == ":memory:":
            return
        path = _path(unquote(urlsplit(name).path) if name.startswith("file:") else name)
        if not os.path.exists(path) or os.path.getsize(path) <= _LARGEST_DATABASE_BYTES:
            for file in (path, *(f"{path}{ending}" for ending in ("-journal", "-wal", "-shm"))):
                self._changes(file)

    def _renames(self, source: str, target: str) -> None:
        if not os.path.lexists(source):
            return  # the program is about to be told so
        if not os.path.isdir(target):
            self._changes(target)
        self._note(journal.Renamed(source, self._preparing, target, os.lstat(source).st_ino))
        if source in self._made:
            self._made.add(target)
        self._known -= {source, target}

    def _is_the_programs(self, path: str) -> bool:
        return not path.startswith(self._spared) and not any(part in path for part in _NOT_THE_PROGRAMS)

    def _note(self, entry: journal.Entry) -> None:
        if self._is_the_programs(entry.path):
            self._write(entry)

    def _write(self, entry: journal.Entry | journal.Unknown) -> None:
        line = journal.encoded(entry)
        try:
            written = os.write(self._out, line)
            if self._backs_up and not isinstance(entry, journal.Made | journal.MadeFolder | journal.Read):
                os.fsync(self._out)
        except OSError as error:
            raise NoBackupError(error.errno, f"tracekit cannot write its journal ({error.strerror})") from None
        if written < len(line):
            raise NoBackupError(errno.ENOSPC, "tracekit cannot write its journal (the disk is full)")


def _path(target: Any, folder: Any = -1) -> str:
    """The absolute path, whatever the given one is relative to; that of an open file, if it is one."""
    path = os.readlink(f"/proc/self/fd/{target}") if isinstance(target, int) else os.fsdecode(target)
    if isinstance(folder, int) and folder >= 0 and not os.path.isabs(path):
        path = os.path.join(os.readlink(f"/proc/self/fd/{folder}"), path)
    # Links in the folder's path are followed, but not a link at the end: it is what is removed or renamed.
    head, tail = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(head), tail)
