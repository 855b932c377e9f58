"""A digest that was begun ahead is that of the file as it is when it is asked for."""

import hashlib
from pathlib import Path

import pytest

from tracekit.trace.storing import code_version


def of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


@pytest.fixture
def hashed(monkeypatch):
    """The files that were read, in order."""
    read: list[Path] = []
    original = code_version._digest
    monkeypatch.setattr(code_version, "_digest", lambda path: read.append(path) or original(path))
    return read


def test_large_files_are_read_in_blocks(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(code_version, "_BLOCK_BYTES", 7)
    for content in (b"", b"1234567", bytes(range(256))):
        (tmp_path / "file").write_bytes(content)
        assert code_version.digest_of(tmp_path / "file") == of(content)


def test_what_was_begun_is_worked_out_once(tmp_path: Path, hashed):
    files = [tmp_path / name for name in "ab"]
    for file in files:
        file.write_text(file.name)
    code_version.begin(files)
    assert [code_version.digest_of(file) for file in reversed(files)] == [of(b"b"), of(b"a")]
    assert hashed == files
    assert code_version.digest_of(files[0]) == of(b"a")
    assert hashed == [*files, files[0]]  # it may have changed since


def test_a_file_that_changed_meanwhile_is_read_again(tmp_path: Path, hashed):
    file = tmp_path / "trace.json"
    file.write_bytes(b"before")
    code_version.begin([file])
    other = tmp_path / "other"
    other.write_bytes(b"behind")
    other.replace(file)
    assert code_version.digest_of(file) == of(b"behind")


def test_what_cannot_be_read_is_an_error_only_when_it_is_asked_for(tmp_path: Path):
    missing, odd = tmp_path / "missing", Path("a\0b")
    code_version.begin([missing, tmp_path, odd])
    with pytest.raises(FileNotFoundError):
        code_version.digest_of(missing)
    with pytest.raises(ValueError, match="null byte"):
        code_version.digest_of(odd)
    gone = tmp_path / "gone"
    gone.write_bytes(b"here")
    code_version.begin([gone])
    gone.unlink()
    with pytest.raises(FileNotFoundError):
        code_version.digest_of(gone)
