"""A trace is read from wherever it is stored."""

import gzip
import io
import os
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from tracekit.errors.reading import DirectoryGivenError, NoSuchFileError, SourceUnavailableError, UnreadableFileError
from tracekit.profile import open_subject
from tracekit.trace import Trace

TEXT = b'{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "mm", "pid": 1, "tid": 1, "ts": 1, "dur": 2}]}'


def zstd(content: bytes) -> bytes:
    return bytes(pa.compress(content, "zstd", asbytes=True))


@pytest.mark.parametrize(
    "content",
    [
        TEXT,
        gzip.compress(TEXT),
        gzip.compress(TEXT[:30]) + gzip.compress(TEXT[30:]),  # members, as log rotation and pigz write them
        gzip.compress(TEXT) + b"\0" * 512,  # padding, as tapes and some copies leave it
        zstd(TEXT),
        zstd(TEXT[:30]) + zstd(TEXT[30:]),
    ],
    ids=["plain", "gzip", "gzip members", "gzip padded", "zstd", "zstd frames"],
)
def test_packed_in_any_way(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "trace.bin"  # the content decides, not the name
    path.write_bytes(content)
    trace = Trace.load(path, use_cache=False)
    assert (trace.names, trace.lost, trace.damage) == (["mm"], 0, None)


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(TEXT))))
    subject = open_subject([Path("-")])
    assert (subject.profiles[0].name, len(subject.profiles[0].trace.events)) == ("stdin", 1)


def test_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(TEXT,))
    writer.start()
    assert len(Trace.load(path).events) == 1
    writer.join()


def test_a_folder_of_ranks(tmp_path: Path) -> None:
    for rank in range(2):
        (tmp_path / f"rank{rank}.json.gz").write_bytes(gzip.compress(TEXT))
    (tmp_path / "notes.txt").write_text("no trace")
    (tmp_path / "rank1.json.gz.tmp").write_bytes(b"left by a writer that wrote rank1 after all")
    (tmp_path / "rank2.json.tmp").write_bytes(TEXT)
    apart = open_subject([tmp_path], ranks=False).profiles
    assert [profile.name for profile in apart] == ["rank0", "rank1", "rank2"]
    (together,) = open_subject([tmp_path]).profiles
    assert (together.name, [*together.per_rank]) == (tmp_path.name, [0, 1, 2])


def test_a_folder_without_any(tmp_path: Path) -> None:
    with pytest.raises(DirectoryGivenError):
        open_subject([tmp_path])


def test_an_address() -> None:
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open("memory://bucket/trace.json", "wb") as file:
        file.write(TEXT)
    assert len(Trace.load("memory://bucket/trace.json").events) == 1
    with pytest.raises(SourceUnavailableError, match="bucket/none"):
        Trace.load("memory://bucket/none.json")
    with pytest.raises(SourceUnavailableError, match="nowhere"):
        Trace.load("nowhere://bucket/none.json")


def test_what_a_store_raises_is_a_sentence(monkeypatch):
    fsspec = pytest.importorskip("fsspec")

    def refused(*_, **__):
        raise Exception("no credentials\nand more")

    monkeypatch.setattr(fsspec, "open", refused)
    with pytest.raises(SourceUnavailableError, match=r"cannot be fetched \(no credentials\)"):
        Trace.load("s3://bucket/trace.json")


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(NoSuchFileError):
        Trace.load(tmp_path / "none.json")
    with pytest.raises(UnreadableFileError):
        Trace.load("a\0b")
