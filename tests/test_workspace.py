"""Folders for unfinished work: removed with the work or, after a kill, by the next process, unless still in use."""

import os
import shutil
import subprocess
import sys
import threading

from tracekit.workspace import remove_abandoned, workspace, workspace_anywhere

HOLD = """
import sys, time
from pathlib import Path
from tracekit.workspace import workspace
with workspace(Path(sys.argv[1])) as folder:
    (folder / "mine").write_text("unsaved")
    print("ready", flush=True)
    time.sleep(600)
"""


def test_a_killed_process_leaves_a_folder_that_the_next_one_clears(tmp_path):
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "ready\n"
    (theirs,) = tmp_path.iterdir()
    assert theirs.name.startswith(f"{holder.pid}-")
    seen = []
    with workspace(tmp_path, seen.append) as folder:
        assert {*tmp_path.iterdir()} == {theirs, folder}
    assert not seen
    holder.kill()
    holder.communicate()
    with workspace(tmp_path, lambda left: seen.append((left / "mine").read_text())) as folder:
        assert [*tmp_path.iterdir()] == [folder]
    assert seen == ["unsaved"]
    assert not [*tmp_path.iterdir()]


def test_where_home_cannot_be_written_it_lies_among_temporary_files(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    os.mkdir(tmp_path / "temporary")
    with workspace_anywhere(tmp_path / "file") as folder:
        assert folder.is_relative_to(tmp_path / "temporary")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "file"))
    with workspace_anywhere(tmp_path / "file") as folder:
        assert folder is None


def test_a_folder_that_another_process_removes_meanwhile_does_not_keep_the_others(tmp_path):
    for name in ("1-a", "2-b", "3-c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "lock").touch()
    taken = []

    def vanish(folder):
        if not taken:
            taken.append(folder)
            shutil.rmtree(folder)
            raise FileNotFoundError(folder)

    remove_abandoned(tmp_path, vanish)
    assert taken
    assert not [*tmp_path.iterdir()]


def test_two_do_not_undo_the_same_at_once(tmp_path):
    (tmp_path / "1-a").mkdir()
    (tmp_path / "1-a" / "lock").touch()
    seen = []
    second = threading.Thread(target=remove_abandoned, args=(tmp_path, seen.append))

    def undo(folder):
        seen.append(folder)
        second.start()
        second.join(0.5)  # long enough for it to begin with the same folder, if it is allowed to

    remove_abandoned(tmp_path, undo)
    second.join()
    assert seen == [tmp_path / "1-a"]
    assert not [*tmp_path.iterdir()]
