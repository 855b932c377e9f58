"""The verbs from the shell's point of view: exit codes, one sentence for a failure, data on stdout."""

import argparse
import gzip
import json
import os
import re
import subprocess
import sys

import msgspec
import pytest
from small import training, write

from tracekit.capture.options import Options
from tracekit.cli import main, program
from tracekit.cli.capture import CaptureVerb


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "no such file"),
        (b"", "the file is empty"),
        (b"hello", "not a PyTorch profiler trace"),
        (b'{"a": 1}', "not a PyTorch profiler trace"),
        (b'{"traceEvents": []}', "holds no events"),
        (gzip.compress(b"hello"), "not a PyTorch profiler trace"),
        (b"\x1f\x8b broken", "not a PyTorch profiler trace"),
        (b"\x00" * 1000, "not a PyTorch profiler trace"),
    ],
)
def test_one_sentence_and_exit_1(tmp_path, capsys, content, said):
    path = tmp_path / "trace.json"
    if content is not None:
        path.write_bytes(content)
    assert main(["report", str(path)]) == 1
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert error.startswith("tracekit: ")


def test_an_unknown_baseline_and_an_unwritable_place(tmp_path, capsys):
    path = str(training(tmp_path / "eager.json"))
    assert main(["report", path, "--baseline", "none"]) == 1
    assert "Available: eager" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert main(["export", path, "-o", str(tmp_path / "file" / "out")]) == 1
    assert main(["report", path, "--format", "json", "-o", str(tmp_path / "no" / "such.json")]) == 1


def test_without_a_verb_a_trace_is_reported_in_a_pipe(tmp_path, capsys):
    path = str(training(tmp_path / "eager.json"))
    assert main(["report", path]) == 0
    reported = capsys.readouterr().out
    assert main([path]) == 0
    assert capsys.readouterr().out == reported
    assert main([str(tmp_path / "no.json")]) == 1
    assert "no such file or folder" in capsys.readouterr().err


def test_without_a_verb_a_trace_is_explored_on_a_terminal(tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(program, "is_on_a_terminal", lambda: True)
    monkeypatch.setattr(program.TuiVerb, "run", staticmethod(lambda options: opened.append(options.inputs) or 0))
    path = training(tmp_path / "eager.json")
    assert main([str(path)]) == 0
    assert opened == [[path]]


@pytest.mark.parametrize(
    ("arguments", "meant"), [(["chek", "x"], "check"), (["report", "x", "--fromat=json"], "--format")]
)
def test_a_misspelt_verb_or_option_is_guessed(capsys, arguments, meant):
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
    assert f"Did you mean {meant}?" in capsys.readouterr().err


def test_a_hostile_path_is_shown_harmless(capsys):
    assert main(["report", "no\x1b[31msuch"]) == 1
    assert "\x1b" not in capsys.readouterr().err


def test_usage_is_exit_2(capsys):
    for arguments in ([], ["report"], ["report", "x", "--format", "xml"], ["report", "x", "--rows", "-1"]):
        with pytest.raises(SystemExit) as exit_:
            main(arguments)
        assert exit_.value.code == 2
        assert "usage" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["text", "json", "markdown"])
def test_a_report_never_replaces_a_trace_or_a_run(tmp_path, capsys, form):
    trace, other = training(tmp_path / "eager.json"), training(tmp_path / "compiled.json")
    packed, link, run = (tmp_path / name for name in ("eager.json.gz", "link.json", "run.json"))
    packed.write_bytes(gzip.compress(trace.read_bytes()))
    link.symlink_to(trace)
    run.write_text('{"schema": "tracekit.run/1"}')
    for out in (trace, other, packed, link, run):
        before = out.read_bytes()
        assert main(["report", str(trace), "--format", form, "-o", str(out)]) == 1
        assert out.read_bytes() == before
        assert capsys.readouterr().err.count("\n") == 1
    for _ in range(2):  # a report may be replaced
        assert main(["report", str(trace), "--format", form, "-o", str(tmp_path / "report")]) == 0


def test_an_earlier_report_and_its_link_survive(tmp_path, capsys, monkeypatch):
    trace, out, link = training(tmp_path / "eager.json"), tmp_path / "report.txt", tmp_path / "link"
    link.symlink_to(out)
    assert main(["report", str(trace), "-o", str(link)]) == 0
    assert (link.is_symlink(), out.read_text().startswith("eager takes")) == (True, True)
    before, names = out.read_text(), {path.name for path in tmp_path.iterdir()}

    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    assert main(["report", str(trace), "-o", str(out)]) == 1
    assert "No space left on device" in capsys.readouterr().err
    assert (out.read_text(), {path.name for path in tmp_path.iterdir()}) == (before, names)


def test_an_export_that_fails_leaves_nothing(tmp_path):
    trace = training(tmp_path / "eager.json")
    python = f"PYTHONDONTWRITEBYTECODE=1 {sys.executable}"  # Python's compiled files would be cut short, too
    limited = f"ulimit -f 1; {python} -m tracekit export {trace} -o {tmp_path}/new/tables 2>&1 | cat"
    ran = subprocess.run(["bash", "-c", limited], capture_output=True, text=True, check=True)
    assert ran.stdout == f"tracekit: {tmp_path}/new/tables cannot be written (File too large). " + (
        "Choose another path with -o.\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["eager.json"]


def test_a_very_long_name_is_one_sentence(tmp_path, capsys):
    trace, long = str(training(tmp_path / "eager.json")), "x" * 5000
    for arguments in ([long], [trace, f"{long}/a"], [trace, "-o", long]):
        assert main(["report", *arguments]) == 1
        said = capsys.readouterr().err
        assert "File name too long" in said
        assert len(said) < 400


def test_what_argparse_quotes_is_shown_harmless(capsys):
    for arguments in (["report", "x", "--a\x1b[31m\u202e\n"], ["report", "x", "--rows", "\x1b[31m"]):
        with pytest.raises(SystemExit):
            main(arguments)
        said = capsys.readouterr().err
        assert "\\x1b[31m" in said
        assert not set(said) & {"\x1b", "\u202e"}


def test_values_and_inputs_that_do_not_fit(tmp_path, capsys):
    for arguments, said in (
        (["report", "x", "--rows", "many"], "'many' is not a row count"),
        (["capture", "x", "--param", "many"], "'many' is not a parameter: give KEY=VALUE"),
        (["capture", "x", "--steps", "0"], "'0' is not a count"),
    ):
        with pytest.raises(SystemExit):
            main(arguments)
        assert said in capsys.readouterr().err
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    (tmp_path / "empty").mkdir()
    for name, said in (
        ("loop", "Check where its links lead."),
        ("empty", "no trace was found in this folder"),
        ("absent", "no such file or folder. Check the path."),
    ):
        assert main(["report", str(tmp_path / name)]) == 1
        assert said in capsys.readouterr().err


def test_a_failure_while_drawing_leaves_no_half_report(tmp_path, capsys, monkeypatch):
    from tracekit.faces import text

    def broken(*_, **__):
        raise ValueError

    monkeypatch.setattr(text, "drawn", broken)
    with pytest.raises(ValueError):  # noqa: PT011 - raised above
        main(["report", str(training(tmp_path / "eager.json"))])
    assert capsys.readouterr().out == ""


def test_nothing_lasts(tmp_path, capsys):
    path = write(tmp_path / "t.json", {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 3, "dur": 0})
    assert main(["report", str(path)]) == 0
    assert "neither wall nor host time is known" in capsys.readouterr().out
    assert main(["report", str(path), "--format", "json"]) == 0
    assert set(json.loads(capsys.readouterr().out)["variants"][0]["cannot_answer"]) == {"wall", "host"}


def test_the_defaults_that_help_tells_are_those_of_the_settings():
    parser = argparse.ArgumentParser()
    CaptureVerb.arguments(parser)
    defaults = {field.name: field.default for field in msgspec.structs.fields(Options)}
    told = {
        action.dest: match[1]
        for action in parser._actions
        if action.help and (match := re.search(r"\(default: ([\w.]+)\)$", action.help))
    }
    assert {"steps", "warmup", "seed", "timeout", "passes", "seeds", "device", "backend", "out", "ranks"} <= told.keys()
    for name, text in told.items():
        assert text == f"{defaults[name]:g}" if isinstance(defaults[name], float) else str(defaults[name]), name
    assert all(action.default in (argparse.SUPPRESS, False, {}) for action in parser._actions if action.option_strings)
