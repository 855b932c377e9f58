"""Atomic writes: a file is replaced as a whole or not at all."""

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX, _SUFFIX = ".tracekit-", ".part"
_LITTER_SECONDS = 60  # a write takes milliseconds: a part file older than this was left by a killed process


@contextmanager
def replacing(path: Path, durable: bool = False) -> Iterator[Path]:
    """Yields a temporary file beside `path` that replaces it on success. On failure nothing changes.

    A `durable` file has reached the disk when this returns, so that it survives even a crash of the machine. Temporary
    files that killed processes left in the folder are removed first.
    """
    for litter in path.parent.glob(f"{_PREFIX}*{_SUFFIX}"):
        with suppress(OSError):  # another process may remove it first
            if time.time() - litter.stat().st_mtime > _LITTER_SECONDS:
                litter.unlink()
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=_PREFIX, suffix=_SUFFIX)
    os.close(handle)
    part = Path(name)
    try:
        yield part
        mask = os.umask(0)
        os.umask(mask)
        part.chmod(0o666 & ~mask)  # the mode of any new file: mkstemp makes files that only their owner can read
        if durable:
            _sync(part)
        os.replace(part, path)
        if durable and os.name == "posix":  # other systems cannot open a folder
            _sync(path.parent)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def filling(folder: Path) -> Iterator[Path]:
    """Yields an empty folder inside `folder`; on success its files move up, replacing those of the same name.

    `folder` and its parents are created. On failure nothing changes, and folders that were created are removed.
    """
    missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=_PREFIX) as name:
            yield Path(name)
            for file in sorted(entry for entry in Path(name).rglob("*") if entry.is_file()):
                target = folder / file.relative_to(name)
                target.parent.mkdir(parents=True, exist_ok=True)
                os.replace(file, target)
    except BaseException:
        for parent in missing:
            with suppress(OSError):
                parent.rmdir()
        raise


def put(path: Path, content: bytes) -> None:
    """Write a small file that another process of ours reads: it finds the whole file or none.

    For folders that no other process writes to: temporary files of killed processes are not removed.
    """
    part = path.with_name(f"{path.name}.{os.getpid()}{_SUFFIX}")
    try:
        part.write_bytes(content)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def reason(error: OSError) -> str:
    """The operating system's own message for the error, without the text that Arrow wraps around it."""
    return os.strerror(error.errno) if error.errno else str(error)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
