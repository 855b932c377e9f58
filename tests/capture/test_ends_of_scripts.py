"""How a script ends: too early, normally, by an exception, or killed."""

import pytest
import warm

from tests.capture.capturing import perform, read_trace
from tests.capture.small_scripts import EAGER, HEAD, PLAIN, event_names, profiled, script
from tracekit import run as runs
from tracekit.capture.child.traces import COLD, DETAIL, planned_windows
from tracekit.cli import main


def test_a_pass_that_died_leaves_what_was_measured(tmp_path, capsys):
    body = PLAIN + "    if torch.autograd._profiler_enabled(): import os; os.kill(os.getpid(), 9)\n"
    out = tmp_path / "run.json"
    given = ["--variants", "eager", "--steps", "2", "--device", "cpu", "-o", str(out), "--", "20"]
    assert main(["capture", str(script(tmp_path, body)), *given]) == 1
    (eager,) = runs.read(out).variants
    assert (eager.measured.steps, eager.profiled) == (17, None)
    capsys.readouterr()
    assert main(["report", str(out), "--no-cache"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "a step unprofiled. Without a trace, it is unknown where its time goes (crash: profile: killed" in said
    assert "problem: crash: profile: killed, perhaps because memory ran out" in said
    assert "remark: a step is 1 step of Adam." in said


def test_one_without_steps_says_so(tmp_path):
    result = perform(tmp_path, "measure", script(tmp_path, "print(net(torch.zeros(1, 4)))"), is_script=True)
    assert result.outcome == "error"
    assert result.error.startswith("no optimizer stepped")


@pytest.mark.parametrize(
    ("body", "arguments", "error", "printed"),
    [
        (
            "import argparse; argparse.ArgumentParser().parse_args(['-x'])",
            [],
            "(exit code 2) before its",
            "arguments: -x",
        ),
        ("print('help'); sys.exit()", ["--help"], "(exit code 0) before its first step", "help"),
        ("sys.exit('no data')", [], "(exit code 1) before its first step", "no data"),
        (f"steps = 7; {PLAIN}sys.exit(3)", [], "(exit code 3) after step 7", ""),
    ],
)
def test_one_that_ends_itself_is_told_in_its_own_words(tmp_path, body, arguments, error, printed):
    path = script(
        tmp_path, body.replace("; \n", "\n"), head=HEAD.replace("int(sys.argv[1]) if len(sys.argv) > 1 else", "")
    )
    result = perform(tmp_path, "measure", path, is_script=True, arguments=arguments)
    assert result.outcome == "error"
    assert f"the script exited {error}" in result.error
    assert printed in result.traceback
    assert "Traceback" not in result.traceback


def test_after_arguments_that_it_refuses_nothing_more_is_tried(tmp_path, capsys):
    parser = (
        "import argparse; parser = argparse.ArgumentParser(); parser.add_argument('--epochs'); parser.parse_args()\n"
    )
    path, out = (
        script(tmp_path, parser + PLAIN, head=HEAD.replace("int(sys.argv[1]) if", "3 if")),
        tmp_path / "run.json",
    )
    assert main(["capture", str(path), "--device", "cpu", "-o", str(out), "--", "--epohcs", "3"]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "usage: train.py" in said
    assert "unrecognized arguments: --epohcs 3" in said
    assert said.count("measuring, unprofiled") == 1
    assert not out.exists()


def test_what_it_raises_is_told_as_it_would_be_without_us(tmp_path):
    body = PLAIN + "    if _ == 4: raise ValueError('the data is gone')\n"
    result = perform(tmp_path, "profile", script(tmp_path, body), is_script=True)
    assert (result.outcome, result.error) == ("error", "ValueError: the data is gone")
    assert result.traceback.count('File "') == 1
    assert "runpy" not in result.traceback


def test_one_that_fails_in_a_variant_leaves_the_other(tmp_path):
    body = PLAIN + "    if torch._dynamo.utils.counters['frames'] and _ > 2: raise ValueError('compiled')\n"
    path, out = script(tmp_path, "import torch._dynamo\n" + body), tmp_path / "run.json"
    given = ["--backend", "aot_eager", "--steps", "2", "--passes", "1", "--device", "cpu", "-o", str(out), "--", "20"]
    done = warm.tracekit("capture", path, *given)
    assert done.returncode == 1
    assert "compiled: failed (measure: ValueError: compiled)" in done.stderr
    assert [each.outcome for each in runs.read(out).variants] == ["ok", "error"]


def test_an_unexpected_end_leaves_whole_steps_only(tmp_path):
    result = profiled(tmp_path, PLAIN.replace("steps)", "16)"), requested=EAGER, steps=20)
    trace = read_trace(tmp_path / result.traces.steady)
    assert [*trace.steps] == [12, 13, 14, 15]
    assert (result.profiled.steps, result.ended, result.traces.detail) == (4, 16, None)
    assert "after the last step" in event_names(tmp_path / result.traces.steady)


@pytest.mark.parametrize("available", [1, 4, 8, 12, 15, 16, 30, 100])
def test_windows_fit_into_the_steps_there_are(available):
    cold, warmup, steady, marked, detail = planned_windows(20, available)
    assert 1 <= steady.steps <= 20
    assert sum(each.steps + each.warmup for each in (cold, steady, marked, detail) if each) + warmup == available
    assert planned_windows(20, None)[::4] == (COLD, DETAIL)
