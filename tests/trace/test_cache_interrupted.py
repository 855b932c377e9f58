"""Readers that are killed, interrupted or run at the same time leave the cache intact."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.trace.cached_traces import document, litter
from tracekit.trace.storing import cache

ROOT = Path(__file__).resolve().parents[2]


def started(path: Path, home: Path) -> "subprocess.Popen[bytes]":
    environment = {**os.environ, cache.DIRECTORY: str(home), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tracekit", "report", "--format", "json", str(path)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_two_at_the_same_time(home: Path, big: Path) -> None:
    both = [started(big, home) for _ in range(2)]
    outputs = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    assert outputs[0][0] == outputs[1][0]
    assert len(cache.entries()) == 1
    assert not litter(home)


def test_killed_at_any_moment(home: Path, big: Path) -> None:
    truth = document(big)
    cache.clear()
    rnd = random.Random(7)
    for _ in range(int(os.environ.get("TRACEKIT_KILLS", "8"))):
        process = started(big, home)
        time.sleep(rnd.uniform(0.2, 2.0))
        process.kill()
        process.communicate()
        if rnd.random() < 0.3:
            cache.clear()
    assert document(big) == truth
    cache.clear()
    assert document(big) == truth
    assert not litter(home)
    assert len(cache.entries()) == 1


def test_interrupted_at_any_moment(home: Path, big: Path) -> None:
    truth = document(big)
    rnd = random.Random(5)
    for _ in range(5):
        cache.clear()
        process = started(big, home)
        while not litter(home) and process.poll() is None:
            time.sleep(0.005)  # until it has begun to read
        time.sleep(rnd.uniform(0, 0.8))
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        _, errors = process.communicate(timeout=60)
        assert time.monotonic() - began < 30  # at once; a busy machine gets more time
        # Python dies of the signal if it was exiting already, or if the signal came during an `exec` of text, by which
        # dataclasses are made: it takes that for an unhandled interruption. A shell reports 130 for both.
        ended = (process.returncode, errors.decode())
        died = -signal.SIGINT
        assert ended in ((130, "tracekit: interrupted\n"), (0, ""), (died, ""), (died, "tracekit: interrupted\n"))
        assert not litter(home)
    assert document(big) == truth


def test_interrupted_while_others_help(home: Path, big: Path) -> None:
    """The helpers and what they wrote disappear with the reader, which is interrupted once both are at work."""
    code = (
        "import sys; from tracekit.trace.reading import convert, native; from tracekit.cli import entry\n"
        "convert.FEW, convert.WORTH_BYTES, native.BUILT = 1, 0, False\n"
        f"sys.argv = ['tracekit', 'report', {str(big)!r}]; sys.exit(entry())"
    )
    environment = {**os.environ, cache.DIRECTORY: str(home), "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen([sys.executable, "-c", code], env=environment, stderr=subprocess.PIPE, text=True)
    helpers = await_children(process.pid)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, "tracekit: interrupted\n")
    deadline = time.monotonic() + 10  # a helper that was just starting notices by itself that it is alone
    while any(Path(f"/proc/{helper}").exists() for helper in helpers):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert not litter(home)


def await_children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    if not listed.exists():
        pytest.skip("this kernel does not list children")
    for _ in range(2000):
        if children := [int(child) for child in listed.read_text().split()]:
            return children
        time.sleep(0.005)
    raise AssertionError("no helper was started")
