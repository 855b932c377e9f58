"""One sweep per folder: a lock that the operating system releases when its holder ends, however it ends."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tracekit.errors import StudyInUseError

_LOCK = ".lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """A context that holds the lock of the folder. Raises StudyInUseError if another sweep holds it."""
    import fcntl

    handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise StudyInUseError(folder) from None
        yield
    finally:
        os.close(handle)
