"""Where files are kept that are no output, also where hardly anything can be written."""

import os
import tempfile

import pytest

from tracekit.base import workspace as workspace_module
from tracekit.base.workspace import state_folder, temporary_home, workspace_anywhere
from tracekit.cli import main
from tracekit.errors.asking import NoFolderError


@pytest.fixture
def no_temporary_folder(monkeypatch):
    def fail():
        raise FileNotFoundError(2, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr(tempfile, "gettempdir", fail)


@pytest.fixture
def no_home(tmp_path, monkeypatch):
    """A home in which nothing can be made, not even by root."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    return tmp_path / "file"


def test_who_has_a_home_needs_no_temporary_folder(tmp_path, monkeypatch, no_temporary_folder):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert state_folder("locks") == tmp_path / "tracekit" / "locks"
    with workspace_anywhere(tmp_path / "home") as folder:
        assert folder is not None


def test_who_has_no_home_gets_a_temporary_folder(tmp_path, monkeypatch, no_home):
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    assert state_folder("locks") == tmp_path / f"tracekit-state-{os.getuid()}" / "locks"


def test_who_has_neither_is_told_what_to_set(no_home, no_temporary_folder):
    with pytest.raises(NoFolderError, match=f"in temporary folders and {no_home}.* Set XDG_STATE_HOME to"):
        state_folder("locks")
    with pytest.raises(NoFolderError, match="Set TMPDIR to a folder"):
        temporary_home("tracekit")
    with workspace_anywhere(no_home / "home") as folder:
        assert folder is None


def test_who_only_reads_needs_neither(no_home, no_temporary_folder, capsys):
    assert main(["report", "sample_traces/run.json"]) == 0
    assert "No file can be made" not in capsys.readouterr().err


@pytest.mark.parametrize("make", ["others may write", "a link", "a file"])
def test_a_temporary_folder_that_others_can_write_is_not_used(tmp_path, monkeypatch, make):
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    folder = temporary_home("tracekit")
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.rmdir()
    if make == "others may write":
        folder.mkdir()
        folder.chmod(0o777)
    elif make == "a link":
        folder.symlink_to(tmp_path)
    else:
        folder.touch()
    with pytest.raises(NoFolderError):
        temporary_home("tracekit")


def test_a_temporary_folder_of_another_user_is_not_used(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    temporary_home("tracekit")
    monkeypatch.setattr(workspace_module, "is_ours", lambda status: False)
    with pytest.raises(NoFolderError):
        temporary_home("tracekit")
