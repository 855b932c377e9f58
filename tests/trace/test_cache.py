"""What was read once is found again, complete or not at all, whatever else reads and however a reader ends."""

import os
import shutil
from pathlib import Path

import pytest

from tests.trace.cached_traces import document, folder_of, litter, made
from tracekit.trace import Trace
from tracekit.trace.reading import kineto, tables
from tracekit.trace.storing import cache

ROOT = Path(__file__).resolve().parents[2]


def test_the_second_report_is_the_first_and_reads_no_events(
    home: Path, big: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = document(big)
    entry = cache.entries()[0]
    assert entry.facts["path"] == str(big)

    def never(*_: object) -> None:
        raise AssertionError

    beside = ("tracks.arrow", "communications.arrow", "notes.arrow")
    monkeypatch.setattr(
        cache.Entry,
        "table",
        lambda self, name, original=cache.Entry.table: original(self, name) if name in beside else never(),
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


def test_few_events_are_written_only_where_they_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made(tmp_path / "some.json.gz", 1)
    unkept = kineto.read(path, folder=tmp_path, tables=tmp_path)
    assert unkept.file is None
    monkeypatch.setattr(cache, "WORTH_BYTES", unkept.bytes_read)
    kept = kineto.read(path, folder=tmp_path, tables=tmp_path)
    assert kept.file is not None
    assert kept.events.equals(unkept.events)
    monkeypatch.setattr(tables, "_ROWS_KEPT_IN_MEMORY", len(kept.events) - 1)
    monkeypatch.setattr(cache, "WORTH_BYTES", unkept.bytes_read + 1)
    assert kineto.read(path, folder=tmp_path, tables=tmp_path).file is not None


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
        file.write_bytes(b'{"format": 1, "files": {}, "facts": 7}' if name == "entry.json" else b"\x80\x04N." * 50)
    assert document(big) == truth
    assert len(Trace.load(big).events) == len(Trace.load(big, use_cache=False).events)


@pytest.mark.parametrize("name", ["", "events.columns", "entry.json"])
def test_an_entry_of_another_user_is_not_used(
    home: Path, big: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    document(big)
    theirs = (folder_of(home) / name).stat().st_ino
    content = cache.content_of(big)
    assert content is not None
    assert cache.find(content) is not None
    monkeypatch.setattr(cache, "is_ours", lambda status: status.st_ino != theirs)
    assert cache.find(content) is None


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
