"""Begins the first passes of a capture: as forks of a process that has imported what all of them import, where it can
be forked.

Starting Python, importing torch and what the program imports takes longer than most passes do; the process does it
while the program is inspected. Later passes, whose times are compared, are never its forks: these share where libraries
lie in memory, and would be more alike than two captures are.
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

# What is read only where it is needed, or that passes need not agree on; a fork with any other variable that differs
# would not be what a new process is.
_READ_LATER = {process.MARK, "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "TMPDIR", "KINETO_LOG_LEVEL"}


class FirstPasses:
    """How they begin. The process may still be importing; `end` ends it."""

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
