"""Folders for unfinished work: removed with the work or, after a kill, by the next process, unless still in use."""

import os
import shutil
import subprocess
import sys
import threading

from tracekit.base.workspace import remove_abandoned, workspace, workspace_anywhere

HOLD = """
import sys, time
from pathlib import Path
from tracekit.base.workspace import workspace
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
    with workspace(tmp_path) as folder:
        assert {*tmp_path.iterdir()} == {theirs, folder}
    assert (theirs / "mine").read_text() == "unsaved"
    holder.kill()
    holder.communicate()
    with workspace(tmp_path) as folder:
        assert [*tmp_path.iterdir()] == [folder]
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


def test_a_folder_that_another_process_removes_meanwhile_does_not_keep_the_others(tmp_path, monkeypatch):
    for name in ("1-a", "2-b", "3-c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "lock").touch()
    taken = []

    def vanish(folder):
        shutil.rmtree(folder)
        taken.append(folder)
        if len(taken) == 1:
            raise FileNotFoundError(folder)

    monkeypatch.setattr("tracekit.base.workspace.remove", vanish)
    remove_abandoned(tmp_path)
    assert len(taken) == 3
    assert not [*tmp_path.iterdir()]


def test_two_do_not_remove_the_same_at_once(tmp_path, monkeypatch):
    (tmp_path / "1-a").mkdir()
    (tmp_path / "1-a" / "lock").touch()
    seen = []
    second = threading.Thread(target=remove_abandoned, args=(tmp_path,))

    def slowly(folder):
        seen.append(folder)
        if len(seen) == 1:
            second.start()
            second.join(0.5)  # long enough for it to begin with the same folder, if it is allowed to
        shutil.rmtree(folder)

    monkeypatch.setattr("tracekit.base.workspace.remove", slowly)
    remove_abandoned(tmp_path)
    second.join()
    assert seen == [tmp_path / "1-a"]
    assert not [*tmp_path.iterdir()]
