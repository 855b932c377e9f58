"""Which of the user's files changed meanwhile, whatever changed them? Judged by their sizes and modification times.

A journal of what Python does misses what C libraries and programs started by a script write.
"""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tracekit.capture.job import Job

_MOST_FILES = 10_000
_MOST_SECONDS = 0.5  # on a slow network disk
_NOT_LOOKED_AT = {"__pycache__", "node_modules"}  # nor into hidden folders
_State = tuple[int, int]  # size in bytes, last change in unix ns


class FolderState:
    """The files of some folders at the time of its creation; if there are many, those nearest the top."""

    def __init__(self, folders: list[str], spared: list[str]) -> None:
        self._folders, self._spared = folders, {os.path.realpath(folder) for folder in spared}
        self._ends = time.monotonic() + _MOST_SECONDS
        self._files: dict[str, _State] = {}
        self._is_whole = True
        for path, state in self._walk():
            if len(self._files) == _MOST_FILES or time.monotonic() > self._ends:
                self._is_whole = False
                break
            self._files[path] = state

    def changed(self) -> list[str]:
        """The files that have changed or are gone, and new ones, if all files had been looked at."""
        now = {path: _state(path) for path in self._files}
        differing = [path for path, state in self._files.items() if now[path] != state]
        new = (path for path, _ in self._walk() if path not in self._files) if self._is_whole else iter(())
        return sorted([*differing, *new])

    def _walk(self) -> Iterator[tuple[str, _State]]:
        output_inodes = _outputs()
        waiting, visited = [os.path.realpath(root) for root in self._folders], set(self._spared)
        for folder in waiting:  # the list grows meanwhile: the nearest folders come first
            if folder in visited:
                continue
            visited.add(folder)
            try:
                entries = [*os.scandir(folder)]
            except OSError:
                continue
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if not entry.name.startswith(".") and entry.name not in _NOT_LOOKED_AT:
                        waiting.append(entry.path)
                elif (state := _state(entry.path)) is not None and entry.inode() not in output_inodes:
                    yield entry.path, state


def before(job: Job) -> FolderState:
    """The folders that a script is likely to write to: the current one, and its own."""
    if not job.is_script or job.in_place or job.viewed:
        return FolderState([], [])
    beside_it = [] if job.module else [os.path.dirname(os.path.realpath(job.program))]
    return FolderState([str(Path.cwd()), *beside_it], [*filter(None, [job.folder])])


def _outputs() -> set[int]:
    """The files, by inode, to which the capture's own output goes."""
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
