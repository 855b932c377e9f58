"""What protects the user's folder and files while a capture runs, and does so however it ends.

There is one capture a folder at a time, by a lock that the operating system releases when its holder ends.

What passes without a view wrote is undone if their capture is killed: at once, not when somebody captures again. A
guardian is a small process in a session of its own. It notes how the files are that the passes change, and sees by
the end of its standard input that the capture has ended. Where the capture was killed and the guardian with it, the
journal remains: every verb says so, and `tracekit restore` deals with it.
"""

import hashlib
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tracekit.base.workspace import state_folder
from tracekit.capture import journal
from tracekit.errors.asking import NoFolderError
from tracekit.errors.capturing import FolderInUseError, NoLocksError

_NOTED_EVERY_S = 0.2
_MOST_S = 30.0  # for the processes of the passes to be gone
_DONE = b"."
_locks: dict[str, tuple[int, int | None]] = {}  # how often by this process, as the cells of a sweep do, and the file
_guard = threading.Lock()


@contextmanager
def folder_lock() -> Iterator[None]:
    """A context that holds the lock of the current folder. Raises FolderInUseError if another process holds it."""
    folder = os.path.realpath(Path.cwd())
    with _guard:
        count, handle = _locks.get(folder) or (0, _locked_folder(folder))
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
                    _lock_file(folder).unlink()
                os.close(handle)


def _locked_folder(folder: str) -> int | None:
    """The file that is its lock; None where there are no locks, or no place for them: nobody knows of others."""
    while True:
        try:
            handle = _locked(_lock_file(folder))
        except BlockingIOError:
            try:
                owner = _lock_file(folder).read_text(errors="replace").split() or ["unknown"]
            except FileNotFoundError:
                continue  # its holder has just removed it
            elsewhere = f" on {owner[1]}" if len(owner) > 1 and owner[1] != socket.gethostname() else ""
            raise FolderInUseError(folder, f"{owner[0]}{elsewhere}") from None
        except (OSError, ImportError, NoFolderError):
            return None
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), os.stat(_lock_file(folder))):
                os.ftruncate(handle, 0)
                os.pwrite(handle, f"{os.getpid()} {socket.gethostname()}\n".encode(), 0)
                return handle
        os.close(handle)  # its holder has just removed it


def _lock_file(folder: str) -> Path:
    return state_folder("locks") / f"{hashlib.sha256(os.fsencode(folder)).hexdigest()[:32]}.lock"


@contextmanager
def guarded_folder(scratch: Path) -> Iterator[Path]:
    """A folder for the journal of passes without a view, with a guardian; `scratch` is theirs.

    The folder is removed at the end, unless something in it is still needed. Raises NoLocksError where no folder can
    be locked: another process could not tell whether this capture still runs.
    """
    folder = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=journal.home()))
    try:
        lock = _locked(folder / journal.LOCK)
    except (OSError, ImportError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        why = (error.strerror or str(error)) if isinstance(error, OSError) else "this system has none"
        raise NoLocksError(folder.parent, why) from None
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r}); import {__name__} as it; it.main()"
    guardian = subprocess.Popen(
        [sys.executable, "-I", "-c", code, str(folder), str(scratch)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        pass_fds=[lock],  # so the folder stays locked while either of the two is there
    )
    assert guardian.stdin is not None
    try:
        yield folder
    finally:
        with suppress(OSError):
            guardian.stdin.write(_DONE)
            guardian.stdin.close()
        guardian.wait()
        if (folder / journal.JOURNAL).exists():  # something could not be put back
            journal.record_states(folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def abandoned() -> list[Path]:
    """The journals of captures that no longer run, nor their guardians: there is something to restore."""
    dead_folders = []
    with suppress(OSError, NoFolderError):
        for folder in sorted(journal.home().iterdir()):
            if (folder / journal.JOURNAL).exists():
                with exclusive_claim(folder) as alone:
                    dead_folders += [folder] * alone
    return dead_folders


@contextmanager
def exclusive_claim(folder: Path) -> Iterator[bool]:
    """A context in which no other process deals with that journal; False if one does already."""
    try:
        lock = _locked(folder / journal.LOCK)
    except (OSError, ImportError):  # it may be at work, or there is no way to know
        yield False
        return
    try:
        yield True
    finally:
        os.close(lock)


def main() -> None:
    """Guard the journal in the folder of the first argument, of the passes whose scratch folder is the second."""
    folder, scratch = Path(sys.argv[1]), sys.argv[2]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    size = 0
    while not select.select([0], [], [], _NOTED_EVERY_S)[0]:
        with suppress(OSError):
            file = folder / journal.JOURNAL
            if size or (file.exists() and (size := file.stat().st_size)):
                journal.record_states(folder)
    if os.read(0, 1) == _DONE:
        return
    ends = time.monotonic() + _MOST_S
    # The passes and what they started have the folder for temporary files that they were given.
    of_passes = (f"TMPDIR={scratch}\0", f"TMPDIR={scratch}/")
    while (survivors := [*journal.processes(folder), *processes_with(*of_passes)]) and time.monotonic() < ends:
        for process in survivors:
            with suppress(OSError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.02)
    journal.record_states(folder)
    if journal.undo(folder, journal.recorded_states(folder)).is_whole:
        shutil.rmtree(folder, ignore_errors=True)


def processes_with(*settings: str) -> Iterator[int]:
    """The processes that were started with one of these in their environment, `NAME=value` and a NUL; only on Linux."""
    marks = [setting.encode() for setting in settings]
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if any(mark in environ.read_bytes() for mark in marks):
                yield int(environ.parent.name)


def _locked(file: Path) -> int:
    """The file, locked until all who have it open end. Raises BlockingIOError if it is locked, or OSError if it cannot
    be, or ImportError where a system has no such locks."""
    import fcntl

    lock = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise
    return lock
