"""Where files are put: whole or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A part file beside `path`, which takes its place once it is whole. Where the work fails, nothing changes."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".tracekit-")
    os.close(handle)
    part = Path(name)
    try:
        yield part
        mask = os.umask(0)
        os.umask(mask)
        part.chmod(0o666 & ~mask)  # as any new file; temporary ones are for their owner alone
        os.replace(part, path)
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
        with tempfile.TemporaryDirectory(dir=folder, prefix=".tracekit-") as name:
            yield Path(name)
            for file in sorted(Path(name).iterdir()):
                os.replace(file, folder / file.name)
    except BaseException:
        for each in missing:
            with suppress(OSError):
                each.rmdir()
        raise


def reason(error: OSError) -> str:
    """Why the system refused, in its own words; Arrow wraps them in those of its layers."""
    return os.strerror(error.errno) if error.errno else str(error)
