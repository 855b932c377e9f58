"""Recording in a running process, as a notebook does."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import warm

from tests.capture.capturing import read_trace
from tests.capture.test_lost_kernels import write
from tracekit import run as runs
from tracekit.capture.job import PassResult
from tracekit.capture.recording import _variant, _warnings
from tracekit.profile import open_subject
from tracekit.profile.where import line_table
from tracekit.run import Traces

BODY = """
import sys, torch, tracekit, tracekit.errors
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10)  # it holds the optimizer's step as it was
def train(net, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        net(torch.randn(6, 4)).sum().backward()
        optimizer.step()
"""


def recorded(tmp_path, body):
    """What a session writes. It runs in a separate process, because a profiler changes the process that it records."""
    done = warm.run(["-c", BODY + body], cwd=tmp_path)
    return done, runs.read(tmp_path / "run.json")


def names(path):
    return [event["name"] for event in read_trace(path).keys["traceEvents"] if event.get("ph") == "X"]


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    folder = tmp_path_factory.mktemp("session")
    body = """
other = torch.optim.Adam(net.parameters())
with tracekit.record("run.json"):
    train(net, 3)
    torch.ones(3).cos()
optimizer = other
with tracekit.record("run.json", variant="compiled"):
    train(torch.compile(net, backend="aot_eager"), 2)
with tracekit.record("run.json", variant="whole"), torch.profiler.profile() as other:
    torch.ones(3).sin()
    try:
        with tracekit.record("other.json"): raise SystemExit("two at once")
    except tracekit.errors.TracekitError as error:
        refused = str(error)
print(refused, other.key_averages().table())
with tracekit.record("run.json", variant="marked"):
    for _ in range(4):
        torch.ones(3).sin()
        tracekit.step()
assert not hasattr(torch.optim.Adam.step, "counted")
"""
    done, run = recorded(folder, body)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("A profiler is already running in this process")
    assert not (folder / "other.json").exists()
    return folder / "run.json", run


MINE = """
import torch
def work():
    x = torch.ones(64, 64)
    return x @ x
"""


def test_with_stacks_the_lines_of_what_ran_are_known(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    body = """
import mine
with tracekit.record("run.json", stacks=True):
    for _ in range(3):
        mine.work()
        tracekit.step()
"""
    # In a new interpreter: a forked one also has the frames of the server that forked it.
    subprocess.run([sys.executable, "-c", BODY + body], cwd=tmp_path, check=True)
    (profile,) = open_subject([tmp_path / "run.json"]).profiles
    groups = profile.owner_means.by("wall", lambda owner: owner.lines)
    assert {(line.file, line.line) for group in groups for line in group} == {
        (str(tmp_path / "mine.py"), line) for line in (3, 4, 5)
    }
    trace = profile.trace
    assert not any("_with_steps_of_their_own" in name for name in trace.names)  # a call for each object there is
    rows = np.flatnonzero([trace.names[code] == "aten::matmul" for code in trace.name_codes.tolist()])
    assert line_table(profile, rows)["line"].to_pylist() == [5, 5, 5]


def test_each_recording_adds_its_variant(session):
    _, run = session
    assert [(each.name, each.outcome) for each in run.variants] == [(name, "ok") for name in run.planned]
    assert run.planned == ["eager", "compiled", "whole", "marked"]
    assert [each.requested.compile for each in run.variants] == [False, True, True, True]
    assert run.environment["torch"]


def test_steps_end_where_the_optimizer_steps(session):
    out, run = session
    traces = [read_trace(run.trace_path(out, variant)) for variant in run.variants]
    assert [[*trace.steps] for trace in traces] == [[0, 1, 2], [0, 1], [0], [0, 1, 2, 3]]
    assert [variant.profiled.steps for variant in run.variants] == [3, 2, 1, 4]


def test_what_follows_the_last_step_is_in_the_trace_and_in_no_step(session):
    out, run = session
    trace = read_trace(run.trace_path(out, run.variants[0]))
    (cos,) = (event for event in trace.keys["traceEvents"] if event.get("name") == "aten::cos")
    assert trace.keys["baseTimeNanoseconds"] + cos["ts"] * 1000 > trace.steps[2][1]


def test_what_compiled_is_in_the_ledger(session):
    _, run = session
    eager, compiled, _, _ = run.variants
    assert eager.ledger.compiles == []
    assert [(entry.id, entry.kind, entry.step) for entry in compiled.ledger.compiles] == [
        ("0/0", "first", 0),
        ("0/0", "backward", 0),
    ]


def test_the_report_reads_it(session, capsys):
    from tracekit.cli import main

    assert main(["report", str(session[0]), "--no-cache", "--format", "markdown"]) == 0
    assert "compiled" in capsys.readouterr().out


def test_what_raises_is_kept_and_raised_and_a_known_name_begins_a_new_run(tmp_path):
    body = """
for fails in (False, True):
    with tracekit.record("run.json"):
        train(net, 2)
        if fails: raise ValueError("no more")
"""
    done, run = recorded(tmp_path, body)
    assert done.stderr.rstrip().endswith("ValueError: no more")
    assert [(each.outcome, each.error) for each in run.variants] == [("error", "ValueError: no more")]
    assert run.variants[0].profiled.steps == 2
    assert len([*Path(tmp_path).glob("run*.json")]) == 2


@pytest.mark.parametrize("steps", [2, 200], ids=["while it runs", "at its end"])
def test_a_training_goes_on_whose_recording_cannot_be_written(tmp_path, steps):
    body = f"""
import shutil
with tracekit.record("run.json"):
    train(net, 1)
with tracekit.record("run.json", variant="lost", steps={steps}):
    train(net, 1)
    for folder in __import__("pathlib").Path().glob("run-*-2"): shutil.rmtree(folder)
    train(net, 2)
assert not torch.autograd._profiler_enabled() and not hasattr(torch.optim.SGD.step, "counted")
print("trained")
"""
    done, run = recorded(tmp_path, body)
    assert done.stdout == "trained\n", done.stderr
    assert done.stderr.count("warning: lost was not recorded. FileNotFoundError: ") == 1
    assert [variant.name for variant in run.variants] == ["eager"]


def test_a_run_that_cannot_be_written_is_told(tmp_path):
    body = """
from tracekit import run as runs
from tracekit.errors.asking import OutputError
def write(run, path): raise OutputError(path, "No space left on device")
with tracekit.record("run.json"): train(net, 1)
runs.write = write
with tracekit.record("run.json", variant="lost"): train(net, 1)
print("trained")
"""
    done, run = recorded(tmp_path, body)
    assert done.stdout == "trained\n", done.stderr
    assert "lost was not recorded." in done.stderr
    assert "run.json cannot be written (No space left on device)" in done.stderr
    assert [variant.name for variant in run.variants] == ["eager"]


def test_a_gpus_profiler_is_warmed_up_by_kernels_of_nobodys(tmp_path):
    body = """
from tests.capture.pretended_gpu import recordable
from tracekit.capture.audit.child import emulated
cleared, zero = [], torch.Tensor.zero_
torch.Tensor.zero_ = lambda each: (cleared.append(torch.autograd._profiler_enabled()), zero(each))[1]
with emulated(), recordable(), tracekit.record("run.json"):
    train(net, 3)
print(len(cleared))
"""
    done, run = recorded(tmp_path, body)
    assert done.stdout.split() == ["100"], done.stderr
    (variant,) = run.variants
    trace = read_trace(run.trace_path(tmp_path / "run.json", variant))
    assert (run.device, [*trace.steps]) == ("cuda", [0, 1, 2])
    assert "aten::zero_" not in names(run.trace_path(tmp_path / "run.json", variant))


def test_lost_kernels_of_a_recording_are_said(tmp_path, monkeypatch):
    write(tmp_path, "steady", 50, 40)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    result = PassResult(traces=Traces(steady="steady.json.gz"))
    said = "for 10 of 50 launches the trace holds no kernel: the profiler lost them"
    assert [*_warnings(result, tmp_path)] == [said]
    assert _variant("eager", result, tmp_path, "ok", None).effective.notes[1:] == [said]


def test_what_ran_on_an_accelerator_that_cannot_be_measured_is_said(tmp_path):
    body = """
torch.accelerator.is_available, torch.accelerator.current_accelerator = lambda: True, lambda *_: torch.device("mps")
torch.mps.current_allocated_memory = lambda: 64
with tracekit.record("run.json"):
    train(net, 2)
"""
    done, run = recorded(tmp_path, body)
    said = "its work on mps is not in its trace, and was not waited for, because mps cannot be measured"
    assert run.variants[0].effective.notes[1:] == [said]
    assert f"warning: {said}" in done.stderr


@pytest.mark.parametrize(("bound", "most"), [("steps=20", 20), ("steps=5, stacks=True", 5)])
def test_a_long_training_leaves_a_short_trace(tmp_path, bound, most):
    body = f"""
with tracekit.record("run.json", {bound}):
    train(net, 300)
    recording = torch.autograd._profiler_enabled()
print(recording)
"""
    done, run = recorded(tmp_path, body)
    assert done.stdout.split() == ["False"], done.stderr  # what follows is not slowed down
    (variant,) = run.variants
    path = run.trace_path(tmp_path / "run.json", variant)
    assert [*read_trace(path).steps] == [*range(most)]
    assert variant.profiled.steps == most
    assert path.stat().st_size < 200_000
    said = f"warning: the first {most} of 300 steps were recorded: tracekit.record(steps=…) says how many"
    assert said in done.stderr


def test_a_recording_ends_after_a_while(tmp_path):
    body = """
import tracekit.capture.recording as recording
recording._MOST_SECONDS = -1
with tracekit.record("run.json"):
    train(net, 30)
"""
    _, run = recorded(tmp_path, body)
    assert [*read_trace(run.trace_path(tmp_path / "run.json", run.variants[0])).steps] == [0]
    assert "the first 1 of 30 steps" in run.variants[0].effective.notes[1]
