"""The journal of what a program does to files: every entry is read back as it was written, and nothing else is."""

import errno
import fcntl
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import pytest

from tests.capture.capturing import perform
from tracekit.capture import journal
from tracekit.capture.guardian import abandoned
from tracekit.capture.journal import back_up, undo
from tracekit.cli import main

ODD = os.fsdecode(b"/data/\xff.pt")  # a name that is not UTF-8
ENTRIES = [
    journal.Made(ODD, True),
    journal.MadeFolder("/data", True),
    journal.Read(ODD, True),
    journal.Changed(ODD, False, "/backups/1-1", "0" * 64, (1 << 60, (1 << 60) + 1)),
    journal.ChangedLink("/data/latest", False, ODD),
    journal.ChangedStatus("/data", False, 0o750, 1000, 0),
    journal.Renamed(ODD, False, "/data/best.pt", 7),
    journal.RemovedFolder("/data/old", False),
]


def test_every_entry_is_read_back(tmp_path):
    assert {type(each) for each in ENTRIES} == {*get_args(journal.Entry)}
    (tmp_path / "entries").write_bytes(b"".join(map(journal.encoded, [journal.Unknown("('x',)"), *ENTRIES])))
    assert [*journal.read(tmp_path / "entries")] == ENTRIES
    assert [*journal.read(tmp_path / "none")] == []


def test_an_incomplete_entry_costs_no_other(tmp_path):
    first, *_, last = map(journal.encoded, ENTRIES)
    (tmp_path / "entries").write_bytes(first + b'{"op": "melted", "path": "/x"}\n' + last + last[:-9])
    assert [*journal.read(tmp_path / "entries")] == [ENTRIES[0], ENTRIES[-1]]


def test_files_links_and_folders_are_restored(tmp_path):
    here, folder = tmp_path / "here", tmp_path / "journal"
    here.mkdir()
    folder.mkdir()
    odd = here / os.fsdecode(b"\xff.pt")
    odd.write_text("before")
    entries = [changed(odd, folder, times=(5, 7))]
    odd.write_text("after")
    (here / "moved").write_text("moved")
    (here / "new").write_text("new")
    (here / "link").symlink_to("elsewhere")
    entries += [
        journal.Made(str(here / "new"), False),
        journal.ChangedLink(str(here / "link"), False, "target"),
        journal.Renamed(str(here / "name"), False, str(here / "moved"), 7),
        journal.RemovedFolder(str(here / "old"), False),
    ]
    write(folder, entries)
    assert undo(folder).failed == {}
    assert sorted(each.name for each in here.iterdir()) == ["link", "name", "old", odd.name]
    assert odd.read_text() == "before"
    assert odd.stat().st_mtime_ns == 7
    assert os.readlink(here / "link") == "target"
    assert not (folder / journal.JOURNAL).exists()


def changed(file, folder, times=(1, 2)):
    """The entry of a file that is about to be changed, with a backup."""
    backup = back_up(str(file), folder, f"1-{file.name}")
    return journal.Changed(str(file), False, backup, journal.digest(backup), times)


def write(folder, entries):
    (folder / journal.JOURNAL).write_bytes(b"".join(map(journal.encoded, entries)))


@pytest.fixture
def killed(tmp_path, monkeypatch):
    """A checkpoint that a capture changed before it was killed, with its guardian, and its backup."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder, file = journal.home() / "1-killed", tmp_path / "ckpt.txt"
    folder.mkdir()
    file.write_text("mine")
    entry = changed(file, folder)
    write(folder, [entry])
    file.write_text("the capture's")
    journal.record_states(folder)
    return SimpleNamespace(folder=folder, file=file, backup=Path(entry.backup))


def test_every_verb_names_what_restores_it(killed, capsys):
    main(["explain", "idle"])
    assert (
        "a capture was killed before the files it changed were put back. See: tracekit restore"
        in capsys.readouterr().err
    )
    assert main(["restore", "--dry-run"]) == 0
    assert capsys.readouterr().out == f"to restore: {killed.file}\n"
    assert killed.file.read_text() == "the capture's"
    assert main(["restore"]) == 0
    assert killed.file.read_text() == "mine"
    main(["restore"])
    assert "Nothing to restore." in capsys.readouterr().err


def test_a_file_that_is_newer_than_a_killed_capture_is_kept_and_both_paths_are_said(killed, capsys):
    killed.file.write_text("trained for hours")
    assert main(["restore"]) == 1
    said = capsys.readouterr().out
    assert said.startswith(f"kept: {killed.file} (it has changed since, ")
    assert f"as it was before: {killed.backup})" in said
    assert killed.file.read_text() == "trained for hours"
    assert killed.backup.read_text() == "mine"
    assert main(["restore", "--discard"]) == 0
    assert not killed.folder.exists()


def test_a_journal_without_known_states_restores_nothing(killed):
    (killed.folder / journal.LEFT).unlink()
    assert main(["restore"]) == 1
    assert (killed.file.read_text(), killed.backup.read_text()) == ("the capture's", "mine")


def test_a_damaged_backup_replaces_nothing(killed, capsys):
    killed.backup.write_text("min")
    assert main(["restore"]) == 1
    assert "its backup is damaged" in capsys.readouterr().out
    assert (killed.file.read_text(), killed.backup.read_text()) == ("the capture's", "min")


def test_an_undoing_that_was_interrupted_removes_nothing_that_it_put_back(tmp_path):
    """The user's file was moved away, and another took its place: begun anew, it would remove the user's."""
    (tmp_path / "a").write_text("the user's")
    write(
        tmp_path,
        [journal.Renamed(str(tmp_path / "a"), False, str(tmp_path / "b"), 7), journal.Made(str(tmp_path / "a"), False)],
    )
    (tmp_path / journal.HANDLED).write_text("1\n0\n")
    undo(tmp_path)
    assert (tmp_path / "a").read_text() == "the user's"


def test_a_file_that_was_about_to_be_moved_when_the_capture_was_killed_stays(tmp_path):
    source, target = tmp_path / "a", tmp_path / "b"
    source.write_text("a")
    target.write_text("b")
    write(tmp_path, [changed(target, tmp_path), journal.Renamed(str(source), False, str(target), source.stat().st_ino)])
    journal.record_states(tmp_path)
    assert undo(tmp_path, journal.recorded_states(tmp_path)).failed == {}
    assert (source.read_text(), target.read_text()) == ("a", "b")


def test_where_there_is_no_space_for_a_backup_the_script_may_not_write(tmp_path, monkeypatch):
    monkeypatch.setenv("TRACEKIT_VIEW", "off")
    monkeypatch.chdir(tmp_path)
    full = tmp_path / "full"
    full.mkdir()
    (tmp_path / "traces").mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", full], check=False, capture_output=True
    ).returncode:
        pytest.skip("only root can make a small disk")
    try:
        (full / "ckpt.pt").write_bytes(b"mine" * 50_000)
        Path("train.py").write_text("open('full/ckpt.pt', 'wb').write(bytes(290_000))\n")
        result = perform(tmp_path / "traces", "measure", tmp_path / "train.py", is_script=True)
        assert "tracekit cannot back it up (No space left on device)" in result.error
        assert (full / "ckpt.pt").read_bytes() == b"mine" * 50_000
        assert [each.name for each in full.iterdir()] == ["ckpt.pt"]
    finally:
        subprocess.run(["umount", full], check=True)


def test_a_file_of_several_names_is_restored_under_all_of_them(tmp_path):
    file, other = tmp_path / "ckpt.pt", tmp_path / "copy.pt"
    file.write_text("before")
    os.link(file, other)
    backup = tmp_path / "backup"
    backup.write_text("before")
    entry = journal.Changed(str(file), False, str(backup), journal.digest(str(backup)), (5, 7))
    (tmp_path / journal.JOURNAL).write_bytes(journal.encoded(entry))
    file.write_text("after it")
    assert undo(tmp_path).failed == {}
    assert (file.read_text(), other.read_text()) == ("before", "before")
    assert file.stat().st_nlink == 2
    assert not backup.exists()


SCRIPT = """
import os, shutil, subprocess
{}
raise SystemExit(3)
"""


def after_a_pass(tmp_path, monkeypatch, code):
    """The result of a pass without a view, in a folder of the user's."""
    monkeypatch.setenv("TRACEKIT_VIEW", "off")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    here, traces = tmp_path / "here", tmp_path / "traces"
    traces.mkdir()
    here.mkdir(exist_ok=True)
    monkeypatch.chdir(here)
    (tmp_path / "train.py").write_text(SCRIPT.format(code))
    result = perform(traces, "measure", tmp_path / "train.py", is_script=True)
    assert "(exit code 3)" in result.error
    assert result.written.failed == {}
    return result


def test_owners_and_permissions_are_restored(tmp_path, monkeypatch):
    if os.getuid():
        pytest.skip("only root can give files away")
    here = tmp_path / "here"
    (here / "folder").mkdir(parents=True)
    (here / "a.pt").write_text("mine")
    os.chown(here / "a.pt", 1234, 1234)
    (here / "a.pt").chmod(0o640)
    (here / "folder").chmod(0o750)
    code = (
        "os.chown('a.pt', 0, 7)\nos.chown('folder', 7, 7)\n"
        "with open('a.pt') as file: os.fchmod(file.fileno(), 0o600)\nos.chmod('folder', 0o700)"
    )
    result = after_a_pass(tmp_path, monkeypatch, code)
    found = {name: (here / name).stat() for name in ("a.pt", "folder")}
    assert {name: (each.st_mode & 0o777, each.st_uid, each.st_gid) for name, each in found.items()} == {
        "a.pt": (0o640, 1234, 1234),
        "folder": (0o750, 0, 0),
    }
    assert sorted(result.written.undone) == [str(here / "a.pt"), str(here / "folder")]


def test_a_folder_is_removed_though_backups_lie_on_its_disk(tmp_path, monkeypatch):
    """Backups were made in the folder of the file, which could not be removed any more."""
    disk = tmp_path / "here" / "disk"
    disk.mkdir(parents=True)
    if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", disk], check=False, capture_output=True).returncode:
        pytest.skip("only root can mount")
    try:
        (disk / "old" / "deep").mkdir(parents=True)
        (disk / "old" / "deep").chmod(0o710)
        for name in ("old/a.pt", "old/deep/b.pt"):
            (disk / name).write_text(name)
        after_a_pass(tmp_path, monkeypatch, "shutil.rmtree('disk/old')\nassert not os.path.exists('disk/old')")
        assert {str(each.relative_to(disk)) for each in disk.rglob("*")} == {
            "old",
            "old/a.pt",
            "old/deep",
            "old/deep/b.pt",
        }
        assert (disk / "old/deep/b.pt").read_text() == "old/deep/b.pt"
        assert (disk / "old/deep").stat().st_mode & 0o777 == 0o710
    finally:
        subprocess.run(["umount", disk], check=True)


def test_what_a_child_writes_to_a_file_that_the_script_wrote_is_undone(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "log.txt").write_text("mine")
    code = "open('log.txt', 'a').write('more')\nsubprocess.run(['sh', '-c', 'rm log.txt; echo other > log.txt'])"
    after_a_pass(tmp_path, monkeypatch, code)
    assert Path("log.txt").read_text() == "mine"


def test_where_folders_cannot_be_locked_a_capture_without_a_view_says_so(tmp_path, monkeypatch, killed, capsys):
    monkeypatch.setenv("TRACEKIT_VIEW", "off")
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("open('a.pt', 'w')\n")

    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    assert main(["audit", "train.py"]) == 1
    said = capsys.readouterr().err
    assert "folders cannot be locked there (No locks available)" in said
    assert "Set XDG_STATE_HOME" in said
    assert not Path("a.pt").exists()
    assert [each.name for each in journal.home().iterdir()] == ["1-killed"]
    assert abandoned() == []  # nobody knows whether its capture still runs
