"""`tracekit lines` on a recording small enough to work out by hand."""

import gzip

import msgspec
import pytest
from small import event, op, step, write

from tracekit import lines_file
from tracekit.cli import main
from tracekit.lines_file import Code, Function, LinesFile
from tracekit.run import Requested, Run, Traces, Variant, now
from tracekit.run import write as write_run

SOURCE = """\
def work(x):
    y = slow(x)
    z = y + 1
    return fast(z)
"""
FILE = "/home/me/mine.py"


def call(name, start, end):
    return event("python_function", name, start, end)


@pytest.fixture
def recording(tmp_path, monkeypatch):
    """Line 2 calls from 10 to 60, line 3 adds from 60 to 70, and line 4 calls from 80 to 100: of a step of 100 µs."""
    monkeypatch.setenv("COLUMNS", "160")
    trace = write(
        tmp_path / "trace.json",
        step(0, 0, 100),
        call("mine.py(1): work", 0, 100),
        call("<built-in function slow>", 10, 60),
        op("aten::mm", 20, 60),
        op("aten::add", 60, 70),
        call("<built-in function fast>", 80, 100),
        op("aten::relu", 85, 95),
    )
    lines = LinesFile(
        schema=lines_file.SCHEMA,
        functions=[Function("mine.py(1): work", FILE, 1, "work", "user")],
        callers=[(FILE, "work")],
        call_start_ns=[10_000, 80_000],
        call_caller=[0, 0],
        call_line=[2, 4],
        code=[Code(FILE, 1, "work", [2, 3, 4], ["call", "+", "call"])],
        sources={FILE: SOURCE},
    )
    lines_file.lines_path(trace).write_bytes(gzip.compress(msgspec.json.encode(lines)))
    return trace


def shown(capsys, *arguments):
    assert main(["lines", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_each_line_has_its_time(recording, capsys):
    told = shown(capsys, recording)
    rows = {line.split()[0]: line.split()[2:4] for line in told.splitlines() if line.startswith("mine.py:")}
    assert rows["mine.py:1"] == ["10.0", "µs"]  # before it calls anything
    assert rows["mine.py:2"] == ["50.0", "µs"]
    assert rows["mine.py:3"] == ["20.0", "µs"]  # the addition, found in the bytecode, until the next call
    assert rows["mine.py:4"] == ["20.0", "µs"]
    assert "100.0 % of 100 µs a step is for a line of yours" in told


def test_a_file_with_costs_in_the_margin(recording, capsys):
    told = [line.split() for line in shown(capsys, recording, "mine.py").splitlines()]
    assert ["50.0", "µs", "2", "y", "=", "slow(x)"] in told
    assert ["20.0", "µs", "4", "return", "fast(z)"] in told
    assert ["50.0", "µs", "2", "y", "=", "slow(x)"] in [
        line.split() for line in shown(capsys, recording, "me/mine.py:work").splitlines()
    ]


@pytest.mark.parametrize(("where", "told"), [("other.py", "mine.py"), ("mine.py:play", "work"), ("ine.py", "mine.py")])
def test_what_is_not_there_is_said(recording, capsys, where, told):
    assert main(["lines", str(recording), where]) == 1
    said = capsys.readouterr().err
    assert where.partition(":")[0] in said
    assert told in said


def test_without_a_lines_file_functions_are_told(recording, capsys):
    lines_file.lines_path(recording).unlink()
    told = shown(capsys, recording)
    assert "the trace has no calling lines" in told
    assert "mine.py:1" in told


@pytest.fixture
def run(recording, tmp_path):
    """A run whose steady trace takes twice as long, without stacks."""
    write(
        tmp_path / "steady.json",
        step(5, 0, 200),
        op("aten::mm", 40, 120),
        op("aten::add", 120, 140),
        op("aten::relu", 170, 190),
    )
    traces = Traces(steady="steady.json", detail="trace.json")
    variant = Variant(name="eager", outcome="ok", requested=Requested(compile=False), traces=traces)
    written = Run(created=now(), tracekit="0", recipe="mine", script="mine.py", variants=[variant])
    write_run(written, tmp_path / "run.json")
    return tmp_path / "run.json"


def test_a_report_has_the_lines_of_a_capture(run, capsys):
    assert main(["report", str(run), "--full"]) == 0
    told = capsys.readouterr().out
    assert "What each line of yours costs" in told
    assert "y = slow(x)" in told
    rows = {line.split()[0]: line.split()[2:4] for line in told.splitlines() if line.startswith("mine.py:")}
    assert rows["mine.py:3"] == ["40.0", "µs"]  # its operator, and half of what lies before the next
    assert rows["mine.py:4"] == ["40.0", "µs"]


def test_exported_lines_add_up_to_the_buckets(run, tmp_path, capsys):
    import pyarrow.parquet as pq

    assert main(["export", str(run), "-o", str(tmp_path / "tables")]) == 0
    rows = pq.read_table(tmp_path / "tables" / "lines.parquet").to_pylist()
    wanted = pq.read_table(tmp_path / "tables" / "attribution.parquet").to_pylist()
    assert {row["line"] for row in rows} == {1, 2, 3, 4}
    assert {(row["variant"], row["file"], row["phase"]) for row in rows} == {("eager", FILE, "other")}
    for entry in wanted:
        own = [row for row in rows if (row["view"], row["bucket"]) == (entry["view"], entry["bucket"])]
        assert sum(row["step_ns"] for row in own) == entry["dur_ns"]
    assert all(row["divided_ns"] <= row["step_ns"] for row in rows)


@pytest.mark.parametrize("base", ['"no number"', "-5", "1e400", "null"])
def test_a_clock_that_cannot_be_counts_as_none(recording, capsys, base):
    text = recording.read_text()
    assert text.startswith("{")
    recording.write_text(f'{{"baseTimeNanoseconds": {base}, {text[1:]}')
    assert "mine.py:2" in shown(capsys, recording)


def test_without_stacks_it_says_what_to_do(tmp_path, capsys):
    trace = write(tmp_path / "trace.json", step(0, 0, 100), op("aten::mm", 20, 60))
    assert main(["lines", str(trace)]) == 1
    assert "with_stack=True" in capsys.readouterr().err
