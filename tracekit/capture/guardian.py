"""Undoes what passes without a view wrote, if their capture is killed: at once, not when somebody captures again.

A guardian is a small process in a session of its own. It notes how the files are that the passes change, and sees by
the end of its standard input that the capture has ended. Where the capture was killed and the guardian with it, the
journal remains: every verb says so, and `tracekit restore` deals with it.
"""

import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tracekit.capture import journal
from tracekit.capture.undo import undo
from tracekit.errors.asking import NoFolderError
from tracekit.errors.capturing import NoLocksError

_NOTED_EVERY_S = 0.2
_MOST_S = 30.0  # for the processes of the passes to be gone
_DONE = b"."


@contextmanager
def guarded_folder(scratch: Path) -> Iterator[Path]:
    """A folder for the journal of passes without a view, with a guardian; `scratch` is theirs.

    The folder is removed at the end, unless something in it is still needed. Raises NoLocksError where no folder can
    be locked: another process could not tell whether this capture still runs.
    """
    folder = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=journal.home()))
    try:
        lock = _locked(folder)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise NoLocksError(folder.parent, error.strerror or str(error)) from None
    except ImportError:
        shutil.rmtree(folder, ignore_errors=True)
        raise NoLocksError(folder.parent, "this system has none") from None
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
    with suppress(OSError, NoFolderError):
        journals = [folder for folder in sorted(journal.home().iterdir()) if (folder / journal.JOURNAL).exists()]
        return [folder for folder in journals if _is_dead(folder)]
    return []


@contextmanager
def exclusive_claim(folder: Path) -> Iterator[bool]:
    """A context in which no other process deals with that journal; False if one does already."""
    try:
        lock = _locked(folder)
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
    if undo(folder, journal.recorded_states(folder)).is_whole:
        shutil.rmtree(folder, ignore_errors=True)


def processes_with(*settings: str) -> Iterator[int]:
    """The processes that were started with one of these in their environment, `NAME=value` and a NUL; only on Linux."""
    marks = [setting.encode() for setting in settings]
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if any(mark in environ.read_bytes() for mark in marks):
                yield int(environ.parent.name)


def _is_dead(folder: Path) -> bool:
    with exclusive_claim(folder) as alone:
        return alone


def _locked(folder: Path) -> int:
    """A file that stays locked until all who have it open end. Raises OSError if it is locked, or cannot be."""
    import fcntl

    lock = os.open(folder / journal.LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise
    return lock
