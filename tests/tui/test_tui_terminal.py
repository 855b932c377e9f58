"""The whole command on a pseudo-terminal: its first frame, keys with a piped trace, and quitting with the terminal."""

import os
import signal
import time
from pathlib import Path

import pytest

from tests.terminal import terminal
from tests.tui import made_traces

_PATIENCE_S = 60  # on a busy machine


pytestmark = pytest.mark.usefixtures("own_cache")


def test_a_terminal_that_hangs_up_leaves_nothing_behind(tmp_path: Path) -> None:
    """`make bench-tui` measures how soon the process ends."""
    with terminal(made_traces.eager(tmp_path / "eager.json")) as app:
        before_textual = app.until(b"Reading")
        assert b"\x1b[?1049h" in before_textual
        assert b"eager.json" in before_textual
        assert b"Overview" in app.until(b"Overview")
        os.close(app.master)
        assert app.process.wait(_PATIENCE_S) in (129, -signal.SIGHUP)


def test_a_piped_trace_leaves_the_keys_to_the_terminal(tmp_path: Path) -> None:
    trace = os.open(made_traces.eager(tmp_path / "eager.json"), os.O_RDONLY)
    with terminal("-", stdin=trace) as app:
        assert b"Overview" in app.until(b"Overview", b"dispatch")
        os.write(app.master, b"q")
        app.until(b"\x1b[?1049l")
        assert app.process.wait(_PATIENCE_S) == 0
    os.close(trace)


def test_the_editor_gets_the_line_and_the_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the sample run, whose script is in this repository; for a line that is nowhere, the app says so."""
    editor = tmp_path / "editor"
    editor.write_text(f"#!/bin/sh\necho $@ > {tmp_path}/edited\n")
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))
    root = Path(__file__).parent.parent.parent
    monkeypatch.chdir(root / "recipes")
    with terminal(root / "sample_traces" / "run.json") as app:
        app.until(b"gcn_cora.py:43")
        app.press(b"e")
        limit = time.monotonic() + _PATIENCE_S
        while not (tmp_path / "edited").exists() and time.monotonic() < limit:
            app.press(b"")  # unread output would keep it from handing over the terminal
        assert (tmp_path / "edited").read_text() == f"+43 {root / 'recipes' / 'gcn_cora.py'}\n"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_restores_the_terminal(tmp_path: Path, number: int, code: int) -> None:
    with terminal(made_traces.eager(tmp_path / "eager.json")) as app:
        app.until(b"Overview")
        app.process.send_signal(number)
        assert b"\x1b[?1049l" in app.until(b"\x1b[?1049l")
        assert app.process.wait(_PATIENCE_S) == code


def test_with_messages_sent_elsewhere_the_report_is_named(tmp_path: Path) -> None:
    """The app draws on stderr, where messages go, too."""
    path = made_traces.eager(tmp_path / "eager.json")
    with (tmp_path / "messages").open("w") as messages, terminal(path, stderr=messages.fileno()) as app:
        assert app.process.wait(_PATIENCE_S) == 1
    assert f"tracekit report {path}" in (tmp_path / "messages").read_text()
