"""Passes that take turns, seen from outside: each waits at a step's boundary, takes a turn, and at last ends.

Each has a process of its own, started as any other. Nothing is forked: forks share where libraries lie in memory, and
have their parent's heap, in which a step can cost a fifth less than in the process that Python starts.
"""

import os
import select
import signal
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import msgspec

from tracekit.base import interruption
from tracekit.capture import process
from tracekit.capture.child.live import LINES, MESSAGE_BYTES, TURNS, WAITING
from tracekit.capture.child.step_clock import clock
from tracekit.capture.file_view import FileOverlay, in_view, view
from tracekit.capture.job import RESULT, Job, PassResult
from tracekit.capture.process import Process
from tracekit.run import GraphSize, GraphSizes, Measured, Turn
from tracekit.statistics.typical_step import typical_step

_LOOKED_EVERY_S = 0.2


class NoTurnsError(Exception):
    """The processes of these variants cannot take turns, and why."""


class Pipes:
    """The end of the capture: a process is told how long its turn is, and says that it waits, and for what."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        for name in (RESULT, LINES, TURNS, WAITING):
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
        os.write(self._turns, b"%20d\n" % number)

    def has_answer(self, within_s: float) -> bool:
        """Whether the process has said a number that was not taken yet, by then."""
        return bool(select.select([self._waiting], [], [], within_s)[0])

    def answer(self, running: Process, ends: float) -> int | None:
        """The number that it says next; None once it has ended, or has not answered until `ends` (monotonic s)."""
        while True:
            if self.has_answer(0):
                return int(os.read(self._waiting, MESSAGE_BYTES))
            if running.poll() is not None or time.monotonic() > ends:
                return None
            interruption.check()
            self.has_answer(_LOOKED_EVERY_S)


class LivePass:
    """One pass, which is begun; it is killed at the end of the stack, if it has not ended."""

    def __init__(
        self, job: Job, files: FileOverlay, folder: Path, log: Path, *, timeout: float, stack: ExitStack
    ) -> None:
        self.job = job
        self._files, self._folder, self._log, self._timeout = files, folder, log, timeout
        self._timed_out = False
        self._exit_code: int | None = None
        self.is_waiting = False  # for its turn
        job = msgspec.structs.replace(job, began_ns=time.time_ns())
        (folder / "job.json").write_bytes(msgspec.json.encode(job))
        self._pipes, self._ends = Pipes(folder, stack), time.monotonic() + timeout
        with interruption.deferred():
            self._running = Process(job, folder, log)
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
            return with_turns(PassResult(), self._folder, self.job.device)
        result, _ = process.read_result(self._folder, self._log, self._exit_code, time.time())
        if self._timed_out:
            result = PassResult(outcome="timeout", error=f"did not end a step within {self._timeout:g} s")
        result = with_turns(result, self._folder, self.job.device)
        return msgspec.structs.replace(result, written=in_view(self._files, self.job))


class _TurnLine(Turn, frozen=True, kw_only=True):
    """What a process writes about a turn."""

    steps_ns: list[int]
    graphs: list[GraphSize | None]
    warmup_steps: int
    compiles: int  # so far
    compiles_timed: int


def with_turns(result: PassResult, folder: Path, device: str) -> PassResult:
    """The result of a pass, with what the turns that it took have shown."""
    with suppress(FileNotFoundError):
        whole_lines = Path(folder, LINES).read_bytes().splitlines(keepends=True)
        lines = [msgspec.json.decode(line, type=_TurnLine) for line in whole_lines if line.endswith(b"\n")]
        if lines:
            times = [ns for line in lines for ns in line.steps_ns]
            low, _, high = statistics.quantiles(times, n=4) if len(times) > 1 else times * 3
            measured = Measured(
                step_ns=typical_step(times).step_ns,
                step_all_ns=times,
                spread_ns=round(high - low),
                clock=clock(device),
                warmup_steps=lines[-1].warmup_steps,
                compiles=lines[-1].compiles,
                compiles_timed=lines[-1].compiles_timed,
            )
            turns = [Turn(**{name: getattr(line, name) for name in Turn.__struct_fields__}) for line in lines]
            graphs = GraphSizes.of([size for line in lines for size in line.graphs])
            return msgspec.structs.replace(result, measured=measured, turns=turns, graphs=graphs)
    return result


@contextmanager
def live_pass(job: Job, folder: Path, log: Path, timeout: float) -> Iterator[LivePass]:
    """The pass in a view of its own. Raises NoTurnsError where there is none: the passes of all variants would write to
    the same files."""
    with ExitStack() as stack:
        files = stack.enter_context(view(job, folder))
        if not files.exists:
            raise NoTurnsError(f"there is no copy-on-write view of your files ({files.why})")
        job = msgspec.structs.replace(
            job, scratch=str(folder), viewed=True, journal=str(folder), temporary=files.temporary
        )
        yield LivePass(job, files, folder, log, timeout=timeout, stack=stack)
    with suppress(FileNotFoundError):
        process.remove_empty([log])
