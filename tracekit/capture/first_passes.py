"""Begins the first passes of a capture: as forks of a process that has imported what all of them need, or else as new
processes.

Starting Python and importing torch and what the program imports takes about as long as the rest of a pass; that process
does it once, while the program is inspected. Later passes, whose times are compared, are never its forks: forks of one
process share where libraries lie in memory, so they would be more alike than the passes of two captures are.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tracekit.capture import process
from tracekit.capture.job import Job
from tracekit.capture.live import NoTurnsError
from tracekit.capture.options import Options
from tracekit.capture.parents import Parent, parent_of
from tracekit.capture.process import Running, Separate, Start

# Variables that may differ from those of the process that is forked: they are read only when they are needed. Any other
# one might have been read while it started, so a fork would not behave as a new process does.
_READ_LATER = {process.MARK, "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "TMPDIR", "KINETO_LOG_LEVEL"}


class FirstPasses:
    """The process that they are forked from, which may still be importing. `end` ends it."""

    def __init__(self, parent: Parent | None, environment: dict[str, str], end: Callable[[], None]) -> None:
        self._parent, self._environment, self._end = parent, environment, end

    def begin(self, device: str) -> Start:
        """How the passes on that device begin. No fork can use a GPU that its parent has touched, and importing some
        libraries does that."""
        if device == "cpu" and self._parent is not None and self._parent.wait():
            return self._fork
        self._end()  # nothing is to run beside what is timed
        return Separate

    def _fork(self, job: Job, folder: Path, log: Path) -> Running:
        environment = process.environment(job, folder)
        differing = {name for name, _ in self._environment.items() ^ environment.items()}
        if self._parent is None or not self._parent.wait() or differing - _READ_LATER:
            return Separate(job, folder, log)
        try:
            return self._parent.forks(job, folder, log, environment)
        except NoTurnsError:  # it has died
            return Separate(job, folder, log)


def can_fork(options: Options) -> bool:
    """Whether passes can be forks, as far as is known before anything has run."""
    return hasattr(os, "pidfd_open") and not options.python and options.ranks == 1 and options.device in {"auto", "cpu"}


@contextmanager
def first_passes(options: Options, threads: int) -> Iterator[FirstPasses]:
    """While the context lasts, such passes can begin, with so many threads; 0 is as many as libraries choose."""
    if not can_fork(options):
        yield FirstPasses(None, {}, lambda: None)
        return
    with ExitStack() as stack:
        scratch = stack.enter_context(process.scratch())
        job = Job(stage="import", program=str(options.program), module=options.module, threads=threads)
        parent = stack.enter_context(parent_of(job, scratch, scratch / "import.log", options.timeout))
        yield FirstPasses(parent, process.environment(job, scratch), stack.close)
