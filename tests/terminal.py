"""`tracekit tui` on a pseudo-terminal: what it draws, and when."""

import fcntl
import os
import pty
import select
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_PATIENCE_S = 60.0  # on a busy machine
_QUIET_S = 0.4  # after which nothing more is drawn in answer to a key


@dataclass(frozen=True)
class Answer:
    """Seconds from the bytes of a key to the first and the last byte that it draws; CPU seconds of the process."""

    first: float
    last: float
    cpu: float


class Terminal:
    """A terminal on which the command runs; `shown` is everything that was drawn."""

    def __init__(self, master: int, process: "subprocess.Popen[bytes]") -> None:
        self.master, self.process = master, process
        self.shown = b""

    def until(self, *words: bytes, patience_s: float = _PATIENCE_S) -> bytes:
        """Everything drawn until all of these words have appeared, or until the time limit."""
        limit = time.monotonic() + patience_s
        while not all(word in self.shown for word in words) and time.monotonic() < limit:
            if not self._read(0.1) and self.process.poll() is not None:
                break
        return self.shown

    def press(self, keys: bytes) -> Answer:
        """Press a key, and read until the app stops drawing."""
        used = self._cpu()
        os.write(self.master, keys)
        first, last = 0.0, 0.0
        began = time.perf_counter()
        while self._read(_QUIET_S):
            last = time.perf_counter() - began
            first = first or last
        return Answer(first, last, self._cpu() - used)

    def _read(self, wait_s: float) -> bool:
        """Read what is there; False if nothing arrived in time, or if nothing can arrive any more."""
        if not select.select([self.master], [], [], wait_s)[0]:
            return False
        try:
            drawn = os.read(self.master, 1 << 16)
        except OSError:  # the other end was closed
            return False
        self.shown += drawn
        return bool(drawn)

    def _cpu(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def terminal(
    *arguments: object, size: tuple[int, int] = (100, 30), stdin: int | None = None, stderr: int | None = None
) -> Iterator[Terminal]:
    """A terminal of the given size, on which the command runs with these arguments."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, size[::-1])

    def own_terminal() -> None:
        fcntl.ioctl(1, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(
        [sys.executable, "-m", "tracekit", "tui", *map(str, arguments)],
        stdin=slave if stdin is None else stdin,
        stdout=slave,
        stderr=slave if stderr is None else stderr,
        env=os.environ | {"TERM": "xterm-256color"},
        start_new_session=True,
        preexec_fn=own_terminal,  # noqa: PLW1509 - no thread is at work here
    )
    os.close(slave)
    try:
        yield Terminal(master, process)
    finally:
        process.kill()
        process.wait()
