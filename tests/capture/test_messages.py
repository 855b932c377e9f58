"""The lines that a capture prints."""

import os
import sys
from pathlib import Path

import warm
from msgspec.structs import replace

from tracekit import run as runs
from tracekit.capture import messages, progress


def test_names_are_harmless_to_the_terminal_and_one_line_each(tmp_path):
    path = tmp_path / "a\x1b[31m\n\u202eb.py"
    path.write_text("def setup(ctx): ctx.note('one\\ntwo')")
    given = ["--variants", "eager", "--backend", "aot_eager", "-o", str(tmp_path / "run.json")]
    done = warm.tracekit("capture", path, *given)
    lines = done.stderr.split("\n")
    assert done.returncode == 1
    assert all(line.isprintable() for line in lines)
    assert all(
        line.startswith(("a\\x1b[31m\\x0a\\u202eb", "No GPU: ", "eager: ", "warning: ", "tracekit: ")) or not line
        for line in lines
    )


def test_the_commonest_break_is_named():
    breaks = [runs.Break(compile="0/0", reason=reason, file="/a/net.py", line=7, t_ns=0) for reason in "abb"]
    assert messages._commonest(breaks) == "b, net.py:7"


def test_a_slow_pass_says_how_far_it_is(tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr(progress, "_SAID_EVERY_S", 0)
    reader = progress.Reader(tmp_path, said.append)
    reader.look()  # before the first step there is nothing to say
    writer = progress.Writer(str(tmp_path), 50)
    writer.took(12, 10_000_000_000, 8_000_000_000)
    writer.took(13, 10_500_000_000, 10_000_000_000)  # too soon to be written
    reader.look()
    writer.took(52, 20_000_000_000, 19_000_000_000)
    reader.look()
    assert said == [
        "  step 12 of about 50, about 76.0 s left",
        "  step 52, more than expected: a pass waits until nothing compiles any more",
    ]


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
