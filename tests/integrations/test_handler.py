"""What torch.profiler records in a training becomes one run, cycle by cycle."""

import json

import pytest
import warm

from tests.capture.capturing import read_trace
from tracekit import run as runs
from tracekit.integrations.handler import trace_handler
from tracekit.profile import open_subject
from tracekit.vocabulary.lines_file import lines_path

BODY = """
import json, logging, sys
import torch, tracekit
from pathlib import Path
from tracekit.integrations import handler, results
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
reports = []
results.write_report = lambda run_file, report: reports.append([str(run_file), report.name])
def train(handler, steps, after_step=lambda step: None, during=None, **options):
    if "wait" in options:
        names = "wait", "warmup", "active", "repeat"
        options["schedule"] = torch.profiler.schedule(**{name: options.pop(name) for name in names if name in options})
    with torch.profiler.profile(on_trace_ready=handler, **options) as profiler:
        for step in range(steps):
            optimizer.zero_grad()
            net(torch.randn(6, 4)).sum().backward()
            optimizer.step()
            profiler.step()
            after_step(step)
    return profiler
"""


def session(folder, body, **variables):
    """What a training prints as JSON, in a process of its own, because a profiler changes the process it records."""
    done = warm.run(["-c", BODY + body], cwd=folder, env=variables)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def steps_of(trace):
    names = [str(event.get("name")) for event in read_trace(trace).keys["traceEvents"]]
    return [name for name in names if name.startswith("ProfilerStep#") or name == "after the last step"]


def test_each_cycle_is_a_variant_and_the_run_is_there_before_the_loop_ends(tmp_path):
    body = """
seen = []
def look(step):
    file = Path("traces/run.json")
    seen.append(len(json.loads(file.read_text())["variants"]) if file.exists() else 0)
profiler = train(tracekit.trace_handler("traces"), 10, look, wait=1, warmup=1, active=2, repeat=2)
print(json.dumps([seen, reports, "stop" in vars(profiler)]))
"""
    (seen, reports, is_left), stderr = session(tmp_path, body)
    assert seen == [0, 0, 0, 1, 1, 1, 1, 2, 2, 2]
    assert reports == [["traces/run.json", "report.html"]]  # one, when the profiler stops
    assert not is_left  # the profiler is as it was
    run = runs.read(tmp_path / "traces" / "run.json")
    assert [variant.name for variant in run.variants] == ["cycle 1", "cycle 2"]
    assert {variant.effective.mode for variant in run.variants} == {"eager"}
    traces = [run.trace_path(tmp_path / "traces" / "run.json", variant) for variant in run.variants]
    assert steps_of(traces[0]) == ["ProfilerStep#2", "ProfilerStep#3"]
    assert steps_of(traces[1]) == ["ProfilerStep#6", "ProfilerStep#7"]
    assert {path.name for path in (tmp_path / "traces").iterdir()} == {"run.json", *(trace.name for trace in traces)}
    assert "Its report: traces/report.html" in stderr
    assert "tracekit tui traces/run.json" in stderr
    profiles = open_subject([tmp_path / "traces" / "run.json"]).profiles
    assert [profile.counted.sum() for profile in profiles] == [2, 2]


def test_a_schedule_that_repeats_for_ever_keeps_the_first_and_the_last_traces(tmp_path):
    body = """
train(tracekit.trace_handler("traces", keep=3), 24, wait=0, warmup=1, active=2, with_stack=True)
print(json.dumps(sorted(path.name for path in Path("traces").iterdir())))
"""
    names, _ = session(tmp_path, body)
    run = runs.read(tmp_path / "traces" / "run.json")
    assert [variant.name for variant in run.variants] == ["cycle 1", "cycle 7", "cycle 8"]
    traces = [tmp_path / "traces" / str(variant.traces.steady) for variant in run.variants]
    assert names == sorted(["run.json", *(path.name for trace in traces for path in (trace, lines_path(trace)))])


def test_a_profiler_that_stops_within_a_cycle_or_has_no_schedule(tmp_path):
    body = """
train(tracekit.trace_handler("cut"), 5, wait=1, warmup=1, active=100)
train(tracekit.trace_handler("whole"), 3)
print(json.dumps(reports))
"""
    reports, _ = session(tmp_path, body)
    assert reports == [["cut/run.json", "report.html"], ["whole/run.json", "report.html"]]
    (cut,) = (tmp_path / "cut").glob("*.pt.trace.json.gz")
    # What was left of the last step when the profiler stopped is no step.
    assert steps_of(cut) == ["ProfilerStep#2", "ProfilerStep#3", "ProfilerStep#4", "after the last step"]
    (whole,) = (tmp_path / "whole").glob("*.pt.trace.json.gz")
    assert steps_of(whole) == []


def test_without_a_stop_the_report_is_written_when_the_process_ends(tmp_path):
    body = """
results.write_report = lambda run_file, report: Path("reported").write_text(str(run_file))
schedule = torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=1)
profiler = torch.profiler.profile(schedule=schedule, on_trace_ready=tracekit.trace_handler("traces"))
profiler.start()
for _ in range(4):
    net(torch.randn(6, 4)).sum().backward()
    profiler.step()
print(json.dumps(Path("reported").exists()))
"""
    was_there, _ = session(tmp_path, body)
    assert not was_there
    assert (tmp_path / "reported").read_text() == "traces/run.json"


PLANTED = ["handler.export", "handler.recorded_variant", "handler.new_run", "handler.rank", "handler.is_off"]
PLANTED += ["handler._is_stopping", "handler.runs.write", "handler.event_tree.write", "results.write_report"]
PLANTED += ["results.note_trace", "handler.messages.written", "handler.tell", "handler.TraceHandler._follow"]


def test_an_exception_in_any_of_its_parts_ends_no_training_and_is_logged_once(tmp_path):
    body = f"""
def fail(*_, **__): raise RuntimeError("planted")
def plant(name):
    holder, _, last = name.rpartition(".")
    owner = eval(holder)
    real = getattr(owner, last)
    setattr(owner, last, fail)
    return lambda: setattr(owner, last, real)
logged = {{}}
class Note(logging.Handler):
    def emit(self, record): logged[name].append(record.getMessage())
logging.getLogger("tracekit").addHandler(Note())
for name in {PLANTED}:
    logged[name], undo, done = [], plant(name), []
    train(tracekit.trace_handler("traces"), 8, done.append, wait=0, warmup=1, active=2, with_stack=True)
    undo()
    assert done == [*range(8)], name
print(json.dumps(logged))
"""
    logged, _ = session(tmp_path, body)
    assert list(logged) == PLANTED
    for name, messages in logged.items():
        assert len(messages) == 1, name
        assert messages[0].startswith("tracekit.trace_handler failed, and your program goes on without it.")
        assert "planted" in messages[0]


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path):
    (tmp_path / "traces").write_text("a file")
    body = """
train(tracekit.trace_handler("traces"), 3)
print(json.dumps(1))
"""
    _, stderr = session(tmp_path, body)
    (said,) = [line for line in stderr.splitlines() if "tracekit" in line]
    assert "traces: no trace can be written there (File exists). Name another folder" in said
    assert "Traceback" not in stderr


@pytest.mark.parametrize("variables", [{"TRACEKIT_OFF": "1"}, {"RANK": "1", "WORLD_SIZE": "2"}])
def test_switched_off_and_on_other_ranks_it_writes_nothing(tmp_path, variables):
    body = """
profiler = train(tracekit.trace_handler("traces"), 4, wait=0, warmup=1, active=2)
print(json.dumps([Path("traces").exists(), len(profiler.events())]))
"""
    (exists, events), _ = session(tmp_path, body, **variables)
    assert not exists
    assert events  # the profiler is the user's own, and has recorded


def test_all_ranks_become_one_run_if_asked(tmp_path):
    body = """
train(tracekit.trace_handler("traces", ranks="all"), 6, wait=0, warmup=1, active=2)
print(json.dumps(reports))
"""
    for rank in (1, 0):  # rank 0 finds what the other one has written since it began
        made = "handler.runs.now = lambda now=handler.runs.now: '2026-01-01T00:00:00+00:00'\n" if rank == 0 else ""
        reports, _ = session(tmp_path, made + body, RANK=str(rank), WORLD_SIZE="2")
        assert reports == ([] if rank else [["traces/run.json", "report.html"]])
    run_file = tmp_path / "traces" / "run.json"
    run = runs.read(run_file)
    assert [[rank.rank for rank in variant.ranks] for variant in run.variants] == [[1], [1]]
    paths = {run.trace_path(run_file, variant, rank=rank) for variant in run.variants for rank in (0, 1)}
    assert len(paths) == 4
    assert all(path.is_file() for path in paths)
    assert "-rank1_" in run.variants[0].ranks[0].traces.steady


def test_a_copy_in_another_process_makes_a_run_of_its_own(tmp_path):
    """A framework that starts its processes after a training in this one takes the handler along."""
    body = """
import os
handler = tracekit.trace_handler("traces")
train(handler, 4, wait=0, warmup=1, active=1, repeat=1)
if child := os.fork():
    assert os.waitpid(child, 0)[1] == 0
    print(Path("reports").read_text())
else:
    train(handler, 4, wait=0, warmup=1, active=1, repeat=1)
    Path("reports").write_text(json.dumps(reports[1:]))
    os._exit(0)
"""
    reports, _ = session(tmp_path, body)
    assert reports == [["traces/run.json", "report.html"]]
    (earlier,) = (tmp_path / "traces").glob("run-*.json")
    for path in (earlier, tmp_path / "traces" / "run.json"):
        assert [variant.name for variant in runs.read(path).variants] == ["cycle 1"]


def test_a_rank_that_is_late_is_named(tmp_path):
    body = """
handler._WAIT_SECONDS = 0.1
train(tracekit.trace_handler("traces", ranks="all"), 3, wait=0, warmup=1, active=2)
print(json.dumps(reports))
"""
    reports, stderr = session(tmp_path, body, RANK="0", WORLD_SIZE="3")
    assert reports
    assert "The report lacks cycle 1 of rank 1, rank 2" in stderr


@pytest.mark.parametrize("given", [{"keep": 1}, {"ranks": "1"}])
def test_arguments_that_mean_nothing(given):
    with pytest.raises(ValueError, match="must be"):
        trace_handler("traces", **given)


def test_compiled_is_told_apart(tmp_path):
    body = """
train(tracekit.trace_handler("eager"), 2)
torch.compile(net, backend="eager")(torch.randn(6, 4))
train(tracekit.trace_handler("compiled"), 2)
print(json.dumps(1))
"""
    session(tmp_path, body)
    modes = [runs.read(tmp_path / name / "run.json").variants[0].requested.compile for name in ("eager", "compiled")]
    assert modes == [False, True]
