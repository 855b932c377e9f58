"""Python processes that need not import torch, because they are forked from one that has: 20 ms instead of five
seconds.

Each test process has one such server (`tests/warm_server.py`), started when it is first needed. A process that it forks
runs what `python ARGUMENTS` would run, with its own environment, folder, session and output; only torch is already
imported. If the environment differs in anything that Python or torch read at start-up, a new interpreter is started as
usual. With `TRACEKIT_VERIFY=1` every process is a new interpreter: `make verify` runs these tests in this way, too.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from tracekit.capture.job import Job

SERVER = Path(__file__).with_name("warm_server.py")
ROOT = Path(__file__).parents[1]
# Variables with these names are read as Python or torch start; of torch's, some only where they are needed.
_READ_AT_START = ("PYTHON", "TORCH", "OMP_", "MKL_", "KMP_", "LD_")
_READ_LATER = ("TORCHINDUCTOR_CACHE_DIR",)
_LENT = "TRACEKIT_TESTS_SERVER"
# One thread, as `--threads 1` asks for, too, and no pool of compilers that import torch themselves.
FIXED = {
    "PYTHONHASHSEED": "0",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
}
_STARTED_WITH = {**os.environ, **FIXED}  # as it is now, before any test changes it


class Process:
    """The part of `subprocess.Popen` that is used to start passes; output goes to files."""

    def __init__(self, args: list[str], environment: dict[str, str], folder: str, stdout: int, stderr: int) -> None:
        self.args = args
        self.returncode: int | None = None
        self._status, status = os.pipe()
        request = {"arguments": args[1:], "environment": environment, "folder": folder}
        socket.send_fds(_server(), [json.dumps(request).encode()], [stdout, stderr, status])
        os.close(status)
        self.pid = int(os.read(self._status, 20))

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, as Popen gives it; raises TimeoutExpired."""
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self.returncode = int(os.read(self._status, 20) or -signal.SIGKILL)
            os.close(self._status)
        return self.returncode

    def poll(self) -> int | None:
        """Its exit code, or None while it runs."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


def is_same(environment: dict[str, str]) -> bool:
    """Whether a new interpreter with this environment would start in the same way as the server."""
    names = filter(_matters, {*_STARTED_WITH, *environment})
    same = all(_STARTED_WITH.get(name) == environment.get(name) for name in names)
    return same and not os.environ.get("TRACEKIT_VERIFY")


def _matters(name: str) -> bool:
    return name.startswith(_READ_AT_START) and name not in _READ_LATER


def run(
    arguments: list[str], *, cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `python ARGUMENTS` like `subprocess.run`, with both outputs captured as text; never raises."""
    environment, folder = {**os.environ, **(env or {}), **FIXED}, str(cwd or Path.cwd())
    command = [sys.executable, *map(str, arguments)]
    if not is_same(environment):
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        code = Process(command, environment, folder, out.fileno(), err.fileno()).wait()
        for file in (out, err):
            file.seek(0)
        return subprocess.CompletedProcess(command, code, out.read(), err.read())


def tracekit(*arguments: object, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run `tracekit ARGUMENTS` in a folder: in this process, with forked passes."""
    from tracekit.cli import main

    command = [*map(str, arguments)]
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err, chdir(folder or Path.cwd()), passes():
        try:
            code = main(command)
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
    return subprocess.CompletedProcess(command, code, out.getvalue(), err.getvalue())


@contextmanager
def passes() -> Iterator[None]:
    """While active, the passes that this process starts are forked, all of them."""
    from tracekit.capture import process

    cold = process.start

    def start(job: Job, folder: Path, output: BinaryIO) -> Any:
        environment = {**process.environment(job, folder), **FIXED}
        if not is_same(environment):
            return cold(job, folder, output)
        first_file = str(Path(process.__file__).parent / "child" / "start.py")
        return Process([sys.executable, first_file, str(folder)], environment, os.getcwd(), *[output.fileno()] * 2)

    process.start = start
    try:
        yield
    finally:
        process.start = cold


def lend() -> dict[str, Any]:
    """Arguments of `subprocess.Popen` that allow the process to call `passes`, too."""
    descriptor = _server().fileno()
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    return {"env": {**_STARTED_WITH, _LENT: str(descriptor), "PYTHONPATH": path}, "pass_fds": [descriptor]}


@cache
def _server() -> socket.socket:
    """The server, which ends when no process has its socket open any more."""
    if _LENT in os.environ:
        return socket.socket(fileno=int(os.environ[_LENT]))
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    subprocess.Popen(
        [sys.executable, str(SERVER), str(theirs.fileno())],
        env=_STARTED_WITH,
        cwd=ROOT,
        pass_fds=[theirs.fileno()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    theirs.close()
    return ours
