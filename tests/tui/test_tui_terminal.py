"""The whole command on a pseudo-terminal: its first frame, keys beside a piped trace, leaving with the terminal."""

import fcntl
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import made_traces
import pytest

_PATIENCE = 60  # seconds, on a busy machine


class Terminal:
    """A terminal of 100 × 30 with the command on it."""

    def __init__(self, master: int, process: "subprocess.Popen[bytes]") -> None:
        self.master, self.process = master, process
        self.shown = b""

    def until(self, *words: bytes) -> bytes:
        """What was drawn until all of these words were."""
        limit = time.monotonic() + _PATIENCE
        while not all(word in self.shown for word in words) and time.monotonic() < limit:
            if select.select([self.master], [], [], 0.1)[0]:
                try:
                    self.shown += os.read(self.master, 1 << 16)
                except OSError:
                    break
        return self.shown


@contextmanager
def terminal(tmp_path: Path, *arguments: object, stdin: int | None = None) -> Iterator[Terminal]:
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (30, 100))
    environment = os.environ | {"TRACEKIT_CACHE_DIR": str(tmp_path / "cache"), "TERM": "xterm-256color"}

    def own_terminal() -> None:
        fcntl.ioctl(1, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(
        [sys.executable, "-m", "tracekit", "tui", *map(str, arguments)],
        stdin=slave if stdin is None else stdin,
        stdout=slave,
        stderr=slave,
        env=environment,
        start_new_session=True,
        preexec_fn=own_terminal,  # noqa: PLW1509 - no thread is at work here
    )
    os.close(slave)
    try:
        yield Terminal(master, process)
    finally:
        process.kill()
        process.wait()


def test_a_terminal_that_hangs_up_leaves_nothing_behind(tmp_path: Path) -> None:
    with terminal(tmp_path, made_traces.eager(tmp_path / "eager.json")) as app:
        before_textual = app.until(b"Reading")
        assert b"\x1b[?1049h" in before_textual
        assert b"eager.json" in before_textual
        assert b"Overview" in app.until(b"Overview")
        os.close(app.master)
        began = time.monotonic()
        assert app.process.wait(_PATIENCE) in (129, -signal.SIGHUP)
        assert time.monotonic() - began < 5  # a second, where nothing else runs


def test_a_piped_trace_leaves_the_keys_to_the_terminal(tmp_path: Path) -> None:
    trace = os.open(made_traces.eager(tmp_path / "eager.json"), os.O_RDONLY)
    with terminal(tmp_path, "-", stdin=trace) as app:
        assert b"Overview" in app.until(b"Overview", b"dispatch")
        os.write(app.master, b"q")
        app.until(b"\x1b[?1049l")
        assert app.process.wait(_PATIENCE) == 0
    os.close(trace)


def test_the_editor_gets_the_line_and_the_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the sample run, whose script is in this repository; and a line that is nowhere is said."""
    editor = tmp_path / "editor"
    editor.write_text(f"#!/bin/sh\necho $@ > {tmp_path}/edited\n")
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))
    root = Path(__file__).parent.parent.parent
    monkeypatch.chdir(root / "recipes")
    with terminal(tmp_path, root / "sample_traces" / "run.json") as app:
        app.until(b"gcn_cora.py:43")
        os.write(app.master, b"e")
        limit = time.monotonic() + _PATIENCE
        while not (tmp_path / "edited").exists() and time.monotonic() < limit:
            time.sleep(0.05)
        assert (tmp_path / "edited").read_text() == "+43 gcn_cora.py\n"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143)])
def test_a_signal_restores_the_terminal(tmp_path: Path, number: int, code: int) -> None:
    with terminal(tmp_path, made_traces.eager(tmp_path / "eager.json")) as app:
        app.until(b"Overview")
        app.process.send_signal(number)
        assert b"\x1b[?1049l" in app.until(b"\x1b[?1049l")
        assert app.process.wait(_PATIENCE) == code
