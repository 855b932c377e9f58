"""A process whose passes take turns, seen from outside: a pass begins, waits at a step's boundary, takes a turn, ends.

Once it has set up, it is forked for every pass, where that is proven to be safe; elsewhere it is one pass itself.
"""

import os
import select
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from tracekit import interruption
from tracekit.capture import journal, process
from tracekit.capture.job import MESSAGE_BYTES, RESULT, SO_FAR, TURNS, WAITING, Job, PassResult, message
from tracekit.capture.rank_jobs import rank_jobs
from tracekit.capture.undo import in_view
from tracekit.capture.view import View, view

_LOOKED_EVERY_S = 0.2


class NoTurnsError(Exception):
    """The processes of these variants cannot take turns, and why."""


class LiveProcess:
    """One process, or one and its forks, each of which is a pass."""

    def __init__(self, job: Job, files: View, folder: Path, log: Path, timeout: float) -> None:
        self._job, self._files, self._folder, self._log, self._timeout = job, files, folder, log, timeout
        self._process: subprocess.Popen[bytes] | None = None
        self._forks = self._timed_out = False
        self._exit_code: int | None = None  # of a pass that has ended
        self.is_waiting = False  # a pass, for its turn
        self.step_ns = 0  # of its last turn: the mean

    def start(self, stack: ExitStack) -> None:
        """Start it; it is killed at the end of the context, if it has not ended."""
        ((job, folder),) = rank_jobs(self._job, self._folder)
        (folder / "job.json").write_bytes(msgspec.json.encode(job))
        for name in (SO_FAR, RESULT, TURNS, WAITING):
            (folder / name).unlink(missing_ok=True)
        # With both ends open here, opening never waits for the other side; the end of the process shows otherwise.
        self._turns, self._waiting = (self._pipe(name, stack) for name in (TURNS, WAITING))
        with open(self._log, "wb") as output, interruption.deferred():
            self._process = process.start(job, folder, output)
            stack.callback(process.kill_all, self._process, folder)

    def _pipe(self, name: str, stack: ExitStack) -> int:
        os.mkfifo(self._folder / name)
        pipe = os.open(self._folder / name, os.O_RDWR | os.O_CLOEXEC)
        stack.callback(os.close, pipe)
        return pipe

    @property
    def can_fork(self) -> bool:
        """Whether another pass can be forked from it."""
        assert self._process is not None
        return self._forks and self._process.poll() is None

    def fork(self) -> None:
        """Begin another pass, unless it is one itself."""
        assert self._process is not None
        if self._forks:
            for name in (SO_FAR, RESULT):
                (self._folder / name).unlink(missing_ok=True)
            self._exit_code = self._process.poll()
            os.write(self._turns, message(1))

    def wait_until_ready(self) -> None:
        """Wait until it can be forked, its pass waits for its first turn, or it has ended; returns at once if so."""
        if not self.is_waiting and self._exit_code is None:
            self.wait()

    def wait(self) -> None:
        """Wait until its pass waits for its turn, or has ended. One that takes too long is killed."""
        assert self._process is not None
        ends, self.is_waiting = time.monotonic() + self._timeout, False
        while True:
            self._exit_code = self._process.poll()
            if self._exit_code is not None:
                return
            if time.monotonic() > ends:
                self._timed_out = True
                process.kill_all(self._process, self._folder)
            interruption.check()
            if select.select([self._waiting], [], [], _LOOKED_EVERY_S)[0]:
                answer = int(os.read(self._waiting, MESSAGE_BYTES))
                if answer < 0:
                    self._forks, self._exit_code = True, os.waitstatus_to_exitcode(-1 - answer)
                else:
                    self.step_ns, self.is_waiting = answer, True
                return

    def take_turn(self, turn_ns: int) -> None:
        """Let it take steps for about that long, and wait until it waits again, or has ended."""
        if self.is_waiting:
            os.write(self._turns, message(turn_ns))
            self.wait()

    def end(self) -> None:
        """Let its pass take its short trace and end, and wait until it has."""
        if self.is_waiting:
            os.write(self._turns, message(0))
            self.wait()

    def result(self) -> PassResult:
        """What its pass has measured so far, with its failure if it failed. It can be read while it runs, too."""
        if self._exit_code is None:  # it was interrupted, and did not fail
            so_far = process.with_so_far(PassResult(outcome="interrupted"), self._folder / SO_FAR)
            return msgspec.structs.replace(so_far, outcome="ok")
        result, _ = process.read_result(self._folder, self._log, self._exit_code, time.time())
        if self._timed_out:
            result = PassResult(outcome="timeout", error=f"did not end a step within {self._timeout:g} s")
        result = process.with_so_far(result, self._folder / SO_FAR)
        return msgspec.structs.replace(result, written=in_view(self._files, self._job))


@contextmanager
def live_process(job: Job, folder: Path, log: Path, timeout: float) -> Iterator[LiveProcess]:
    """The process in a view of its own, which its forks share. Raises NoTurnsError where there is none: the passes of
    all variants would write to the same files."""
    with view(job, folder) as files:
        if not files.exists:
            raise NoTurnsError(f"there is no copy-on-write view of your files ({files.why})")
        job = msgspec.structs.replace(job, viewed=True, journal=str(folder))
        with ExitStack() as stack:
            live = LiveProcess(job, files, folder, log, timeout)
            live.start(stack)
            yield live
        Path(folder, journal.JOURNAL).unlink(missing_ok=True)
        process.remove_empty([log])
