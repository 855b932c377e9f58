"""What was read once is found again, whole or not at all, whoever else reads, and however a reader ends."""

import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tracekit.faces.shared.document import as_document
from tracekit.profile import open_subject
from tracekit.report import report
from tracekit.trace import Trace
from tracekit.trace.storing import cache

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(cache.DIRECTORY, str(tmp_path / "cache"))
    monkeypatch.delenv("TRACEKIT_NO_CACHE", raising=False)
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace worth keeping: 20 MB, packed."""
    return made(tmp_path_factory.mktemp("big") / "big.json.gz", 20)


def made(path: Path, mega: int) -> Path:
    stack = "x" * 300
    events = []
    for step in range(40):
        events.append(
            {
                "ph": "X",
                "cat": "user_annotation",
                "name": f"ProfilerStep#{step}",
                "pid": 1,
                "tid": 1,
                "ts": step * 1000,
                "dur": 900,
            }
        )
        for k in range(mega * 50):
            op = {
                "ph": "X",
                "cat": "cpu_op",
                "name": f"op{k % 9}",
                "pid": 1,
                "tid": 1,
                "ts": step * 1000 + k % 800,
                "dur": 1,
            }
            events.append({**op, "args": {"External id": k, "Call stack": stack}})
    path.write_bytes(gzip.compress(json.dumps({"traceEvents": events}).encode(), 1))
    return path


def document(path: Path) -> str:
    return json.dumps(as_document(report(open_subject([path]))), sort_keys=True)


def folder_of(home: Path) -> Path:
    return next((home / "traces").iterdir())


def litter(home: Path) -> list[Path]:
    return list((home / "work").iterdir()) if (home / "work").exists() else []


def test_the_second_report_is_the_first_and_reads_no_events(
    home: Path, big: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = document(big)
    entry = cache.entries()[0]
    assert entry.facts["path"] == str(big)

    def never(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(
        cache.Entry,
        "table",
        lambda self, name, own=cache.Entry.table: own(self, name) if name == "tracks.arrow" else never(),
    )
    assert document(big) == first
    assert not litter(home)


def test_events_come_back_as_they_were(home: Path, big: Path) -> None:
    fresh = Trace.load(big, use_cache=False)
    assert fresh.entry is None
    Trace.load(big)
    again = Trace.load(big)
    assert again.entry is not None
    assert again.events.combine_chunks().equals(fresh.events.combine_chunks())
    assert again.tracks.equals(fresh.tracks)


def test_small_traces_are_not_kept(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "small.json"
    path.write_text(
        '{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1}]}'
    )
    document(path)
    assert cache.entries() == []


def test_the_content_is_the_key(home: Path, big: Path, tmp_path: Path) -> None:
    Trace.load(big)
    copy = tmp_path / "renamed.gz"
    shutil.copy(big, copy)
    Trace.load(copy)
    assert len(cache.entries()) == 1
    changed = made(tmp_path / "other.json.gz", 21)
    Trace.load(changed)
    assert len(cache.entries()) == 2


@pytest.mark.parametrize(
    "name", ["events.columns", "events.labels.arrow", "tracks.arrow", "entry.json", "attribution", "answer-steps"]
)
@pytest.mark.parametrize("harm", ["cut", "flip", "empty", "gone", "foreign"])
def test_a_damaged_entry_is_made_again(home: Path, big: Path, name: str, harm: str) -> None:
    truth = document(big)
    file = next(path for path in folder_of(home).iterdir() if path.name.startswith(name))
    content = bytearray(file.read_bytes())
    if harm == "cut":
        file.write_bytes(content[: len(content) // 2])
    elif harm == "flip":
        content[len(content) // 2] ^= 255
        file.write_bytes(content)
    elif harm == "empty":
        file.write_bytes(b"")
    elif harm == "gone":
        file.unlink()
    else:
        file.write_bytes(b'{"format": 1, "files": {}, "told": 7}' if name == "entry.json" else b"\x80\x04N." * 50)
    assert document(big) == truth
    assert len(Trace.load(big).events) == len(Trace.load(big, use_cache=False).events)


def test_something_else_in_its_place(home: Path, big: Path) -> None:
    document(big)
    folder = folder_of(home)
    shutil.rmtree(folder)
    folder.write_text("no folder at all")
    document(big)
    assert folder.is_dir()


def test_the_oldest_go_first(home: Path, big: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Trace.load(big)
    old = cache.entries()[0]
    os.utime(old.folder / "entry.json", (1, 1))
    monkeypatch.setenv(cache.LIMIT, str(int(old.size * 1.5)))
    Trace.load(made(tmp_path / "new.json.gz", 21))
    assert [entry.facts["path"] for entry in cache.entries()] == [str(tmp_path / "new.json.gz")]


def test_a_place_that_cannot_be_written_is_no_failure(
    big: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv(cache.DIRECTORY, str(tmp_path / "file" / "cache"))
    assert len(Trace.load(big).events)
    assert cache.entries() == []
    assert cache.clear() == 0


def test_listing_and_clearing(home: Path, big: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tracekit.cli import main

    Trace.load(big)
    assert main(["cache"]) == 0
    assert str(big) in capsys.readouterr().out
    assert main(["cache", "--clear"]) == 0
    assert cache.entries() == []
    assert not litter(home)


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
        assert time.monotonic() - began < 30  # at once; of a machine that is busy, not much is asked
        ended = (process.returncode, errors.decode())  # the last: Python was leaving already
        assert ended in ((130, "tracekit: interrupted\n"), (0, ""), (-signal.SIGINT, ""))
        assert not litter(home)
    assert document(big) == truth


def test_interrupted_while_others_help(home: Path, big: Path) -> None:
    """The helpers and what they wrote go with the reader. It is interrupted once both are at work."""
    code = (
        "import sys; from tracekit.trace.reading import convert; from tracekit.cli import entry\n"
        "convert.FEW, convert.WORTH_BYTES = 1, 0\n"
        f"sys.argv = ['tracekit', 'report', {str(big)!r}]; sys.exit(entry())"
    )
    environment = {**os.environ, cache.DIRECTORY: str(home), "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen([sys.executable, "-c", code], env=environment, stderr=subprocess.PIPE, text=True)
    helpers = await_children(process.pid)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, "tracekit: interrupted\n")
    deadline = time.monotonic() + 10  # one that was being started notices by itself that it is alone
    while any(Path(f"/proc/{helper}").exists() for helper in helpers):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert not litter(home)


def await_children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    if not listed.exists():
        pytest.skip("this kernel does not list children")
    for _ in range(2000):
        if found := [int(child) for child in listed.read_text().split()]:
            return found
        time.sleep(0.005)
    raise AssertionError("no helper was started")
