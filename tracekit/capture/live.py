"""Passes whose processes are forked, or take turns, seen from outside.

Starting Python, importing torch and probing the compiler takes most of the time of a pass. So a process does that once,
and is forked for pass after pass: a parent. That of a recipe has loaded the recipe, too, and set it up where computing
starts no threads; that of a script has only done imports.

The first passes of a capture are forks where that is possible: of a process that imports what all of them need while
the program is inspected. Later passes, whose times are compared, are never its forks: forks of one process share where
libraries lie in memory, so they would be more alike than the passes of two captures are.

A live pass waits at a step's boundary, takes a turn, and ends. Its process was started for it, or is a fork.
"""

import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import msgspec

from tracekit.base import interruption
from tracekit.capture import process
from tracekit.capture.file_view import VIEW, FileOverlay, in_view, view
from tracekit.capture.job import (
    BEGINNING,
    FORK,
    MESSAGE_BYTES,
    RESULT,
    SO_FAR,
    TURNS,
    WAITING,
    Beginning,
    Job,
    PassResult,
    message,
    rank_jobs,
)
from tracekit.capture.journal import JOURNAL
from tracekit.capture.options import Options
from tracekit.capture.process import Running, Separate, Start

_LOOKED_EVERY_S = 0.2
# Variables that may differ from those of the process that is forked: they are read only when they are needed. Any other
# one might have been read while it started, so a fork would not behave as a new process does.
_READ_LATER = {process.MARK, "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "TMPDIR", "KINETO_LOG_LEVEL"}


class NoTurnsError(Exception):
    """The processes of these variants cannot take turns, and why."""


class Pipes:
    """The end of the capture: a process is told how long its turn is, and says that it waits, and for what."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        for name in (SO_FAR, RESULT, TURNS, WAITING):
            (folder / name).unlink(missing_ok=True)
        # With both ends open here, opening never waits for the other side; the end of the process shows otherwise.
        pipes = []
        for name in (TURNS, WAITING):
            os.mkfifo(folder / name)
            pipes.append(os.open(folder / name, os.O_RDWR | os.O_CLOEXEC))
            stack.callback(os.close, pipes[-1])
        self._turns, self._waiting = pipes

    def tell(self, number: int) -> None:
        """Tell the process a number."""
        os.write(self._turns, message(number))

    def has_answer(self, within_s: float) -> bool:
        """Whether the process has said a number that was not taken yet, by then."""
        return bool(select.select([self._waiting], [], [], within_s)[0])

    def answer(self, running: Running, ends: float) -> int | None:
        """The number that it says next; None once it has ended, or has not answered until `ends` (monotonic s)."""
        while True:
            if self.has_answer(0):
                return int(os.read(self._waiting, MESSAGE_BYTES))
            if running.poll() is not None or time.monotonic() > ends:
                return None
            interruption.check()
            self.has_answer(_LOOKED_EVERY_S)


class Parent:
    """A process that has imported everything, and is forked. `shared` is its view, in which its forks are, too; None if
    each has one of its own. It is killed, with all of its forks, at the end of the stack."""

    def __init__(
        self, job: Job, folder: Path, log: Path, timeout: float, *, shared: FileOverlay | None, stack: ExitStack
    ) -> None:
        self.folder, self.shared = folder, shared
        self._log, self._timeout = log, timeout
        self._can_fork = False  # as far as is known
        self._forks = 0  # so far
        job = msgspec.structs.replace(job, began_ns=time.time_ns(), scratch=str(folder))
        (folder / "job.json").write_bytes(msgspec.json.encode(job))
        self._pipes = Pipes(folder, stack)
        with interruption.deferred():
            self._process = Separate(job, folder, log)
            stack.callback(self._process.kill)

    def wait(self) -> bool:
        """Wait until it can be forked; False if it cannot."""
        if not self._can_fork:
            self._can_fork = self._answer() is not None
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
        pid = self._answer()
        if pid is None:
            raise NoTurnsError("the process that was to be forked has ended")
        return Fork(self, pid)

    def exit_code(self, pid: int) -> int:
        """How that fork, which has ended, did end."""
        self._pipes.tell(-pid)
        status = self._answer()
        return -signal.SIGKILL if status is None else os.waitstatus_to_exitcode(status)

    def _answer(self) -> int | None:
        return self._pipes.answer(self._process, time.monotonic() + self._timeout)


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
        yield Parent(job, folder, log, timeout, shared=shared, stack=stack)


class FirstPasses:
    """The process that they are forked from, which may still be importing. `end` ends it."""

    def __init__(self, parent: Parent | None, environment: dict[str, str], end: Callable[[], None]) -> None:
        self._parent, self._environment, self._end = parent, environment, end

    def begin(self, device: str) -> Start:
        """How the passes on that device begin. No fork can use a GPU that its parent has touched, and importing some
        libraries does that."""
        parent = self._parent
        if device != "cpu" or parent is None or not parent.wait():
            self._end()  # nothing is to run beside what is timed
            return Separate

        def fork(job: Job, folder: Path, log: Path) -> Running:
            environment = process.environment(job, folder)
            differing = {name for name, _ in self._environment.items() ^ environment.items()}
            if parent.wait() and not differing - _READ_LATER:
                with suppress(NoTurnsError):  # it has died
                    return parent.forks(job, folder, log, environment)
            return Separate(job, folder, log)

        return fork


def can_fork(options: Options) -> bool:
    """Whether passes can be forks, as far as is known before anything has run."""
    return hasattr(os, "pidfd_open") and not options.python and options.ranks == 1 and options.device in {"auto", "cpu"}


@contextmanager
def first_passes(options: Options, threads: int) -> Iterator[FirstPasses]:
    """While the context lasts, first passes can begin, with so many threads; 0 is as many as libraries choose."""
    if not can_fork(options):
        yield FirstPasses(None, {}, lambda: None)
        return
    with ExitStack() as stack:
        scratch = stack.enter_context(process.scratch())
        job = Job(stage="import", program=str(options.program), module=options.module, threads=threads)
        parent = stack.enter_context(parent_of(job, scratch, scratch / "import.log", options.timeout))
        yield FirstPasses(parent, process.environment(job, scratch), stack.close)


class LivePass:
    """One pass, which is begun; it is killed at the end of the stack, if it has not ended."""

    def __init__(
        self, job: Job, files: FileOverlay, folder: Path, log: Path, timeout: float, *, begin: Start, stack: ExitStack
    ) -> None:
        self.job = job
        self._files, self._folder, self._log, self._timeout = files, folder, log, timeout
        self._timed_out = False
        self._exit_code: int | None = None
        self.is_waiting = False  # for its turn
        ((job, _),) = rank_jobs(job, folder)
        job = msgspec.structs.replace(job, began_ns=time.time_ns())
        (folder / "job.json").write_bytes(msgspec.json.encode(job))
        self._pipes, self._ends = Pipes(folder, stack), time.monotonic() + timeout
        with interruption.deferred():
            self._running = begin(job, folder, log)
            stack.callback(self._running.kill)

    def wait(self) -> None:
        """Wait until it waits for its turn, or has ended; returns at once if so. One that takes too long is killed."""
        if self.is_waiting or self._exit_code is not None:
            return
        answer = self._pipes.answer(self._running, self._ends)
        self._exit_code = self._running.poll()
        if answer is not None:
            self.is_waiting = True
        elif self._exit_code is None:
            self._timed_out = True
            self._running.kill()
            self._exit_code = self._running.poll() or -signal.SIGKILL

    def is_ready(self, within_s: float) -> bool:
        """Whether it waits for its turn, or has ended, by then."""
        ready = self.is_waiting or self._exit_code is not None
        if not ready and (
            self._pipes.has_answer(within_s) or self._running.poll() is not None or time.monotonic() > self._ends
        ):
            self.wait()
        return self.is_waiting or self._exit_code is not None

    def take_turn(self, turn_ns: int) -> None:
        """Let it take steps for about that long, and wait until it waits again, or has ended."""
        if self.is_waiting:
            self.is_waiting, self._ends = False, time.monotonic() + self._timeout
            self._pipes.tell(turn_ns)
            self.wait()

    def end(self, traced: bool) -> None:
        """Let it take its short trace, if it is to, and end, and wait until it has."""
        self.take_turn(0 if traced else -1)

    def result(self) -> PassResult:
        """What it has measured so far, with its failure if it failed. It can be read while it runs, too."""
        if self._exit_code is None:  # it was interrupted, and did not fail
            so_far = process.with_so_far(PassResult(outcome="interrupted"), self._folder / SO_FAR)
            return msgspec.structs.replace(so_far, outcome="ok")
        result, _ = process.read_result(self._folder, self._log, self._exit_code, time.time())
        if self._timed_out:
            result = PassResult(outcome="timeout", error=f"did not end a step within {self._timeout:g} s")
        result = process.with_so_far(result, self._folder / SO_FAR)
        return msgspec.structs.replace(result, written=in_view(self._files, self.job))


@contextmanager
def live_pass(job: Job, folder: Path, log: Path, timeout: float, parent: Parent | None = None) -> Iterator[LivePass]:
    """The pass in a view of its own, or in that of its parent. Raises NoTurnsError where there is none: the passes of
    all variants would write to the same files."""
    with ExitStack() as stack:
        also = [str(parent.folder)] if parent else []
        files = (parent and parent.shared) or stack.enter_context(view(job, folder, also_through=also))
        if not files.exists:
            raise NoTurnsError(f"there is no copy-on-write view of your files ({files.why})")
        job = msgspec.structs.replace(
            job, scratch=str(folder), viewed=True, journal=str(folder), temporary=files.temporary
        )
        begin = parent.forks if parent else Separate
        yield LivePass(job, files, folder, log, timeout, begin=begin, stack=stack)
    Path(folder, JOURNAL).unlink(missing_ok=True)
    with suppress(FileNotFoundError):
        process.remove_empty([log])
