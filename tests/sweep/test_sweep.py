"""Sweeps resume where they were interrupted, run nothing twice, and record failures as results."""

import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from tests.study.planting import sweep_file, write_run
from tracekit.errors.asking import OutputError
from tracekit.errors.capturing import (
    NoCellError,
    NoInterpreterError,
    NothingCapturedError,
    OtherOptionsError,
    RecipeFailedError,
    StudyInUseError,
)
from tracekit.study import read_study
from tracekit.sweep import SweepOptions, runner, sweep
from tracekit.sweep.runner import locked
from tracekit.sweep.sweep_file import cells, read_sweep

GRID = '[sweep]\nrecipes = ["net.py"]\nseeds = [0, 1]\n[sweep.params]\nmodel = ["gcn", "gat"]\n'
KILLS = 50 if os.environ.get("TRACEKIT_VERIFY") else 5


@pytest.fixture
def captured(monkeypatch):
    """The captures that a sweep requests: each writes a planted run, and `how` can make one fail."""
    asked = []

    def capture(options):
        asked.append(options)
        if capture.how is not None:
            capture.how(options)
        return write_run(options, 10)

    capture.how = None
    capture.asked = asked
    monkeypatch.setattr(runner, "capture", capture)
    return capture


def options(tmp_path, text=GRID, **more):
    file = sweep_file(tmp_path, text)
    return SweepOptions(
        file=file, out=tmp_path / "study", devices=("cpu",), tell=more.pop("tell", lambda _: None), **more
    )


def outcomes(tmp_path):
    return [each.outcome for each in read_study(tmp_path / "study").results]


def test_every_cell_is_run_once(tmp_path, captured):
    assert sweep(options(tmp_path)) == 0
    assert sweep(options(tmp_path)) == 0
    assert len(captured.asked) == 8
    assert {(str(each.params["model"]), each.seed, each.variants[0]) for each in captured.asked} == set(
        itertools.product(("gcn", "gat"), (0, 1), ("eager", "compiled"))
    )
    assert outcomes(tmp_path) == ["ok"] * 8
    assert all(each.run.variants[0].measured for each in read_study(tmp_path / "study").results)


def test_a_dry_run_runs_nothing_and_estimates_by_what_was_timed(tmp_path, captured):
    lines = []
    sweep(options(tmp_path, dry_run=True, tell=lines.append))
    assert lines[-1] == "8 cells, 8 of them to run."
    assert not captured.asked
    assert not (tmp_path / "study").exists()
    sweep(options(tmp_path, only={"model": ["gcn"]}))
    sweep(options(tmp_path, dry_run=True, tell=lines.append))
    assert lines[-1].startswith("8 cells, 4 of them to run; about ")


def test_cells_are_selected_by_their_axes(tmp_path, captured):
    sweep(options(tmp_path, only={"model": ["gat"], "mode": ["default"]}))
    assert {(each.params["model"], each.variants[0]) for each in captured.asked} == {("gat", "compiled")}
    with pytest.raises(NoCellError, match="The axes are: mode=eager,default"):
        sweep(options(tmp_path, only={"model": ["gin"]}))


def test_memory_that_runs_out_before_the_first_step_is_told_apart(tmp_path, captured):
    def how(given):
        raise RecipeFailedError(given.program, "MemoryError: out of memory: 3.00 GiB free on the host", "oom")

    captured.how = how
    assert sweep(options(tmp_path)) == 1
    assert {*outcomes(tmp_path)} == {"oom"}


def test_failures_are_results_and_can_be_tried_again(tmp_path, captured):
    def how(given):
        if given.variants[0] == "compiled" and given.seed == 0:
            raise NothingCapturedError(given.program, "measure: OutOfMemoryError: tried 3 GiB, 1 GiB free", "oom")
        if given.variants[0] == "compiled":
            raise RecipeFailedError(given.program, "ValueError: no")

    captured.how = how
    assert sweep(options(tmp_path)) == 1
    failed = [each.record for each in read_study(tmp_path / "study").results if each.outcome != "ok"]
    assert [(each.outcome, each.error) for each in failed[:2]] == [
        ("oom", "measure: OutOfMemoryError: tried 3 GiB, 1 GiB free"),
        ("error", str(RecipeFailedError(captured.asked[0].program, "ValueError: no"))),
    ]
    captured.how = None
    assert sweep(options(tmp_path)) == 1  # failed cells have been run, too
    assert len(captured.asked) == 8
    assert sweep(options(tmp_path, retry=("oom",))) == 1
    assert outcomes(tmp_path).count("error") == 2
    assert "oom" not in outcomes(tmp_path)
    assert sweep(options(tmp_path, retry=("failed",))) == 0


def test_without_its_interpreter_a_cell_is_skipped(tmp_path, captured):
    def how(given):
        if given.variants[0] == "compiled":
            raise NoInterpreterError("envs/dgl/bin/python", "No such file or directory")

    captured.how = how
    assert sweep(options(tmp_path)) == 1
    assert outcomes(tmp_path).count("skipped") == 4
    assert sweep(options(tmp_path)) == 1
    assert len(captured.asked) == 8


def test_an_interrupted_cell_is_no_result(tmp_path, captured):
    def how(given):
        if len(captured.asked) == 3:
            raise KeyboardInterrupt

    captured.how = how
    with pytest.raises(KeyboardInterrupt):
        sweep(options(tmp_path))
    assert outcomes(tmp_path) == ["ok"] * 2 + ["planned"] * 6
    captured.how = None
    assert sweep(options(tmp_path)) == 0
    assert not list((tmp_path / "study" / "running").glob("*"))


def test_a_full_disk_stops_the_sweep_and_is_no_result(tmp_path, captured, monkeypatch):
    def how(given):
        raise OutputError(given.out, "No space left on device")

    captured.how = how
    with pytest.raises(OutputError, match="No space left on device"):
        sweep(options(tmp_path))
    assert outcomes(tmp_path) == ["planned"] * 8
    monkeypatch.setattr(shutil, "disk_usage", lambda _: type("Usage", (), {"free": 1 << 20}))
    with pytest.raises(OutputError, match="64 MiB"):
        sweep(options(tmp_path))


def test_two_sweeps_into_one_folder_refuse_each_other(tmp_path, captured):
    (tmp_path / "study").mkdir()
    with locked(tmp_path / "study"), pytest.raises(StudyInUseError):
        sweep(options(tmp_path))
    assert sweep(options(tmp_path)) == 0


def test_cells_of_other_options_are_not_mixed(tmp_path, captured):
    sweep(options(tmp_path))
    with pytest.raises(OtherOptionsError, match="steps 20, now 5"):
        sweep(options(tmp_path, GRID + "[sweep.options]\nsteps = 5\n"))


def test_threads_are_those_of_the_file_or_the_command(tmp_path, captured):
    of_the_file = GRID + "[sweep.options]\nthreads = 3\n"
    sweep(options(tmp_path, of_the_file))
    assert {each.threads for each in captured.asked} == {3}
    with pytest.raises(OtherOptionsError, match="threads 3, now 1"):
        sweep(options(tmp_path, of_the_file, threads=1))
    shutil.rmtree(tmp_path / "study")
    captured.asked.clear()
    sweep(options(tmp_path, of_the_file, threads=1))
    assert {each.threads for each in captured.asked} == {1}


def test_a_larger_grid_adds_cells(tmp_path, captured):
    sweep(options(tmp_path))
    sweep(options(tmp_path, GRID.replace('"gat"', '"gat", "gin"')))
    assert len(captured.asked) == 12
    sweep(options(tmp_path, GRID.replace(', "gat"', "")))
    assert outcomes(tmp_path) == ["ok"] * 12


@pytest.fixture
def half_minutes(monkeypatch):
    """A clock by which every cell takes 30 s."""
    clock = itertools.count(step=30)
    monkeypatch.setattr(runner, "time", SimpleNamespace(monotonic=lambda: next(clock)))


def test_the_time_left_is_told_once_a_cell_has_run(tmp_path, captured, half_minutes):
    lines = []
    sweep(options(tmp_path, tell=lines.append))
    assert lines[0] == "[1/8] net model=gcn seed=0: eager …"
    assert lines[1] == "  ok, 30.0 s; 7 cells left, about 210 s"
    assert lines[15] == "  ok, 30.0 s"


def test_a_resumed_sweep_says_what_is_done_and_what_remains(tmp_path, captured, half_minutes):
    lines = []
    sweep(options(tmp_path, only={"model": ["gcn"]}))
    sweep(options(tmp_path, tell=lines.append))
    assert lines[0] == "4 of 8 cells done already; 4 cells left, about 120 s."
    assert lines[1] == "[5/8] net model=gat seed=0: eager …"
    assert lines[2] == "  ok, 30.0 s; 3 cells left, about 90.0 s"
    lines.clear()
    sweep(options(tmp_path, tell=lines.append))
    assert lines[0] == "8 of 8 cells done already."


def test_two_devices_take_half_the_time(tmp_path, captured, half_minutes):
    lines = []
    sweep(options(tmp_path, only={"model": ["gcn"]}))
    given = options(tmp_path, dry_run=True)
    study, chosen = read_study(tmp_path / "study"), cells(read_sweep(given.file))
    runner.Progress(study, chosen, chosen[4:], lines.append, devices=2).resume()
    assert lines == ["4 of 8 cells done already; 4 cells left, about 60.0 s."]


def test_devices_work_side_by_side(tmp_path, captured):
    def how(given):
        running.add(given.device)
        seen.append(len(running))
        time.sleep(0.05)
        running.discard(given.device)

    running, seen = set(), []
    captured.how = how
    given = options(tmp_path)
    assert sweep(replace(given, devices=("cuda:0", "cuda:1"))) == 0
    assert {each.device for each in captured.asked} == {"cuda:0", "cuda:1"}
    assert max(seen) == 2
    assert outcomes(tmp_path) == ["ok"] * 8


_SWEEPING = """
import sys, time
from pathlib import Path
from tests.study.planting import write_run
from tracekit.sweep import SweepOptions, runner, sweep
from tracekit.sweep.sweep_file import cells
def capture(options):
    time.sleep(0.02)
    run = write_run(options, 10)
    time.sleep(0.01)
    print(options.out.parent.name, flush=True)
    return run
runner.capture = capture
sys.exit(sweep(SweepOptions(file=Path(sys.argv[1]), out=Path(sys.argv[2]), devices=("cpu",), tell=lambda _: None)))
"""


def test_a_sweep_killed_at_any_moment_loses_at_most_one_cell(tmp_path):
    file, out = (
        sweep_file(tmp_path, GRID.replace("[0, 1]", f"[{', '.join(map(str, range(KILLS * 3)))}]")),
        tmp_path / "study",
    )
    command = [sys.executable, "-c", _SWEEPING, str(file), str(out)]
    paths = os.pathsep.join([str(Path(__file__).parents[1]), str(Path(__file__).parents[2])])
    finished: list[str] = []
    for _ in range(KILLS):
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": paths})
        first = child.stdout.readline()
        time.sleep(random.uniform(0, 0.12))
        child.send_signal(signal.SIGKILL)
        said = [line.strip() for line in (first + child.stdout.read()).splitlines()]
        child.wait()
        done = {each.folder.name for each in read_study(out).finished}
        assert set(finished) <= done
        assert len(set(said) - done) <= 1, "more than one cell was lost"
        assert not (set(finished) & set(said)), "a finished cell was run again"
        finished = sorted(done)
    subprocess.run(command, check=True, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": paths})
    study = read_study(out)
    assert [each.outcome for each in study.results] == ["ok"] * len(study.manifest.cells)
    assert all(each.run is not None for each in study.results)
