"""One capture a folder at a time: the second is told who holds it, and the lock of a dead process is none."""

import subprocess
import sys
from pathlib import Path

import pytest

from tracekit.capture.guardian import folder_lock
from tracekit.cli import main

HOLDS = "from tracekit.capture.guardian import folder_lock\nwith folder_lock(): print(flush=True); input()"


def held(folder):
    """A process that holds the lock of that folder."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDS], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    holder.stdout.readline()
    return holder


@pytest.mark.parametrize("verb", ["capture", "audit"])
def test_a_second_one_in_the_folder_is_refused_and_told_the_first(tmp_path, monkeypatch, capsys, verb):
    (tmp_path / "here").mkdir()
    (tmp_path / "linked").symlink_to("here")
    monkeypatch.chdir(tmp_path / "linked")
    Path("train.py").write_text("raise SystemExit(3)\n")
    holder = held(tmp_path / "here")
    try:
        assert main([verb, "train.py"]) == 1
    finally:
        holder.kill()
        holder.wait()
    said = capsys.readouterr().err
    assert f"{tmp_path / 'here'}: process {holder.pid} is capturing in this folder." in said
    with folder_lock():
        pass


def test_a_process_may_hold_it_several_times(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with folder_lock():
        with folder_lock():
            pass
        inner = subprocess.run([sys.executable, "-c", HOLDS], capture_output=True, text=True, check=False)
        assert "FolderInUseError" in inner.stderr
    holder = held(tmp_path)
    holder.communicate("\n")
    assert holder.returncode == 0
