"""What a script writes in its passes is discarded: no file of the user's changes, no pass resumes from another's."""

import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.capture.capturing import perform
from tests.capture.test_interruptions import start_capture
from tracekit import run as runs
from tracekit.capture import process
from tracekit.capture.file_view import caches, with_files
from tracekit.capture.job import Job
from tracekit.capture.process import FolderState
from tracekit.cli import main
from tracekit.run import Effective

WRITES = """
import os, pathlib, shutil, subprocess, sys, torch
if not os.path.exists("data/raw.bin"):
    print("fetched")
    os.makedirs("data/more")
    open("data/more/unread.bin", "w").write("0")
    open("data/part", "w").write("1")
    os.rename("data/part", "data/raw.bin")
open("data/raw.bin").read()
os.makedirs("out")  # fails where an earlier pass has left it
open("out/config.json", "w").write("{}")
net = torch.nn.Linear(4, 1)
if os.path.exists("model.pt"):
    print("resumed", torch.load("model.pt")["epoch"])
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(12):
    net(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    torch.save({"epoch": epoch + 100}, "model.pt")
    torch.save({"epoch": epoch}, pathlib.Path(__file__).with_name("beside.pt"))
    open("log.txt", "a").write("x")
    open("best.tmp", "w").write("best")
    os.replace("best.tmp", "best.txt")
    subprocess.run([sys.executable, "-c", "open('out/childs', 'w')"]) if epoch == 3 else None
    if epoch == 5:
        os.rename("log.txt", "log.1")
        open("log.1", "a").write("y")
        os.remove("gone.txt")
        shutil.rmtree("old")
        os.symlink("model.pt", "latest")
        os.chmod("mode.sh", 0o600)
print(os.path.exists("out/childs"))
"""


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    import torch

    here, scripts = tmp_path / "here", tmp_path / "scripts"
    (here / "old" / "deep").mkdir(parents=True)
    scripts.mkdir()
    (scripts / "train.py").write_text(WRITES)
    for name in ("log.txt", "best.txt", "gone.txt", "mode.sh", "old/a", "old/deep/b"):
        (here / name).write_text(f"before {name}")
    (here / "mode.sh").chmod(0o755)
    torch.save({"epoch": 7}, here / "model.pt")
    monkeypatch.chdir(here)
    return tmp_path


def tree(folder):
    """Every file, byte for byte, with its mode and the time of its last change, except for the run and the data."""
    return {
        str(each.relative_to(folder)): (each.lstat().st_mode, each.lstat().st_mtime_ns, each.read_bytes())
        for each in sorted(folder.rglob("*"))
        if (each.is_file() or each.is_symlink()) and not {"data", "__pycache__"} & {*each.parts}
    }


def without_runs(files):
    return {name: state for name, state in files.items() if not name.startswith("here/run")}


def test_nothing_changes_and_nothing_is_resumed(workplace, capsys):
    before = tree(workplace)
    given = ["--variants", "eager", "--steps", "2", "--passes", "2", "--device", "cpu"]
    assert main(["capture", "../scripts/train.py", *given]) == 0
    assert without_runs(tree(workplace)) == before
    # Data that a pass prepared and read before its first step remains for the next pass, as for a second run.
    assert sorted(each.name for each in Path("data").rglob("*.bin")) == ["raw.bin", "unread.bin"]
    (eager,) = runs.read("run.json").variants
    logs = [Path(eager.traces.steady).with_name(f"{stage}.log").read_text() for stage in ("measure", "profile")]
    assert logs[0] == "fetched\nresumed 7\nTrue\n"
    assert logs[1].startswith("resumed 7\n")
    said = capsys.readouterr().err
    assert "what it wrote was discarded: " in said
    assert "data that it prepared before its first step is left: data/more/unread.bin, data/raw.bin" in said


FOREIGN = """
import ctypes, sqlite3, subprocess, sys
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
file = libc.fopen(b"by_c.bin", b"wb")
libc.fputs(b"other", ctypes.c_void_p(file))
libc.fclose(ctypes.c_void_p(file))
subprocess.run([sys.executable, "-c", "open('by_a_child.txt', 'a').write('more')"], check=True)
table = sqlite3.connect("results.db")
table.execute("insert into results values (2)")
table.commit()
sqlite3.connect("file:new.db?mode=rwc", uri=True).execute("create table results (epoch)")
sqlite3.connect(":memory:").execute("create table results (epoch)")
open("by_python.txt", "w").write("undone")
raise SystemExit(3)
"""


def test_what_others_than_python_write_is_discarded_too(tmp_path, monkeypatch):
    before, result, after = foreign(tmp_path, monkeypatch)
    assert after == before
    said = {os.path.basename(each) for each in result.written.discarded}
    assert said == {"by_c.bin", "by_a_child.txt", "by_python.txt", "new.db", "results.db"}


def test_without_a_view_what_others_than_python_write_is_undone_or_told(tmp_path, monkeypatch):
    monkeypatch.setenv("TRACEKIT_VIEW", "off")
    before, result, after = foreign(tmp_path, monkeypatch)
    assert {name for name in {*before, *after} if before.get(name) != after.get(name)} == {"by_c.bin", "by_a_child.txt"}
    said = with_files(Effective(), [result])
    assert said.notes[0].startswith(
        "files changed and were not put back: by_a_child.txt, by_c.bin. A library in C or another program wrote them"
    )
    assert any("no copy-on-write view of them (TRACEKIT_VIEW=off)" in each for each in said.remarks)


def foreign(tmp_path, monkeypatch):
    """The files before and after one pass of a script most of whose writing Python does not see, and its result."""
    (tmp_path / "traces").mkdir()
    (tmp_path / "here" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    Path("train.py").write_text(FOREIGN)
    for name in ("by_c.bin", "by_a_child.txt", "by_python.txt", "untouched.txt"):
        Path(name).write_text(f"before {name}")
    with sqlite3.connect("results.db") as table:
        table.execute("create table results (epoch)")
    before = tree(tmp_path / "here")
    result = perform(tmp_path / "traces", "measure", "train.py", is_script=True)
    after = tree(tmp_path / "here")
    assert "(exit code 3)" in result.error
    return before, result, after


def test_of_a_large_folder_the_files_nearest_to_the_top_are_looked_at(tmp_path, monkeypatch):
    monkeypatch.setattr(process, "_MOST_FILES", 4)
    for name in ("deep/er/c", "deep/b", "a", "deep/er/d", "deep/er/e", ".git/index", "spared/x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("before")
    state = FolderState([str(tmp_path), str(tmp_path / "deep")], [str(tmp_path / "spared")])
    (tmp_path / "deep/b").write_text("after, and longer")
    (tmp_path / "a").unlink()
    for name in ("new", "spared/x", ".git/index"):
        (tmp_path / name).write_text("after, and longer")
    assert state.changed() == [str(tmp_path / "a"), str(tmp_path / "deep/b")]


def test_a_file_that_the_capture_itself_prints_to_is_nobody_elses(tmp_path):
    code = (
        "from tracekit.capture.process import FolderState\n"
        "state = FolderState(['.'], [])\n"
        "print('captured', flush=True)\n"
        "open('other', 'w').write('new')\n"
        "open('../changed', 'w').write(' '.join(state.changed()))\n"
    )
    here = tmp_path / "here"
    here.mkdir()
    with open(here / "log", "wb") as log:
        subprocess.run([sys.executable, "-c", code], cwd=here, stdout=log, stderr=log, check=True)
    assert (tmp_path / "changed").read_text() == str(here / "other")


def test_in_place_all_of_it_stays(workplace):
    with process.scratch() as scratch:
        job = Job(stage="measure", program="../scripts/train.py", is_script=True, in_place=True, folder=str(workplace))
        assert process.perform(job, scratch, workplace / "measure.log", 100).outcome == "ok"
    assert Path("log.1").read_text().startswith("before log.txt")
    assert Path("out/config.json").exists()


def test_an_audit_leaves_what_was_there(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(SAVES)
    Path("model.pt").write_text("mine")
    assert main(["audit", "train.py"]) == 0
    assert sorted(each.name for each in tmp_path.iterdir()) == ["model.pt", "train.py"]
    assert Path("model.pt").read_text() == "mine"
    assert "what it wrote was discarded: log.txt, model.pt (--in-place keeps it)" in capsys.readouterr().err


SAVES = """
import torch
model = torch.nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    model(torch.ones(2, 4, device="cuda")).sum().backward()
    optimizer.step()
    torch.save(model.state_dict(), "model.pt")
    open("log.txt", "a").write("x")
"""


def test_a_recipe_changes_no_file_and_keeps_what_it_fetched(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("notes.txt").write_text("mine")
    Path("fetching.py").write_text(
        "import os\n"
        "def prepare(ctx):\n"
        "    os.makedirs('data/raw')\n"
        "    open('data/raw/graph', 'w').write('fetched')\n"
        "    open('notes.txt', 'w').write('changed')\n"
        "def setup(ctx): ...\n"
    )
    with process.scratch() as scratch:
        job = Job(stage="inspect", program="fetching.py")
        assert process.perform(job, scratch, scratch / "inspect.log", 100).outcome == "ok"
    assert Path("data/raw/graph").read_text() == "fetched"
    assert Path("notes.txt").read_text() == "mine"


def test_a_capture_that_was_killed_has_altered_nothing(workplace):
    before = tree(workplace)
    script = Path("../scripts/train.py")
    script.write_text(WRITES + "print('arrived', flush=True)\n__import__('time').sleep(60)\n")
    before["scripts/train.py"] = tree(workplace)["scripts/train.py"]
    capture = start_capture(script, "run.json", "eager")
    ends = time.monotonic() + 60
    while not any("arrived" in each.read_text() for each in Path().glob("run-*/eager/measure.log")):
        assert time.monotonic() < ends
        time.sleep(0.1)
    capture.kill()
    capture.wait()
    assert without_runs(tree(workplace)) == before


def test_what_raises_and_what_dies_leaves_nothing_either(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    traces = tmp_path / "traces"
    traces.mkdir()
    for end in ("raise ValueError", "import os; os.kill(os.getpid(), 9)"):
        Path("train.py").write_text(f"open('new', 'w')\n{end}\n")
        assert perform(traces, "measure", "train.py", is_script=True).outcome != "ok"
        assert not Path("new").exists()


def test_a_folder_that_holds_the_project_is_no_cache(tmp_path, monkeypatch):
    project, cache = tmp_path / "disk" / "project", tmp_path / "cache"
    project.mkdir(parents=True)
    cache.mkdir()
    monkeypatch.setenv("HF_HOME", str(tmp_path / "disk"))
    monkeypatch.setenv("TORCH_HOME", str(cache))
    assert str(cache) in caches([str(project)])
    assert str(tmp_path / "disk") not in caches([str(project)])
