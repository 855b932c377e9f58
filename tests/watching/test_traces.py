"""A watch traces the next steps: after a slow one, and when it is asked to."""

import gzip
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from pathlib import Path

import pytest
import torch

from tests.watching.small_training import Training, forked_training, record, steps
from tracekit.watched import Cause, Flag, registry
from tracekit.watching import loop, observation, tracer, watch
from tracekit.watching.clocks import HostClock
from tracekit.watching.tally import PlainTally


def traces(folder):
    return sorted(folder.glob("*.pt.trace.json.gz"))


def traced_steps(path):
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    names = {event.get("name", "") for event in events}
    return sorted(int(name.partition("#")[2]) for name in names if name.startswith("ProfilerStep#"))


def steady(training, count, ms=1.0):
    for _ in range(count):
        time.sleep(ms / 1e3)
        training.step()


def test_a_slow_step_makes_it_trace_the_next_ones(tmp_path):
    training = Training()
    with watch(tmp_path, traces_per_hour=1, trace_steps=3):
        steady(training, 100)
        time.sleep(1.0)
        steady(training, 10)
        time.sleep(1.0)  # the hour's trace has been taken
        steady(training, 5)
    triggering = [step for step in steps(tmp_path) if step.flags & Flag.TRIGGERED]
    assert len(triggering) == 1
    (step,) = triggering
    (trace,) = traces(tmp_path)
    reason = f"slow-{step.cause.name.lower().replace('_', '-')}" if isinstance(step.cause, Cause) else "slow-"
    assert f"-step{step.number}-slow-" in trace.name
    assert reason in trace.name
    warm_up, *traced = [each.number for each in steps(tmp_path) if each.flags & Flag.TRACED]
    assert traced_steps(trace) == traced == [warm_up + at for at in (1, 2, 3)]
    if step.number < 100:  # the machine's own, of the first steps, which are judged together
        assert step.number < warm_up
    else:
        assert warm_up == step.number + 1


def test_a_signal_that_cannot_be_caught_is_said_to_be_one(tmp_path, caplog):
    with watch(tmp_path, on_signal=signal.SIGKILL):
        Training().step()
    assert [record.getMessage() for record in caplog.records] == ["signal 9 takes no trace: it cannot be caught"]


def test_a_handler_that_the_training_has_put_over_ours_stays(tmp_path):
    before = signal.getsignal(signal.SIGUSR2)
    try:
        with watch(tmp_path, on_signal=signal.SIGUSR2):
            signal.signal(signal.SIGUSR2, theirs := lambda *_: None)
        assert signal.getsignal(signal.SIGUSR2) is theirs
    finally:
        signal.signal(signal.SIGUSR2, before)


def test_a_trace_that_is_asked_for(tmp_path):
    training = Training()
    with watch(tmp_path, traces_per_hour=0, trace_steps=2, on_signal=signal.SIGUSR2) as watched:
        training.step()
        watched.snap("After the Warm-up / ../x")
        steady(training, 5)
        os.kill(os.getpid(), signal.SIGUSR2)
        steady(training, 5)
        watched.snap()
        steady(training, 3)  # it is not over when the watch ends
    names = [trace.name.partition("-rank0-")[2] for trace in traces(tmp_path)]
    assert sorted(names) == [
        "step1-after-the-warm-up-x.pt.trace.json.gz",
        "step11-snap.pt.trace.json.gz",
        "step6-signal.pt.trace.json.gz",
    ]
    last = next(trace for trace in traces(tmp_path) if "snap" in trace.name)
    assert traced_steps(last) == [13]  # what had not ended is no step


def test_the_trainings_own_profiler_comes_first(tmp_path):
    training = Training()
    with watch(tmp_path, traces_per_hour=0, trace_steps=4) as watched:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
            watched.snap()
            steady(training, 3)
        assert traces(tmp_path) == []
        watched.snap()
        steady(training, 3)  # ours runs
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as theirs:
            steady(training, 3)
        steady(training, 3)
    assert any(event.key == "aten::sum" for event in theirs.key_averages())
    assert traces(tmp_path) == []
    # It ended in the one after each of its steps, too.
    assert [bool(step.flags & Flag.TRACED) for step in steps(tmp_path)] == [True] * 10 + [False] * 2


def test_a_step_with_a_profiler_in_it_is_not_judged(tmp_path):
    training = Training()
    with watch(tmp_path, traces_per_hour=0):
        steady(training, 2)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
            training.parameter.sum().backward()
        steady(training, 2)
    assert [bool(step.flags & Flag.TRACED) for step in steps(tmp_path)] == [False, False, True, False]


def test_a_trace_that_cannot_be_written_is_told_once(tmp_path, caplog, monkeypatch):
    def full(raw):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(tracer, "_check", full)
    training = Training()
    with watch(tmp_path, traces_per_hour=0, trace_steps=1) as watched:
        for _ in range(2):
            watched.snap()
            steady(training, 4)
    told = [entry.getMessage() for entry in caplog.records]
    assert told == [f"a trace could not be taken in {tmp_path}: No space left on device"]
    assert [path.suffix for path in tmp_path.iterdir()] == [".watch"]
    assert len(steps(tmp_path)) == 8


def test_a_profilers_file_that_ends_early_is_noticed(tmp_path):
    (tmp_path / "whole.json").write_text('{"traceEvents": []}\n')
    tracer._check(tmp_path / "whole.json")
    (tmp_path / "half.json").write_text('{"traceEvents": [')
    with pytest.raises(OSError, match="could not write all of it"):
        tracer._check(tmp_path / "half.json")


def test_snap_asks_a_training_that_runs(tmp_path, capsys):
    from tracekit.cli.program import main

    with forked_training(tmp_path) as training:
        assert main(["snap", str(training), "--reason", "is it slow?"]) == 0
        out, err = capsys.readouterr()
        assert out.rstrip().endswith("-is-it-slow.pt.trace.json.gz")
        assert err == f"Next: tracekit report {out}"
        assert len(traced_steps(Path(out.rstrip()))) == 5
        assert main(["snap", str(os.getpid())]) == 1
        assert f"process {os.getpid()} is not watched. Watched are: {training} (" in capsys.readouterr().err
        os.kill(training, signal.SIGSTOP)
        assert main(["snap", str(training), "--timeout", "1"]) == 1
        assert "it took no request within 1 s: it looks for one" in capsys.readouterr().err
    assert main(["snap", str(training)]) == 1
    told = f"tracekit: process {training} does not run. No training of yours is watched now.\n"
    assert capsys.readouterr().err == told


def test_a_request_waits_for_those_before_it(tmp_path):
    training = Training()
    first, second, third = (registry.Request(token) for token in "abc")
    with watch(tmp_path, trace_steps=1, traces_per_hour=0):
        training.step()
        ((desk, _),) = registry.running()
        assert desk.ask(first)
        assert not desk.ask(second)
        assert not desk.withdraw(second)
        assert desk.requested() == first
        assert not desk.withdraw(first)
        assert desk.ask(second)
        assert not desk.ask(third)
        desk.answer(registry.Answer("a"))
        assert desk.requested() == second
        desk.answer(registry.Answer("b"))
        assert desk.answered(first) == registry.Answer("a")
        assert desk.answered(second) == registry.Answer("b")
        assert desk.answered(third) is None
        assert desk.requested() is None
        assert sorted(path.name for path in desk._folder.iterdir()) == ["watch.json"]


def test_two_that_ask_get_a_trace_each(tmp_path, capsys):
    from tracekit.cli.program import main

    with forked_training(tmp_path) as training:
        threads = [
            threading.Thread(target=main, args=(["snap", str(training), "--reason", reason],)) for reason in "ab"
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    out, err = capsys.readouterr()
    written = [Path(line) for line in out.split()]
    assert sorted(path.name.rsplit("-")[-1].partition(".")[0] for path in written) == ["a", "b"], err
    assert {*written} <= {*traces(tmp_path)}  # a slow step may have been traced, too


def test_snap_is_told_why_there_is_no_trace(tmp_path):
    training = Training()
    request = registry.Request(token="x")
    with watch(tmp_path, traces_per_hour=0):
        training.step()
        ((desk, entry),) = registry.running()
        assert entry.process == os.getpid()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
            desk.ask(request)
            give_up = time.monotonic() + 20
            while (answer := desk.answered(request)) is None and time.monotonic() < give_up:
                steady(training, 1, ms=20)
    assert answer == registry.Answer("x", why=tracer.BUSY)
    assert registry.running() == []


def test_an_answer_outlives_the_watch(tmp_path, monkeypatch):
    monkeypatch.setattr(observation, "_LOOK_NS", 0)
    training, request = Training(), registry.Request(token="x")
    with watch(tmp_path, trace_steps=5, traces_per_hour=0):
        training.step()
        ((desk, _),) = registry.running()
        desk.ask(request)
        steady(training, 4)
    assert registry.running() == []
    assert not desk.is_open
    answer = desk.answered(request)
    assert [str(path) for path in traces(tmp_path)] == [answer.trace]
    assert not desk._folder.exists()


def test_answers_that_nobody_reads_are_removed_by_a_later_watch(monkeypatch):
    began = registry.began
    this = registry.Entry(os.getpid(), began(os.getpid()), "/watch")
    desk = registry.Desk.open(this)
    desk.answer(registry.Answer("x"))
    desk.close()
    assert desk._folder.exists()
    other = registry.Entry(os.getppid(), began(os.getppid()), "/watch")
    registry.Desk.open(other).remove()
    assert desk._folder.exists()  # as long as this process runs
    monkeypatch.setattr(registry, "began", lambda process: None if process == os.getpid() else began(process))
    registry.Desk.open(other).remove()
    assert not desk._folder.exists()


def test_snap_is_told_that_the_watch_ended(tmp_path, capsys):
    from tracekit.cli.program import main

    training = Training()
    with watch(tmp_path, traces_per_hour=0):
        training.step()
        ((desk, _),) = registry.running()
        thread = threading.Thread(target=main, args=(["snap", str(os.getpid()), "--timeout", "20"],))
        thread.start()
        while not (desk._folder / "request.json").exists():
            time.sleep(0.01)
    thread.join()
    assert "its watch ended before the trace was written" in capsys.readouterr().err


def test_a_trace_that_began_before_is_no_answer(tmp_path, monkeypatch):
    monkeypatch.setattr(observation, "_LOOK_NS", 0)
    training, request = Training(), registry.Request(token="x", reason="asked")
    with watch(tmp_path, trace_steps=2, traces_per_hour=0) as watched:
        training.step()
        watched.snap("before")
        steady(training, 2)
        ((desk, _),) = registry.running()
        desk.ask(request)
        steady(training, 10)
        assert desk.answered(request).trace.endswith("-asked.pt.trace.json.gz")
    assert len(traces(tmp_path)) == 2


class Behind(HostClock):
    """Tells the duration of a step two steps later, as a GPU does. Two steps are slow, the others are steady."""

    def __init__(self):
        self.pending = deque()

    def end(self, step, host_ns):
        number = step[0]
        self.pending.append((step, 1_000_000_000 if number in (100, 101) else 1_000_000 + number % 7 * 1_000))
        return [self.pending.popleft()] if len(self.pending) > 2 else []


def test_a_trace_is_named_after_the_slow_step_that_is_known_later(tmp_path, monkeypatch):
    monkeypatch.setattr(observation, "HostClock", Behind)
    monkeypatch.setattr(loop, "Tally", PlainTally)
    training = Training()
    with watch(tmp_path, traces_per_hour=2, trace_steps=1):
        steady(training, 112, ms=0)  # the second slow one has ended before the first is known to be slow
    triggering = [step.number for step in steps(tmp_path) if step.flags & Flag.TRIGGERED]
    (trace,) = traces(tmp_path)
    assert triggering == [100]
    assert "-step100-slow-" in trace.name


def test_a_number_that_another_process_has_now_is_not_the_watch():
    this = registry.Entry(os.getpid(), registry.began(os.getpid()), "/watch")
    assert registry.is_running(this)
    assert not registry.is_running(registry.Entry(os.getpid(), this.began + 1, "/watch"))


def test_steps_in_another_thread_are_traced(tmp_path):
    training = Training()
    with watch(tmp_path, trace_steps=1, traces_per_hour=0) as watched:
        watched.snap()
        thread = threading.Thread(target=steady, args=(training, 5))
        thread.start()
        thread.join()
    assert len(traces(tmp_path)) == 1
    assert record(tmp_path).facts.step == "a step of SGD"


@pytest.mark.parametrize("level", ["", "0"])
def test_the_profiler_says_nothing_among_what_the_training_says_unless_it_is_asked_to(tmp_path, level):
    environment = {name: value for name, value in os.environ.items() if name != "KINETO_LOG_LEVEL"}
    code = (
        "import sys\nfrom tests.watching.small_training import Training\nfrom tracekit.watching import watch\n"
        "import os\ntraining = Training()\n"
        "with watch(sys.argv[1], traces_per_hour=0, trace_steps=1) as watched:\n"
        "    for number in range(5):\n"
        "        training.step()\n"
        "        number or watched.snap()\n"
        "print(os.environ.get('KINETO_LOG_LEVEL', ''))\n"
    )
    chosen = {"KINETO_LOG_LEVEL": level} if level else {}
    ran = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        env=environment | chosen,
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert traces(tmp_path)
    assert ran.stdout == f"{level}\n"
    assert bool(ran.stderr) == bool(level)
