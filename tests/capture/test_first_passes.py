"""The first passes of a capture are forks of a process that has imported torch, and are what separate ones would be."""

import json
import os
from types import SimpleNamespace

import pytest

from tracekit.capture import live, process
from tracekit.capture.harness import capture
from tracekit.capture.job import Job
from tracekit.capture.live import FirstPasses, NoTurnsError
from tracekit.capture.options import Options

pytestmark = pytest.mark.skipif(
    not hasattr(os, "pidfd_open"), reason="only Linux can wait for a fork of another process"
)

RECIPE = """
import glob, json, os
import torch

def is_forked():
    \"\"\"Whether the parent of this process is told by a pipe whom to fork.\"\"\"
    for file in glob.glob(f"/proc/{os.getppid()}/fd/*"):
        try:
            if os.path.basename(os.readlink(file)) == "turns":
                return True
        except OSError:
            pass
    return False

def setup(ctx):
    here = {"parent": os.getppid(), "pid": os.getpid(), "session": os.getsid(0), "folder": os.getcwd()}
    ctx.note(json.dumps({**here, "forked": is_forked(), "caches": os.environ["TORCHINDUCTOR_CACHE_DIR"]}))
    if is_forked():
        FORKED
    weight = torch.zeros(3, requires_grad=True)
    def step():
        loss = weight.square().sum()
        loss.backward()
        return loss.detach()
    return step
"""


@pytest.fixture
def captured(tmp_path, write_recipe, monkeypatch):
    """A capture, with what its recipe said in each of the first passes, and the stages of all that were started."""

    def of(forked="pass"):
        recipe, started, said = write_recipe(RECIPE.replace("FORKED", forked)), [], []
        start, read_result = process.start, process.read_result

        def noting(job, folder, output):
            started.append(job.stage)
            return start(job, folder, output)

        def reading(*arguments):
            result, ended = read_result(*arguments)
            said.extend(map(json.loads, result.notes))
            return result, ended

        monkeypatch.setattr(live, "can_fork", lambda _: True)
        monkeypatch.setattr(process, "start", noting)
        monkeypatch.setattr(process, "read_result", reading)
        settings = {"device": "cpu", "passes": 1, "steps": 3, "warmup": 2, "out": tmp_path / "run.json"}
        run = capture(Options(recipe, ["eager"], **settings, tell=lambda _: None))
        return run, started, said

    return of


def test_each_is_a_fork_with_a_session_and_caches_of_its_own(captured):
    run, started, said = captured()
    assert run.variants[0].outcome == "ok"
    assert started == ["import", "inspect"]
    assert [each["forked"] for each in said] == [True] * 3
    assert len({each["parent"] for each in said}) == 1
    assert len({each["pid"] for each in said}) == 3
    assert all(each["session"] == each["pid"] for each in said)
    assert len({each["caches"] for each in said}) == 2  # the profiled pass compiles anew
    assert {each["folder"] for each in said} == {os.getcwd()}


def test_one_that_crashes_is_tried_once_more_as_a_separate_process(captured):
    run, started, said = captured(forked="os.abort()")
    assert run.variants[0].outcome == "ok"
    assert started == ["import", "inspect", "measure", "profile", "check"]
    assert [each["forked"] for each in said] == [False] * 3


@pytest.mark.parametrize(
    ("job", "is_forked"),
    [
        ({}, True),
        ({"stage": "profile", "temporary": "/elsewhere"}, True),
        ({"threads": 1}, False),
        ({"ranks": 2}, False),
    ],
)
def test_what_would_begin_with_another_environment_is_started(tmp_path, monkeypatch, job, is_forked):
    monkeypatch.setattr(live, "Separate", lambda *_: "started")
    monkeypatch.delenv("OMP_NUM_THREADS")
    importing = process.environment(Job(stage="import", program="r.py"), tmp_path)
    first = FirstPasses(SimpleNamespace(wait=lambda: True, forks=lambda *_: "forked"), importing, None)
    job = Job(**{"stage": "measure", "program": "r.py", **job})
    assert (first.begin("cpu")(job, tmp_path / "caches", tmp_path / "log") == "forked") == is_forked


def test_without_a_process_to_fork_each_is_started(tmp_path, monkeypatch):
    def dead(*_):
        raise NoTurnsError("it has ended")

    monkeypatch.setattr(live, "Separate", lambda *_: "started")
    job = Job(stage="measure", program="r.py")
    ended = []
    dying = FirstPasses(
        SimpleNamespace(wait=lambda: True, forks=dead), process.environment(job, tmp_path), ended.append
    )
    assert dying.begin("cpu")(job, tmp_path, tmp_path / "log") == "started"
    assert not ended
    for parent, device in ((SimpleNamespace(wait=lambda: True), "cuda"), (SimpleNamespace(wait=lambda: False), "cpu")):
        assert (
            FirstPasses(parent, {}, lambda: ended.append(1)).begin(device)(job, tmp_path, tmp_path / "log") == "started"
        )
    assert len(ended) == 2  # nothing imports beside what is timed
