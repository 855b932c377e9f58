"""docs/security.md against the code: what may run code, what the limits are, what is read beside what was named."""

import ast
import os

import pytest
from real import ROOT
from small import event, op, step, training, write

from tracekit.cli import main
from tracekit.compile_log import torch_trace
from tracekit.run import Requested, Run, Traces, Variant, now
from tracekit.run import write as write_run
from tracekit.sweep.sweep_file import MOST_CELLS
from tracekit.trace.reading import chunks, nsys, source
from tracekit.vocabulary import lines_file

PAGE = (ROOT / "docs" / "security.md").read_text()
# What runs code, makes objects of bytes as their writer wishes, or reaches a network.
_MODULES = {
    *("pickle", "cPickle", "_pickle", "dill", "cloudpickle", "marshal", "shelve", "yaml", "runpy", "code", "ctypes"),
    *("subprocess", "socket", "urllib.request", "http", "requests", "fsspec", "ftplib", "webbrowser", "distributed"),
}
_CALLS = {"eval", "exec", "compile", "__import__"}
_METHODS = {"read_pickle", "allow_pickle", "system", "popen", "spawnv", "execv", "execvp"}
# Outside of `capture`, which runs the user's own code.
_ALLOWED = {
    ("trace/reading/convert.py", "subprocess"),  # its own workers
    ("trace/reading/source.py", "fsspec"),  # an address that the user names
    ("ranks/readers.py", "distributed"),  # --cluster
    ("agent/tools/running.py", "subprocess"),  # audit and capture, with --allow-run
    ("integrations/handler.py", "socket"),  # the name of this host
    ("integrations/results.py", "subprocess"),  # a report, when a training has ended
    ("watched/registry.py", "socket"),  # the name of this host
    ("tui/exporting.py", "subprocess"),  # the user's editor
    ("cli/start_up.py", "ctypes"),  # a setting of the C library's
}


def used(path):
    """The modules and functions of these that a file uses."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            yield from (name for name in names if name in _MODULES or name.partition(".")[0] in _MODULES)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _CALLS:
            yield node.func.id
        elif isinstance(node, ast.Attribute) and node.attr in _METHODS:
            yield node.attr


def test_nothing_that_reads_can_run_what_it_reads():
    package = ROOT / "tracekit"
    found = {
        (path.relative_to(package).as_posix(), name.partition(".")[0] if name in _MODULES else name)
        for path in package.rglob("*.py")
        if not path.is_relative_to(package / "capture")
        for name in used(path)
    }
    assert found == _ALLOWED


@pytest.mark.parametrize(
    "stated",
    [
        f"{source._ALWAYS >> 30} GiB, or {source._RATIO} times its size",
        f"`{source.LIMIT}` changes it",
        f"{torch_trace._ALWAYS >> 20} MiB, or {source._RATIO} times its size",
        f"{torch_trace._LONGEST_RECORD >> 20} Mi characters",
        f"| a lines file, unpacked | {lines_file._MOST_BYTES >> 20} MiB",
        f"| an event of a trace | {chunks.EVENT_BYTES >> 20} MiB",
        f"| {nsys._LONGEST_VALUE >> 20} MiB; an export",
        f"| cells of a sweep file | {MOST_CELLS:,} |",
    ],
)
def test_the_limits_are_those_of_the_page(stated):
    assert stated in PAGE


def run_with(folder, trace):
    variant = Variant(name="eager", outcome="ok", requested=Requested(compile=False), traces=Traces(steady=trace))
    write_run(Run(created=now(), tracekit="0", recipe="r", script="r.py", variants=[variant]), folder / "run.json")
    return folder / "run.json"


@pytest.mark.parametrize("way", ["../outside.json", "absolute", "link", "linked/outside.json"])
def test_a_run_names_no_trace_outside_of_its_folder(tmp_path, capsys, way):
    outside, folder = training(tmp_path / "outside.json"), tmp_path / "run"
    folder.mkdir()
    (folder / "link").symlink_to(outside)
    (folder / "linked").symlink_to(tmp_path)
    assert main(["report", str(run_with(folder, str(outside) if way == "absolute" else way))]) == 1
    assert "is outside the run's folder" in capsys.readouterr().err


def test_a_name_is_no_address(tmp_path, capsys):
    assert main(["report", str(run_with(tmp_path, "https://example.com/trace.json"))]) == 1
    assert "fsspec" not in capsys.readouterr().err


def test_a_report_shows_no_file_of_this_machine(tmp_path):
    secret = tmp_path / "secret.py"
    secret.write_text("password = 'x-y-z'\n" * 3)
    frames = [
        event("python_function", f"{secret}(1): work", 0, 100, **{"Python id": 1, "Python parent id": 0}),
        event("python_function", f"{secret}(2): inner", 10, 90, **{"Python id": 2, "Python parent id": 1}),
    ]
    trace = write(tmp_path / "trace.json", step(0, 0, 100), op("aten::mm", 20, 60), *frames)
    out = tmp_path / "out"
    for name in ("html", "json", "markdown", "latex", "text"):
        assert main(["report", str(trace), "--full", "--format", name, "-o", str(tmp_path / f"report.{name}")]) == 0
        assert "x-y-z" not in (tmp_path / f"report.{name}").read_text()
    assert main(["export", str(trace), "-o", str(out)]) == 0
    assert not [path for path in out.rglob("*") if path.is_file() and b"x-y-z" in path.read_bytes()]


NAME = "a\x1b[31m\nb\r\u202ec\u2028=1+1.json"


@pytest.mark.parametrize("content", ["", "{}", "no trace", '{"traceEvents": []}', '{"schema": "tracekit.run/1"}'])
def test_a_message_is_one_line_whatever_a_file_is_called(tmp_path, capsys, content):
    (tmp_path / NAME).write_text(content)
    for arguments in (["report", str(tmp_path / NAME)], ["check", "--against", str(tmp_path / NAME), "sample"]):
        assert main(arguments) in (1, 3)
        said = capsys.readouterr().err
        assert len(said.splitlines()) == 1
        assert said.removesuffix("\n").isprintable()


def test_a_folder_is_written_nowhere_else(tmp_path, monkeypatch):
    trace = training(tmp_path / "trace.json")
    for name in ("cache", "state", "home", "work"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "work")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    assert main(["report", str(trace), "-o", str(tmp_path / "report.html")]) == 0
    after = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    assert after.keys() - before.keys() == {tmp_path / "report.html"}
    assert before.items() <= after.items()
    assert not [*os.scandir(tmp_path / "work")]
