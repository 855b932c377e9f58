"""Where a trace comes from: a file, standard input, a pipe, a folder of traces, a URL. All become local files."""

import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tracekit.errors import NoTraceInsideError, SourceUnavailableError, UnreadableFileError
from tracekit.workspace import workspace_anywhere

STDIN = "-"
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+:/{1,2}", re.IGNORECASE)  # Path makes one slash of two
_TRACE = re.compile(r".*\.(?:json(?:\.gz|\.zst|\.tmp)*|sqlite)", re.IGNORECASE)


def is_address(path: Path) -> bool:
    """Whether it names something on another machine, as s3://bucket/trace.json.gz does."""
    return _ADDRESS.match(str(path)) is not None


@contextmanager
def local(path: Path, home: Path) -> Iterator[Path]:
    """The trace as a regular file; anything else is first copied into one, which can be read twice. Raises
    TracekitError."""
    if str(path) == STDIN:
        with _spooled(path, sys.stdin.buffer, home) as file:
            yield file
    elif is_address(path):
        with _fetched(path) as stream, _spooled(path, stream, home) as file:
            yield file
    elif os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):  # no error for a name too long
        with path.open("rb") as stream, _spooled(path, stream, home) as file:
            yield file
    else:
        yield path


def traces_in(folder: Path) -> list[Path]:
    """The traces of a folder, by name. Raises NoTraceInsideError if it holds none."""
    try:
        traces = sorted(path for path in folder.iterdir() if path.is_file() and _TRACE.fullmatch(path.name))
    except OSError as error:
        raise UnreadableFileError(folder, error.strerror or str(error)) from None
    names = {path.name for path in traces}
    traces = [path for path in traces if not (path.suffix == ".tmp" and path.stem in names)]
    if not traces:
        raise NoTraceInsideError(folder)
    return traces


@contextmanager
def _spooled(path: Path, stream: IO[bytes], home: Path) -> Iterator[Path]:
    with workspace_anywhere(home) as folder:
        if folder is None:
            raise UnreadableFileError(path, "there is nowhere to store it while it is read")
        file = folder / "spooled"
        try:
            with file.open("wb") as target:
                shutil.copyfileobj(stream, target, 1 << 20)
        except OSError as error:
            raise UnreadableFileError(path, error.strerror or str(error)) from None
        yield file


@contextmanager
def _fetched(path: Path) -> Iterator[IO[bytes]]:
    address = re.sub(r":/+", "://", str(path), count=1)
    try:
        import fsspec
    except ImportError:
        raise SourceUnavailableError(address, "that needs fsspec: pip install fsspec") from None
    try:
        with fsspec.open(address, "rb") as stream:
            yield stream
    except (OSError, ValueError, ImportError, RuntimeError) as error:
        raise SourceUnavailableError(address, (str(error) or type(error).__name__).splitlines()[0]) from None
