"""One pass, one process: with empty compiler caches, a time limit, and nothing left behind."""

import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO

import msgspec

from tracekit import interruption
from tracekit.capture import folder_state, kineto_log, progress
from tracekit.capture.job import SO_FAR, Job, PassResult, has_something
from tracekit.capture.undo import undo
from tracekit.capture.written_files import with_files

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_PREFIX = "tracekit-pass-"
_LOG_TAIL = 30  # lines
_LOOKED_EVERY_S = 1.0


@contextmanager
def scratch() -> Iterator[Path]:
    """An empty folder for compiler caches, gone afterwards; those of killed captures go too."""
    _sweep_litter()
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def perform(
    job: Job, folder: Path, log: Path, timeout: float, tell: Callable[[str], None] = lambda _: None
) -> PassResult:
    """Run the pass in a process of its own; a time-out or a crash becomes an answer too."""
    files = folder_state.before(job)
    try:
        answer = _perform(job, folder, log, timeout, progress.Reader(folder, tell))
        answer = _with_so_far(answer, folder / SO_FAR)
    finally:
        with interruption.deferred():
            undone = undo(folder)
    return with_files(answer, undone, files.changed())


def _perform(job: Job, folder: Path, log: Path, timeout: float, reader: progress.Reader) -> PassResult:
    job = msgspec.structs.replace(job, scratch=str(folder))
    (folder / "job.json").write_bytes(msgspec.json.encode(job))
    (folder / SO_FAR).unlink(missing_ok=True)
    answer = folder / "answer.json"
    answer.unlink(missing_ok=True)
    with open(log, "wb") as output:
        try:
            with ExitStack() as stack:
                with interruption.deferred():
                    process = _start(job, folder, output)
                    stack.callback(_kill_all, process, folder)
                _wait(process, timeout, reader)
        except subprocess.TimeoutExpired:
            return PassResult(outcome="timeout", error=f"took longer than {timeout:g} s")
    if answer.exists():
        result = msgspec.json.decode(answer.read_bytes(), type=PassResult)
        if result.outcome == "ok" or result.traceback:
            return result
        return msgspec.structs.replace(result, traceback=_tail(log))  # nothing was raised: what it printed says why
    return PassResult(outcome="crash", error=_death(process.returncode), traceback=_tail(log))


def _wait(process: subprocess.Popen[bytes], timeout: float, reader: progress.Reader) -> None:
    end = time.monotonic() + timeout
    while True:
        left = end - time.monotonic()
        try:
            process.wait(max(0, min(left, _LOOKED_EVERY_S)))
            return
        except subprocess.TimeoutExpired:
            if left <= _LOOKED_EVERY_S:
                raise
            interruption.check()
            reader.look()


def _with_so_far(failed: PassResult, path: Path) -> PassResult:
    """What it had found before it failed, with the failure."""
    if failed.outcome == "ok" or has_something(failed):
        return failed
    try:
        earlier = msgspec.json.decode(path.read_bytes(), type=PassResult)
    except (OSError, msgspec.DecodeError):
        return failed
    names = ("outcome", "error", "traceback", "notes")
    return msgspec.structs.replace(earlier, **{name: getattr(failed, name) for name in names})


def _start(job: Job, folder: Path, output: BinaryIO) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [job.python or sys.executable, str(Path(__file__).parent / "child" / "start.py"), str(folder)],
        env=_environment(job, folder),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=partial(_die_with, os.getpid()) if sys.platform == "linux" else None,  # noqa: PLW1509 - it takes no lock
    )


def _die_with(parent: int) -> None:
    """From its birth on: a capture killed outright cannot stop a pass, not even one that is only starting."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it was killed before that
        os._exit(1)


def _environment(job: Job, folder: Path) -> dict[str, str]:
    """Ours, with compiler caches that nobody has filled."""
    return {
        **os.environ,
        **(kineto_log.loud() if job.stage == "profile" else {}),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
        "TRITON_CACHE_DIR": str(folder / "triton"),
        # Where a program puts texts into a set, their order is part of its randomness, and every pass has the same.
        "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "0"),
        # Elsewhere the path of a socket in it would grow too long.
        **({"TMPDIR": str(folder)} if sys.platform == "linux" else {}),
    }


def _kill_all(process: subprocess.Popen[bytes], folder: Path) -> None:
    """The pass and whatever it started: compile workers, loader workers, those with a session of their own."""
    try:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except (ProcessLookupError, PermissionError):
        pass  # all gone already
    process.wait()
    for stray in _strays(folder):
        with suppress(ProcessLookupError):
            os.kill(stray, signal.SIGKILL)


def _strays(folder: Path) -> Iterator[int]:
    """Who left the group, known by the folder for temporary files that we gave it. Only Linux tells."""
    mark = f"TMPDIR={folder}\0".encode()
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if mark in environ.read_bytes():
                yield int(environ.parent.name)


def _death(code: int) -> str:
    outcomes = {-signal.SIGKILL: "killed, as when memory runs out"} if hasattr(signal, "SIGKILL") else {}
    if code in outcomes:
        return outcomes[code]
    return f"died of {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code} and no answer"


def _tail(log: Path) -> str:
    text = kineto_log.without_chatter(log.read_text(errors="replace"))
    return "\n".join(text.splitlines()[-_LOG_TAIL:])


def _sweep_litter() -> None:
    if os.name != "posix":
        return
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        owner = re.match(rf"{_PREFIX}(\d+)-", folder.name)
        if owner and not _alive(int(owner[1])):
            undo(folder)  # of a capture that was killed: the user's files come first
            shutil.rmtree(folder, ignore_errors=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
