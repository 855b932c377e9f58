"""The lines that a capture prints."""

import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import warm
from msgspec.structs import replace

from tracekit import run as runs
from tracekit.capture import messages
from tracekit.capture.child.script import ExpectedSteps
from tracekit.capture.job import Job


def test_names_are_harmless_to_the_terminal_and_one_line_each(tmp_path):
    path = tmp_path / "a\x1b[31m\n\u202eb.py"
    path.write_text("def setup(ctx): ctx.note('one\\ntwo')")
    given = ["--variants", "eager", "--backend", "aot_eager", "-o", str(tmp_path / "run.json")]
    done = warm.tracekit("capture", path, *given)
    lines = done.stderr.split("\n")
    assert done.returncode == 1
    assert all(line.isprintable() for line in lines)
    assert all(
        line.startswith(("a\\x1b[31m\\x0a\\u202eb", "No GPU: ", "eager: ", "warning: ", "tracekit: ", "Steps get "))
        or not line
        for line in lines
    )


def test_the_commonest_break_is_named():
    breaks = [runs.Break(compile="0/0", reason=reason, file="/a/net.py", line=7, t_ns=0) for reason in "abb"]
    compiles = [runs.Compile(id="0/0", kind="first", start_ns=0, end_ns=1, thread=1)]
    variant = runs.Variant(
        name="compiled",
        outcome="ok",
        requested=runs.Requested(compile=True),
        measured=runs.Measured(step_ns=1_000_000, step_all_ns=[1_000_000], spread_ns=0, clock="perf_counter"),
        ledger=runs.Ledger(compiles=compiles, breaks=breaks),
    )
    run = runs.Run(created="", tracekit="", recipe="", script="", variants=[variant])
    assert "2 graph breaks (b, net.py:7)" in messages.ending(variant, run)


def test_a_slow_pass_says_how_far_it_is(tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr(messages, "_SAID_EVERY_S", 0)
    reader = messages.Reader(tmp_path, said.append)
    reader.look()  # before the first step there is nothing to say
    writer, expected = messages.Writer(str(tmp_path)), SimpleNamespace(steps=lambda: 50, left_ns=lambda taken: None)
    writer.took(12, expected, 10_000_000_000)
    writer.took(13, expected, 10_500_000_000)  # too soon to be written
    reader.look()
    expected.left_ns = lambda taken: 2_000_000_000 * (50 - taken)
    writer.took(14, expected, 12_000_000_000)
    reader.look()
    old = time.time() - 45
    os.utime(tmp_path / "progress.json", (old, old))  # the trace is being written
    reader.look()
    assert said == [
        "  step 12 of about 50",
        "  step 14 of about 50, about 72.0 s left for the steps of this pass",
        "  step 14 of about 50 was reached 45 s ago",
    ]


def expected_steps(job, *steps):
    """What is expected after steps of these seconds; those that compiled are negative."""
    expected = ExpectedSteps(job)
    for taken, seconds in enumerate(steps, 1):
        expected.took(taken, round(abs(seconds) * 1e9), compiled=seconds < 0)
    return expected


def test_a_step_that_compiles_says_nothing_about_those_to_come():
    job = Job(stage="measure", program="train.py")
    assert expected_steps(job, -110).left_ns(1) is None
    assert expected_steps(job, -110, 0.5, 0.5, 0.5).left_ns(4) is None
    settled = expected_steps(job, -110, *[0.5] * 7)
    assert settled.steps() == 10 + 1 + 30
    assert settled.left_ns(8) == 33 * 500_000_000
    late = expected_steps(job, *[0.01] * 10, -20)
    assert (late.steps(), late.left_ns(11)) == (16 + 1 + 30, None)


def test_fast_steps_are_expected_until_they_fill_the_time():
    job = Job(stage="measure", program="train.py", round=1)
    assert expected_steps(job, *[0.005] * 5).steps() == 10 + 1 + 100
    assert expected_steps(replace(job, available=40), *[0.005] * 5).steps() == 40


def test_how_long_a_trace_takes_is_not_known():
    quiet = expected_steps(Job(stage="profile", program="train.py"), *[0.16] * 12)
    assert (quiet.steps(), quiet.left_ns(12)) == (10 + 2 + 20 + 4, None)
    assert expected_steps(Job(stage="check", program="train.py"), *[0.1] * 8).left_ns(8) == 12 * 100_000_000


def test_the_usage_of_a_script_is_told_on_one_line():
    argparse = (
        "loading …\nusage: train.py [-h]\n                [--epochs N]\ntrain.py: error: unrecognized arguments: -x\n"
    )
    assert messages.usage(argparse) == ("usage: train.py [-h] [--epochs N] train.py: error: unrecognized arguments: -x")
    assert messages.usage("Usage: t.py [OPTIONS]\n\nError: No such option: -x.") == (
        "Usage: t.py [OPTIONS] Error: No such option: -x"
    )
    assert messages.usage("no GPU: giving up") is None


def test_a_tab_is_space():
    assert messages.quoted("\tx = 1\n") == ["    x = 1"]


def test_only_what_came_to_its_end_is_said_to_be_kept():
    measured = runs.Measured(step_ns=5, step_all_ns=[5, 5], spread_ns=0, clock="perf_counter")
    cut = runs.Variant(name="eager", outcome="interrupted", requested=runs.Requested(compile=False), measured=measured)
    run = runs.Run(created=runs.now(), tracekit="0", recipe="r", script="r.py", variants=[cut])
    assert messages.interrupted(run, Path("run.json")) == "Interrupted. run.json contains no finished variant."
    run = replace(run, variants=[replace(cut, name="first", outcome="ok"), cut])
    assert messages.interrupted(run, Path("run.json")) == "Interrupted. run.json contains first."


def test_a_terminal_that_was_closed_stops_nothing(monkeypatch):
    closed = open(os.devnull)  # noqa: SIM115
    monkeypatch.setattr(sys, "stderr", closed)
    messages.on_stderr("said to nobody")
    closed.close()


def test_commands_can_be_pasted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert messages.written(tmp_path / "my run.json") == [
        "Wrote my run.json",
        "Open it:  tracekit tui 'my run.json'   or   tracekit report 'my run.json'",
    ]
