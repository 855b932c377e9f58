"""An earlier run is never lost to a newer one, whatever happens while the newer one is written."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from tracekit import run as runs
from tracekit.run import Requested, Run, Variant

WRITER = """
import sys
from tracekit import run as runs
from tracekit.run import Requested, Run, Variant
for at in range(10_000):
    variants = [Variant(name=str(n), outcome="ok", requested=Requested(compile=False)) for n in range(300)]
    made = Run(created=f"2026-11-21T07:05:{at % 60:02}.{at:06}+00:00", tracekit="0", recipe="r", script="r.py",
               variants=variants, steps=at)
    runs.write(made, sys.argv[1])
    print(at, flush=True)
"""


def make_run(created="2026-11-21T07:05:01.000001+00:00", **more):
    variants = more.pop("variants", [Variant(name="eager", outcome="ok", requested=Requested(compile=False))])
    return Run(created=created, tracekit="0.1.0", recipe="gcn", script="gcn.py", variants=variants, **more)


def test_an_earlier_run_moves_aside_and_the_same_run_grows_in_place(tmp_path):
    path = tmp_path / "run.json"
    first = make_run("2026-11-21T07:05:01+00:00")
    second = make_run("2026-11-21T07:06:00+00:00")
    assert runs.write(first, path) is None
    assert runs.write(second, path) == tmp_path / "run-20261121-070501.json"
    grown = make_run("2026-11-21T07:06:00+00:00", data="more")
    assert runs.write(grown, path) is None
    assert {each.name for each in tmp_path.iterdir()} == {"run.json", "run-20261121-070501.json"}
    assert runs.read(path) == grown
    assert runs.read(tmp_path / "run-20261121-070501.json") == first


def test_an_earlier_run_never_overwrites_another(tmp_path):
    path = tmp_path / "run.json"
    for microsecond in range(4):  # all within one second, so that they need the same name
        runs.write(make_run(f"2026-11-21T07:05:01.00000{microsecond}+00:00"), path)
    names = sorted(each.name for each in tmp_path.iterdir())
    assert names == [
        "run-20261121-070501-2.json",
        "run-20261121-070501-3.json",
        "run-20261121-070501.json",
        "run.json",
    ]
    assert len({runs.read(each).created for each in tmp_path.iterdir()}) == 4


def test_a_foreign_file_in_the_way_is_kept_too(tmp_path):
    path = tmp_path / "run.json"
    path.write_text("my notes")
    runs.write(make_run(), path)
    others = [each for each in tmp_path.iterdir() if each != path]
    assert [each.read_text() for each in others] == ["my notes"]


def test_a_link_is_written_through(tmp_path):
    (tmp_path / "there").mkdir()
    link, path = tmp_path / "run.json", tmp_path / "there" / "best.json"
    runs.write(make_run("2026-11-21T07:05:01+00:00"), path)
    link.symlink_to(path)
    aside = runs.write(make_run("2026-11-21T07:06:00+00:00"), link)
    assert link.is_symlink()
    assert runs.read(path).created == "2026-11-21T07:06:00+00:00"
    assert aside == tmp_path / "there" / "best-20261121-070501.json"


def test_without_hard_links_an_earlier_run_is_copied(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(PermissionError("no links here")))
    runs.write(make_run("2026-11-21T07:05:01+00:00"), tmp_path / "run.json")
    runs.write(make_run("2026-11-21T07:06:00+00:00"), tmp_path / "run.json")
    assert runs.read(tmp_path / "run-20261121-070501.json").created == "2026-11-21T07:05:01+00:00"


def test_litter_of_a_killed_write_is_removed(tmp_path):
    old, young = tmp_path / ".tracekit-1.part", tmp_path / ".tracekit-2.part"
    old.write_text("{")
    young.write_text("{")
    os.utime(old, (time.time() - 3600,) * 2)
    runs.write(make_run(), tmp_path / "run.json")
    assert [old.exists(), young.exists()] == [False, True]


def test_killed_at_any_moment_the_run_is_whole_and_earlier_ones_are_there(tmp_path):
    root = Path(runs.__file__).parents[2]
    for attempt in range(8):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder / "run.json")],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(root)},
        )
        writer.stdout.readline()
        time.sleep(random.uniform(0, 0.15))
        writer.send_signal(signal.SIGKILL)
        written = int(([0] + [int(line) for line in writer.stdout.read().split()])[-1])
        writer.wait()
        steps = {runs.read(each).steps for each in folder.glob("run*.json")}
        assert steps >= set(range(written + 1))
        assert runs.read(folder / "run.json").steps >= written
