"""Which of the user's files changed meanwhile, whoever changed them? Told by their sizes and times of change.

A journal of what Python does cannot know what libraries in C write by themselves, or programs that a script starts.
"""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tracekit.capture.job import Job

_MOST_FILES = 10_000
_MOST_SECONDS = 0.5  # on a disk across a network
_NOT_LOOKED_AT = {"__pycache__", "node_modules"}  # nor into hidden folders
_State = tuple[int, int]  # size in bytes, last change in unix ns


class FolderState:
    """The files of some folders, as they were when it was made: those nearest to the top, where there are many."""

    def __init__(self, folders: list[str], spared: list[str]) -> None:
        self._folders, self._spared = folders, {os.path.realpath(each) for each in spared}
        self._ends = time.monotonic() + _MOST_SECONDS
        self._files: dict[str, _State] = {}
        self._is_whole = True
        for path, state in self._walk():
            if len(self._files) == _MOST_FILES or time.monotonic() > self._ends:
                self._is_whole = False
                break
            self._files[path] = state

    def changed(self) -> list[str]:
        """Those that have another content now, or are gone; and new ones, where all had been looked at."""
        now = {path: _state(path) for path in self._files}
        other = [path for path, state in self._files.items() if now[path] != state]
        new = (path for path, _ in self._walk() if path not in self._files) if self._is_whole else iter(())
        return sorted([*other, *new])

    def _walk(self) -> Iterator[tuple[str, _State]]:
        ours = _outputs()
        waiting, seen = [os.path.realpath(each) for each in self._folders], set(self._spared)
        for folder in waiting:  # it grows meanwhile: the nearest come first
            if folder in seen:
                continue
            seen.add(folder)
            try:
                entries = [*os.scandir(folder)]
            except OSError:
                continue
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if not entry.name.startswith(".") and entry.name not in _NOT_LOOKED_AT:
                        waiting.append(entry.path)
                elif (state := _state(entry.path)) is not None and entry.inode() not in ours:
                    yield entry.path, state


def before(job: Job) -> FolderState:
    """The folders that a script is likely to write to: the current one, and its own."""
    if not job.script or job.in_place:
        return FolderState([], [])
    beside_it = [] if job.module else [os.path.dirname(os.path.realpath(job.recipe))]
    return FolderState([str(Path.cwd()), *beside_it], [job.folder])


def _outputs() -> set[int]:
    """The files, by inode, that what the capture itself says is written to."""
    numbers = set()
    for descriptor in (1, 2):
        with suppress(OSError):
            numbers.add(os.fstat(descriptor).st_ino)
    return numbers


def _state(path: str) -> _State | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns
