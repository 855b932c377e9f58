"""Provides the trace of the rank that is opened here; if only a worker has it, it is fetched from there."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tracekit.errors import UnreadableFileError
from tracekit.fleet.readers import Readers
from tracekit.profile import Capture, Profile
from tracekit.trace.reading.inputs import is_address
from tracekit.trace.storing import cache
from tracekit.workspace import workspace_anywhere


@contextmanager
def fetched(path: Path, readers: Readers) -> Iterator[Path]:
    """The path if its file is here, else that of a copy with the same name. Raises TracekitError."""
    if _is_here(path):
        yield path
        return
    with workspace_anywhere(cache.home() / "work") as folder:
        if folder is None:
            raise UnreadableFileError(path, "there is nowhere to store it while it is read")
        copy = folder / path.name
        try:
            with copy.open("wb") as out:
                for piece in readers.pieces(path):
                    out.write(piece)
        except OSError as error:
            raise UnreadableFileError(path, error.strerror or str(error)) from None
        yield copy


def _is_here(path: Path) -> bool:
    return is_address(path) or os.path.exists(path)


def named_after(profile: Profile, path: Path) -> Profile:
    """The members that were read from a copy, with the path of the original."""
    return replace(profile, captures=tuple(_named_after(each, path) for each in profile.captures))


def _named_after(capture: Capture, path: Path) -> Capture:
    if capture.attribution is None or capture.path == path:
        return capture
    trace = replace(capture.attribution.trace, path=path)
    return replace(capture, path=path, attribution=replace(capture.attribution, trace=trace))
