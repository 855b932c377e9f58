"""A pass whose process takes turns, seen from outside: it waits at a step's boundary, takes a turn, and ends.

Its process is one that was started for it, or a fork of one that has imported everything (`parents`).
"""

import os
import select
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Protocol

import msgspec

from tracekit.base import interruption
from tracekit.capture import journal, process
from tracekit.capture.file_view import FileOverlay, view
from tracekit.capture.job import MESSAGE_BYTES, RESULT, SO_FAR, TURNS, WAITING, Job, PassResult, message, rank_jobs
from tracekit.capture.process import Running, Separate, Start
from tracekit.capture.undo import in_view

_LOOKED_EVERY_S = 0.2


class NoTurnsError(Exception):
    """The processes of these variants cannot take turns, and why."""


class Parent(Protocol):
    """A process that can be forked for passes."""

    folder: Path
    shared: FileOverlay | None  # its view, in which its forks are, too; None if each has one of its own

    def forks(self, job: Job, folder: Path, log: Path) -> Running:
        """A fork of it that does the job that is in this folder."""


class Pipes:
    """The end of the capture: a process is told how long its turn is, and says that it waits, and for what."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        for name in (SO_FAR, RESULT, TURNS, WAITING):
            (folder / name).unlink(missing_ok=True)
        # With both ends open here, opening never waits for the other side; the end of the process shows otherwise.
        self._turns, self._waiting = (self._made(folder / name, stack) for name in (TURNS, WAITING))

    def _made(self, path: Path, stack: ExitStack) -> int:
        os.mkfifo(path)
        pipe = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        stack.callback(os.close, pipe)
        return pipe

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


class LivePass:
    """One pass."""

    def __init__(self, job: Job, files: FileOverlay, folder: Path, log: Path, timeout: float) -> None:
        self.job = job
        self._files, self._folder, self._log, self._timeout = files, folder, log, timeout
        self._timed_out = False
        self._exit_code: int | None = None
        self.is_waiting = False  # for its turn

    def start(self, begin: Start, stack: ExitStack) -> None:
        """Start it; it is killed at the end of the context, if it has not ended."""
        ((job, folder),) = rank_jobs(self.job, self._folder)
        job = msgspec.structs.replace(job, began_ns=time.time_ns())
        (folder / "job.json").write_bytes(msgspec.json.encode(job))
        self._pipes, self._ends = Pipes(self._folder, stack), time.monotonic() + self._timeout
        with interruption.deferred():
            self._running = begin(job, folder, self._log)
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
        self._go_on(turn_ns)

    def end(self, traced: bool) -> None:
        """Let it take its short trace, if it is to, and end, and wait until it has."""
        self._go_on(0 if traced else -1)

    def _go_on(self, number: int) -> None:
        if self.is_waiting:
            self.is_waiting, self._ends = False, time.monotonic() + self._timeout
            self._pipes.tell(number)
            self.wait()

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
    begin: Start = parent.forks if parent else Separate
    with ExitStack() as stack:
        also = [str(parent.folder)] if parent else []
        files = (parent and parent.shared) or stack.enter_context(view(job, folder, also_through=also))
        if not files.exists:
            raise NoTurnsError(f"there is no copy-on-write view of your files ({files.why})")
        job = msgspec.structs.replace(
            job, scratch=str(folder), viewed=True, journal=str(folder), temporary=files.temporary
        )
        live = LivePass(job, files, folder, log, timeout)
        live.start(begin, stack)
        yield live
    Path(folder, journal.JOURNAL).unlink(missing_ok=True)
    with suppress(FileNotFoundError):
        process.remove_empty([log])
