"""Where files are put: whole or not at all."""

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
    """A part file beside `path`, which takes its place once it is whole. Where the work fails, nothing changes.

    A `durable` file is on the disk when this returns, so that even a crash of the machine leaves it whole. What killed
    processes left in the folder is swept first.
    """
    _sweep_litter(path.parent)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=_PREFIX, suffix=_SUFFIX)
    os.close(handle)
    part = Path(name)
    try:
        yield part
        mask = os.umask(0)
        os.umask(mask)
        part.chmod(0o666 & ~mask)  # as any new file; temporary ones are for their owner alone
        if durable:
            _sync(part)
        os.replace(part, path)
        if durable and os.name == "posix":  # elsewhere a folder cannot be opened
            _sync(path.parent)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def filling(folder: Path) -> Iterator[Path]:
    """An empty folder inside `folder`, which is made; what is in it at the end moves up, replacing what stood there.

    Where the work fails, nothing changes, and what was made for it goes again.
    """
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=_PREFIX) as name:
            yield Path(name)
            for file in sorted(each for each in Path(name).rglob("*") if each.is_file()):
                target = folder / file.relative_to(name)
                target.parent.mkdir(parents=True, exist_ok=True)
                os.replace(file, target)
    except BaseException:
        for each in missing:
            with suppress(OSError):
                each.rmdir()
        raise


def put(path: Path, content: bytes) -> None:
    """A small file for another process of ours, which finds all of it or none. For folders that are ours alone."""
    part = path.with_name(f"{path.name}.{os.getpid()}{_SUFFIX}")
    try:
        part.write_bytes(content)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def reason(error: OSError) -> str:
    """Why the system refused, in its own words; Arrow wraps them in those of its layers."""
    return os.strerror(error.errno) if error.errno else str(error)


def _sweep_litter(folder: Path) -> None:
    for part in folder.glob(f"{_PREFIX}*{_SUFFIX}"):
        with suppress(OSError):  # another process may sweep, too
            if time.time() - part.stat().st_mtime > _LITTER_SECONDS:
                part.unlink()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
