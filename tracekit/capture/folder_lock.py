"""One capture a folder at a time: a lock that the operating system releases when its holder ends, however it ends."""

import hashlib
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tracekit.base.workspace import state_folder
from tracekit.errors.asking import NoFolderError
from tracekit.errors.capturing import FolderInUseError

_locks: dict[str, tuple[int, int | None]] = {}  # how often by this process, as the cells of a sweep do, and the file
_guard = threading.Lock()


@contextmanager
def folder_lock() -> Iterator[None]:
    """A context that holds the lock of the current folder. Raises FolderInUseError if another process holds it."""
    folder = os.path.realpath(Path.cwd())
    with _guard:
        count, handle = _locks.get(folder) or (0, _locked(folder))
        _locks[folder] = count + 1, handle
    try:
        yield
    finally:
        with _guard:
            count, handle = _locks.pop(folder)
            if count > 1:
                _locks[folder] = count - 1, handle
            elif handle is not None:
                with suppress(OSError):
                    _file(folder).unlink()
                os.close(handle)


def _locked(folder: str) -> int | None:
    try:
        import fcntl
    except ImportError:
        return None  # this system has no such locks
    while True:
        try:
            handle = os.open(_file(folder), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except (OSError, NoFolderError):
            return None  # nothing can be written where locks are: there is no way to know of others
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(handle, 300, 0).decode(errors="replace").split() or ["unknown"]
            os.close(handle)
            elsewhere = f" on {owner[1]}" if len(owner) > 1 and owner[1] != socket.gethostname() else ""
            raise FolderInUseError(folder, f"{owner[0]}{elsewhere}") from None
        except OSError:
            os.close(handle)
            return None  # a file system without locks
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), os.stat(_file(folder))):
                os.ftruncate(handle, 0)
                os.pwrite(handle, f"{os.getpid()} {socket.gethostname()}\n".encode(), 0)
                return handle
        os.close(handle)  # its holder has just removed it


def _file(folder: str) -> Path:
    return state_folder("locks") / f"{hashlib.sha256(os.fsencode(folder)).hexdigest()[:32]}.lock"
