"""A process that has imported everything, and is forked for pass after pass, seen from outside.

Starting Python, importing torch and probing the compiler takes most of the time of a pass. A recipe's process has
loaded the recipe, too, and set it up where computing starts no threads; that of a script has only done imports.
"""

import os
import select
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import msgspec

from tracekit.base import interruption
from tracekit.capture import process
from tracekit.capture.file_view import VIEW, FileOverlay, view
from tracekit.capture.job import BEGINNING, FORK, Beginning, Job
from tracekit.capture.live import NoTurnsError, Pipes
from tracekit.capture.process import Separate


class Parent:
    """The process. `shared` is its view, in which its forks are, too; None if each has one of its own."""

    def __init__(self, job: Job, folder: Path, log: Path, timeout: float, shared: FileOverlay | None) -> None:
        self.folder, self.shared = folder, shared
        self._job, self._log, self._timeout = job, log, timeout
        self._can_fork = False  # as far as is known
        self._forks = 0  # so far

    def start(self, stack: ExitStack) -> None:
        """Start it; it is killed, with all of its forks, at the end of the context."""
        job = msgspec.structs.replace(self._job, began_ns=time.time_ns(), scratch=str(self.folder))
        (self.folder / "job.json").write_bytes(msgspec.json.encode(job))
        self._pipes = Pipes(self.folder, stack)
        with interruption.deferred():
            self._process = Separate(job, self.folder, self._log)
            stack.callback(self._process.kill)

    def wait(self) -> bool:
        """Wait until it can be forked; False if it cannot."""
        if not self._can_fork:
            self._can_fork = self._pipes.answer(self._process, time.monotonic() + self._timeout) is not None
        return self._can_fork and self._process.poll() is None

    def why_not(self) -> str:
        """Why it cannot be forked, once it has ended."""
        exit_code = self._process.poll()
        if exit_code is None:
            return f"it was not ready within {self._timeout:g} s"
        result, _ = process.read_result(self.folder, self._log, exit_code, time.time())
        return result.no_forks or result.error or "it has ended"

    def folder_of(self, number: int) -> Path:
        """The scratch folder for a fork, in that round."""
        folder = self.folder / f"round-{number}"
        folder.mkdir(exist_ok=True)
        return folder

    def forks(self, job: Job, folder: Path, log: Path, environment: dict[str, str] | None = None) -> "Fork":
        """A fork of it that does the job that is in this folder; without an environment, it has its parent's."""
        self._forks += 1
        (folder / BEGINNING).write_bytes(msgspec.json.encode(Beginning(str(log), environment)))
        link = self.folder / f"{FORK}{self._forks}"
        link.unlink(missing_ok=True)  # of an earlier process
        link.symlink_to(folder)
        self._pipes.tell(self._forks)
        pid = self._pipes.answer(self._process, time.monotonic() + self._timeout)
        if pid is None:
            raise NoTurnsError("the process that was to be forked has ended")
        return Fork(self, pid)

    def exit_code(self, pid: int) -> int:
        """How that fork, which has ended, did end."""
        self._pipes.tell(-pid)
        status = self._pipes.answer(self._process, time.monotonic() + self._timeout)
        return -signal.SIGKILL if status is None else os.waitstatus_to_exitcode(status)


class Fork:
    """A fork, which is no child of the capture. It is in a session of its own."""

    def __init__(self, parent: Parent, pid: int) -> None:
        self._parent, self._pid = parent, pid
        self._exit_code: int | None = None
        try:
            self._handle = os.pidfd_open(pid)
        except ProcessLookupError:  # it has ended, and its parent has waited for it
            self._handle = -1
            self._exit_code = -signal.SIGKILL

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""
        if self._exit_code is None and select.select([self._handle], [], [], 0)[0]:
            self._exit_code = self._parent.exit_code(self._pid)
            os.close(self._handle)
        return self._exit_code

    def kill(self) -> None:
        """Kill it, and what it started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._pid, signal.SIGKILL)
        if self.poll() is None:  # it may not have had its session yet
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)
            select.select([self._handle], [], [])
            self.poll()


@contextmanager
def parent_of(job: Job, folder: Path, log: Path, timeout: float) -> Iterator[Parent]:
    """The process of these passes. That of a recipe is in a view; a script runs only in its forks, so its own process
    needs none, and each fork gets another."""
    with ExitStack() as stack:
        (folder / VIEW).unlink(missing_ok=True)
        shared = None
        if not job.is_script and job.stage != "import":
            shared = stack.enter_context(view(job, folder))
            if not shared.exists:
                raise NoTurnsError(f"there is no copy-on-write view of your files ({shared.why})")
            job = msgspec.structs.replace(job, viewed=True, journal=str(folder), temporary=shared.temporary)
        parent = Parent(job, folder, log, timeout, shared)
        parent.start(stack)
        yield parent
