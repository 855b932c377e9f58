"""A folder for unfinished work. It goes when the work ends, and if the process is killed, when the next one comes."""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_YOUNG = 60.0  # seconds in which a folder without a lock is one that is just being made


@contextmanager
def workspace(home: Path) -> Iterator[Path | None]:
    """An empty folder in `home`, or among the system's temporary files; None where neither can be written."""
    folder, lock = _first(home, Path(tempfile.gettempdir()) / f"tracekit-{_user()}")
    try:
        yield folder
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def sweep(home: Path) -> None:
    """Remove what processes left behind that no longer run."""
    with suppress(OSError):
        for folder in home.iterdir():
            if _abandoned(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _first(*homes: Path) -> tuple[Path | None, int | None]:
    for home in homes:
        try:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            sweep(home)
            folder = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=home))
        except OSError:
            continue
        with suppress(OSError):
            return folder, _locked(folder)
        shutil.rmtree(folder, ignore_errors=True)
    return None, None


def _locked(folder: Path) -> int:
    """A file that stays locked for as long as this process lives, however it dies; nobody sees it unlocked."""
    lock = os.open(folder / "lock.new", os.O_CREAT | os.O_RDWR | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        import fcntl

        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:
        pass  # without fcntl, age alone tells
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


def _user() -> str:
    return str(os.getuid()) if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
