"""Runs one pass in one process: with empty compiler caches, with a time limit, and leaving nothing behind.

Whatever changed the user's files meanwhile, it is noticed: their sizes and times of modification are compared.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from functools import partial
from math import inf
from pathlib import Path
from typing import BinaryIO

import msgspec

from tracekit.base import interruption
from tracekit.base.workspace import temporary_home, workspace
from tracekit.capture import lost_kernels, messages
from tracekit.capture.file_view import BYTECODE, in_view, refusal, shared_bytecode, view, without_view
from tracekit.capture.guardian import guarded_folder, processes_with
from tracekit.capture.job import (
    RESULT,
    SO_FAR,
    Job,
    PassResult,
    combined,
    has_something,
    rank_jobs,
    rank_log,
    torchrun_environment,
)
from tracekit.capture.journal import Undone, undo

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_LOG_TAIL = 30  # lines
_LOOKED_EVERY_S = 1.0
_POLLED_EVERY_S = 0.02  # the ends of ranks: the others notice that one is gone within milliseconds
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")  # what PyTorch reads as it starts
_GRACE_S = 20.0  # for the other ranks to end, once one has ended
MARK = "TRACEKIT_SCRATCH"  # tells the processes of a pass from all others
_refused: dict[str, str] = {}  # the programs that failed in a view because of it, and why
_MOST_FILES = 10_000
_MOST_SECONDS = 0.5  # on a slow network disk
_NOT_LOOKED_AT = {"__pycache__", "node_modules"}  # nor into hidden folders
_State = tuple[int, int]  # size in bytes, last change in unix ns


class Process:
    """A process that was started for a pass."""

    def __init__(self, job: Job, folder: Path, log: Path) -> None:
        self._folder = folder
        with open(log, "wb") as output:
            self._process: subprocess.Popen[bytes] = start(job, folder, output)

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""
        return self._process.poll()

    def kill(self) -> None:
        """Kill it, and what it started: compile workers, loader workers, processes with their own session."""
        try:
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()
        except (ProcessLookupError, PermissionError):
            pass  # all have already ended
        self._process.wait()
        for stray in processes_with(f"{MARK}={self._folder}\0"):  # they have left the group
            with suppress(ProcessLookupError):
                os.kill(stray, signal.SIGKILL)


def scratch() -> AbstractContextManager[Path]:
    """An empty folder for compiler caches, removed afterwards, as are those of killed captures."""
    return workspace(temporary_home("tracekit-passes"))


def perform(
    job: Job,
    folder: Path,
    log: Path,
    timeout: float,
    tell: Callable[[str], None] = lambda _: None,
) -> PassResult:
    """Run the pass in a process of its own; a time-out or a crash becomes a result, too.

    Where it fails in a view because of the view, it runs once more without one. If that helps, the program's later
    passes are not tried in a view.
    """
    result = _perform_once(job, folder, log, timeout, tell)
    if not result.written.no_view and not job.in_place and (why := refusal(result, _tail(log))):
        error = result.error
        _refused[job.program] = f"it failed in one: {why}"
        result = _perform_once(job, folder, log, timeout, tell)
        if result.error == error:
            del _refused[job.program]
    return result


def _perform_once(
    job: Job,
    folder: Path,
    log: Path,
    timeout: float,
    tell: Callable[[str], None],
) -> PassResult:
    with (
        view(job, folder, _refused.get(job.program, "")) as files,
        # The journal is in the folder of the pass, unless files would have to be restored after a kill.
        nullcontext(folder) if files.exists or job.in_place else guarded_folder(folder) as journal_folder,
    ):
        job = msgspec.structs.replace(job, viewed=files.exists, journal=str(journal_folder), temporary=files.temporary)
        before, undone = folder_state(job), Undone()
        try:
            result = _perform(job, folder, log, timeout, messages.Reader(folder, tell))
            result = with_so_far(result, folder / SO_FAR)
        finally:
            if not job.viewed:
                with interruption.deferred():
                    undone = undo(journal_folder)
        written = in_view(files, job) if job.viewed else without_view(files.why, undone, before.changed())
        return msgspec.structs.replace(result, written=written)


def _perform(job: Job, folder: Path, log: Path, timeout: float, reader: messages.Reader) -> PassResult:
    jobs = rank_jobs(job, folder)
    processes: list[Process] = []
    with ExitStack() as stack:
        try:
            with interruption.deferred():
                for rank, (rank_job, scratch) in enumerate(jobs):
                    begun = msgspec.structs.replace(rank_job, began_ns=time.time_ns())
                    (scratch / "job.json").write_bytes(msgspec.json.encode(begun))
                    for name in (SO_FAR, RESULT):
                        (scratch / name).unlink(missing_ok=True)
                    process = Process(rank_job, scratch, rank_log(log, rank))
                    stack.callback(process.kill)
                    processes.append(process)
            ended = _wait(processes, timeout, reader)
        except TimeoutError:
            return PassResult(outcome="timeout", error=f"took longer than {timeout:g} s")
    results = [
        read_result(scratch, rank_log(log, rank), process.poll() or 0, ended.get(rank, inf))
        for rank, ((_, scratch), process) in enumerate(zip(jobs, processes, strict=True))
    ]
    remove_empty(rank_log(log, rank) for rank in range(1, job.ranks))
    return combined(results) if job.ranks > 1 else results[0][0]


def read_result(folder: Path, log: Path, exit_code: int, last_seen: float) -> tuple[PassResult, float]:
    """The result, and when it was written or, without one, when the process was last seen running, unix time."""
    file = folder / RESULT
    if not file.exists():
        if hasattr(signal, "SIGKILL") and exit_code == -signal.SIGKILL:
            error = "killed, perhaps because memory ran out"
        elif exit_code < 0:
            error = f"died of {signal.Signals(-exit_code).name}"
        else:
            error = f"ended with exit code {exit_code} and no answer"
        return PassResult(outcome="crash", error=error, traceback=_tail(log)), last_seen
    result = msgspec.json.decode(file.read_bytes(), type=PassResult)
    if result.outcome != "ok" and not result.traceback:  # no exception was raised: its output says why
        result = msgspec.structs.replace(result, traceback=_tail(log))
    return result, file.stat().st_mtime


def remove_empty(logs: Iterable[Path]) -> None:
    """Remove logs that hold only the profiler's routine messages; the first rank's log is handled elsewhere."""
    for log in logs:
        if not lost_kernels.without_chatter(log.read_text(errors="replace")):
            log.unlink()


def _wait(processes: list[Process], timeout: float, reader: messages.Reader) -> dict[int, float]:
    """Wait until all have ended. Successful ranks end together: once one has ended, the others get little time.

    Returns for each rank that ended by itself when it was last seen running, unix time; the others are to be killed.
    """
    ends, looks = time.monotonic() + timeout, time.monotonic() + _LOOKED_EVERY_S
    last_seen = dict.fromkeys(range(len(processes)), time.time())
    ended: dict[int, float] = {}
    while True:
        now = time.time()
        for rank in last_seen.keys() - ended.keys():
            if processes[rank].poll() is not None:
                ended[rank] = last_seen[rank]
            last_seen[rank] = now
        if len(ended) == len(processes):
            return ended
        if ended:
            ends = min(ends, time.monotonic() + _GRACE_S)
        if time.monotonic() >= ends and ended:
            return ended  # the others wait for a rank that is gone
        if time.monotonic() >= ends:
            raise TimeoutError
        if time.monotonic() >= looks:
            interruption.check()
            reader.look()
            looks = time.monotonic() + _LOOKED_EVERY_S
        time.sleep(_POLLED_EVERY_S)


def with_so_far(failed: PassResult, path: Path) -> PassResult:
    """The results before it failed, with the failure."""
    if failed.outcome == "ok" or has_something(failed):
        return failed
    try:
        earlier = msgspec.json.decode(path.read_bytes(), type=PassResult)
    except (OSError, msgspec.DecodeError):
        return failed
    names = ("outcome", "error", "traceback", "notes")
    return msgspec.structs.replace(earlier, **{name: getattr(failed, name) for name in names})


def start(job: Job, folder: Path, output: BinaryIO) -> subprocess.Popen[bytes]:
    """Start the process of a pass, which dies with this one."""
    return subprocess.Popen(
        [job.python or sys.executable, str(Path(__file__).parent / "child" / "start.py"), str(folder)],
        env=environment(job, folder),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=partial(_die_with, os.getpid()) if sys.platform == "linux" else None,  # noqa: PLW1509 - it takes no lock
    )


def _die_with(parent: int) -> None:
    """Make the process end with its parent, from its start on: a capture that is killed cannot stop its passes."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # the parent was killed earlier
        os._exit(1)


def environment(job: Job, folder: Path) -> dict[str, str]:
    """Our environment, with compiler caches that are still empty; ranks share them."""
    caches = Path(job.caches or job.meeting or folder)
    return {
        **os.environ,
        MARK: str(folder),
        **(lost_kernels.loud() if job.stage == "profile" else {}),
        "TORCHINDUCTOR_CACHE_DIR": str(caches / "inductor"),
        "TRITON_CACHE_DIR": str(caches / "triton"),
        # If a program puts texts into a set, their order is part of its randomness, which has to be the same in every
        # pass.
        "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "0"),
        # On other systems, the path of a socket in it would become too long.
        **({"TMPDIR": job.temporary or str(caches)} if sys.platform == "linux" else {}),
        # Many containers are told not to write bytecode: not beside their packages.
        **({BYTECODE: path, "PYTHONDONTWRITEBYTECODE": ""} if not job.python and (path := shared_bytecode()) else {}),
        **torchrun_environment(job),
        **({name: str(job.threads) for name in _THREADS} if job.threads else {}),
    }


def _tail(log: Path) -> str:
    text = lost_kernels.without_chatter(log.read_text(errors="replace"))
    return "\n".join(text.splitlines()[-_LOG_TAIL:])


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
        differing = [path for path, state in self._files.items() if _state(path) != state]
        new = (path for path, _ in self._walk() if path not in self._files) if self._is_whole else iter(())
        return sorted([*differing, *new])

    def _walk(self) -> Iterator[tuple[str, _State]]:
        output_inodes = set()  # of the files to which the capture's own output goes
        for descriptor in (1, 2):
            with suppress(OSError):
                output_inodes.add(os.fstat(descriptor).st_ino)
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


def folder_state(job: Job) -> FolderState:
    """The folders that a script is likely to write to: the current one, and its own."""
    if not job.is_script or job.in_place or job.viewed:
        return FolderState([], [])
    beside_it = [] if job.module else [os.path.dirname(os.path.realpath(job.program))]
    return FolderState([str(Path.cwd()), *beside_it], [*filter(None, [job.folder])])


def _state(path: str) -> _State | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns
