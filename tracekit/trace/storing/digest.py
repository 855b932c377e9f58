"""The digest of a file's content, which can be begun while this process is busy with something else."""

import hashlib
import os
from collections.abc import Iterable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from threading import Thread

_BLOCK_BYTES = 16 << 20  # large, because after each block a thread waits until the interpreter is free again
_Status = tuple[int, int, int, int]
_begun: dict[Path, tuple[_Status, "Future[str]"]] = {}


def digest_of(path: Path) -> str:
    """128 bits of its SHA-256, in hexadecimal. Raises OSError or ValueError if the file cannot be read."""
    status, digest = _begun.pop(path, (None, None))
    if digest is not None and status == _status(path):
        return digest.result()
    return _digest(path)


def begin(paths: Iterable[Path]) -> None:
    """Work out in a thread what `digest_of` will be asked for. A file that changes before that is read again."""
    ahead: dict[Path, Future[str]] = {}
    for path in paths:
        with suppress(OSError, ValueError):  # raised again when it is asked for
            if path.is_file():
                ahead[path] = Future()
                _begun[path] = _status(path), ahead[path]

    def work() -> None:
        for path, digest in ahead.items():
            try:
                digest.set_result(_digest(path))
            except Exception as error:
                digest.set_exception(error)

    Thread(target=work, daemon=True, name="tracekit-digest").start()


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        block = memoryview(bytearray(min(os.fstat(file.fileno()).st_size, _BLOCK_BYTES)))
        while count := file.readinto(block):
            digest.update(block[:count])
    return digest.hexdigest()[:32]


def _status(path: Path) -> _Status:
    """What changes with the content: a file that was written again at once may have the same size and time."""
    status = os.stat(path)
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
