"""Folders for files that are no output: for unfinished work, removed when it ends or, if the process was killed, by the
next process; and for what must outlive a capture and a reboot, such as locks of folders and journals with backups.
"""

import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tracekit.errors.asking import NoFolderError

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_YOUNG = 60.0  # seconds: a younger folder without a lock is just being made


@contextmanager
def workspace(home: Path) -> Iterator[Path]:
    """An empty folder in `home`, named after this process. Raises OSError if none can be made.

    What killed processes left in `home` is removed first.
    """
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    remove_abandoned(home)
    folder = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=home))
    lock = None
    try:
        lock = _locked(folder)
        yield folder
    finally:
        remove(folder)
        if lock is not None:
            os.close(lock)


@contextmanager
def workspace_anywhere(home: Path) -> Iterator[Path | None]:
    """An empty folder in `home`, or among the system's temporary files; None if neither can be written."""
    places: tuple[Callable[[], Path], ...] = (lambda: home, lambda: temporary_home("tracekit"))
    with ExitStack() as stack:
        for place in places:
            with suppress(OSError, NoFolderError):
                folder = stack.enter_context(workspace(place()))
                break
        else:
            folder = None
        yield folder


def temporary_home(name: str) -> Path:
    """The folder for this user's workspaces of that kind among the system's temporary files, which is made if need be.

    Raises NoFolderError if it cannot be made, or if others can write into it.
    """
    user = str(os.getuid()) if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    try:
        folder = Path(tempfile.gettempdir()) / f"{name}-{user}"
    except FileNotFoundError:
        raise NoFolderError("TMPDIR") from None
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        raise NoFolderError("TMPDIR", folder) from None
    # Anybody can make a folder of that name there first, and then replace what is put into it.
    if not is_ours(status) or status.st_mode & _OTHERS_WRITE or not stat.S_ISDIR(status.st_mode):
        raise NoFolderError("TMPDIR", folder)
    return folder


def is_ours(status: os.stat_result) -> bool:
    """Whether a file belongs to this user, so that nobody else but root can have made it; True where systems have no
    such owners."""
    return not hasattr(os, "getuid") or status.st_uid == os.getuid()


def state_folder(name: str) -> Path:
    """The user's folder for state of that kind, which is made if need be; among temporary files if there is no home.

    Raises NoFolderError if nothing can be written in either place.
    """
    usual = "~/Library/Application Support" if sys.platform == "darwin" else "~/.local/state"
    home = Path(os.environ.get("XDG_STATE_HOME") or os.path.expanduser(usual), "tracekit")
    # Where no temporary folder can be written, asking for it fails.
    parents: tuple[Callable[[], Path], ...] = (lambda: home, lambda: temporary_home("tracekit-state"))
    for parent in parents:
        with suppress(OSError, NoFolderError):
            folder = parent() / name
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                return folder
    raise NoFolderError("XDG_STATE_HOME", home)


def remove_abandoned(home: Path) -> None:
    """Remove the folders of processes that no longer run.

    Only one process does this at a time, and the next one waits.
    """
    with suppress(OSError), _alone(home):
        for folder in [*home.iterdir()]:
            with suppress(OSError):  # its owner may remove it at this moment
                if _abandoned(folder):
                    remove(folder)


def remove(folder: Path) -> None:
    """Remove the folder as far as possible, with folders in it that cannot even be listed."""

    def retry(_: Callable[..., object], path: str, __: object) -> None:
        with suppress(OSError):
            if not os.path.islink(path):
                os.chmod(path, 0o700)
            os.rmdir(path)  # what an overlay leaves is empty

    shutil.rmtree(folder, onerror=retry)
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    """A context that only one process at a time enters for this folder, if the system can lock folders."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    lock = os.open(home, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _locked(folder: Path) -> int:
    """A file that stays locked until this process ends, however it ends; no other process sees it unlocked."""
    lock = os.open(folder / "lock.new", os.O_CREAT | os.O_RDWR | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        import fcntl

        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        pass  # the system or the disk has no locks: `_abandoned` goes by the age, or says no
    (folder / "lock.new").rename(folder / "lock")
    return lock


def _abandoned(folder: Path) -> bool:
    try:
        age = time.time() - folder.stat().st_mtime
        lock = os.open(folder / "lock", os.O_RDWR)
    except FileNotFoundError:
        return folder.is_dir() and age > _YOUNG
    except OSError:
        return False
    try:
        import fcntl

        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:
        return age > 24 * 3600
    except OSError:
        return False
    finally:
        os.close(lock)
    return True
