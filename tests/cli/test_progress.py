"""The progress of reading: shown on a terminal once it takes a while, and nowhere else."""

import io
import re
import sys
import time
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from tracekit.cli import opening
from tracekit.cli.opening import Progress
from tracekit.trace.reading.convert import Seen

HALF = Seen(bytes_read=50_000_000, size=100_000_000, events=300_000, packed=True)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def opened(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    screen = Terminal()  # not in a fixture, because pytest sets its own stderr after fixtures
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    return screen


def later(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    now = time.monotonic() + seconds
    monkeypatch.setattr(opening, "time", SimpleNamespace(monotonic=lambda: now))


def test_bytes_events_rate_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = opened(monkeypatch)
    with Progress() as shown:
        later(monkeypatch, 3)
        shown(HALF)
        time.sleep(0.01)
        shown(replace(HALF, bytes_read=75_000_000))
    said = terminal.getvalue()
    assert re.search(r"71\.5 MiB of 95\.4 MiB, 300,000 events, (99,\d\d\d|100,000) a second", said)
    assert "0:00:0" in said  # what is left


def test_nothing_within_the_first_second(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = opened(monkeypatch)
    with Progress() as shown:
        shown(HALF)
    assert terminal.getvalue() == ""


def test_nothing_where_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with Progress() as shown:
        later(monkeypatch, 3)
        shown(HALF)
    assert sys.stderr.getvalue() == ""  # type: ignore[attr-defined]


def test_each_file_is_counted_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = opened(monkeypatch)
    with Progress() as shown:
        later(monkeypatch, 3)
        shown(HALF)
        before = len(terminal.getvalue())
        shown(Seen(bytes_read=10, size=100, events=1, packed=True))  # a second file, just begun
        assert len(terminal.getvalue()) == before
