"""`tracekit lines` on a recording small enough to check by hand."""

import json

import pytest
from small import op, step, write

from tests.lines.recorded import FILE, call, recorded, recorded_run
from tracekit.cli import main
from tracekit.vocabulary import lines_file


@pytest.fixture
def recording(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    return recorded(tmp_path / "trace.json")


@pytest.fixture
def run(recording):
    return recorded_run(recording)


def shown(capsys, *arguments):
    assert main(["lines", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_each_line_has_its_time(recording, capsys):
    output = shown(capsys, recording)
    rows = {line.split()[0]: line.split()[1:3] for line in output.splitlines() if line.startswith("mine.py:")}
    assert rows["mine.py:1"] == ["10.0", "µs"]  # before it calls anything
    assert rows["mine.py:2"] == ["50.0", "µs"]
    assert rows["mine.py:3"] == ["20.0", "µs"]  # the addition, found in the bytecode, until the next call
    assert rows["mine.py:4"] == ["20.0", "µs"]
    assert "100.0 % of 100 µs a step belongs to your lines" in output


def test_a_file_with_costs_in_the_margin(recording, capsys):
    output = [line.split() for line in shown(capsys, recording, "mine.py").splitlines()]
    assert ["50.0", "µs", "2", "y", "=", "slow(x)"] in output
    assert ["20.0", "µs", "4", "return", "fast(z)"] in output
    assert ["50.0", "µs", "2", "y", "=", "slow(x)"] in [
        line.split() for line in shown(capsys, recording, "me/mine.py:work").splitlines()
    ]


@pytest.mark.parametrize(
    ("where", "message"), [("other.py", "mine.py"), ("mine.py:play", "work"), ("ine.py", "mine.py")]
)
def test_what_is_not_there_is_said(recording, capsys, where, message):
    assert main(["lines", str(recording), where]) == 1
    said = capsys.readouterr().err
    assert where.partition(":")[0] in said
    assert message in said


def test_without_a_lines_file_functions_are_told(recording, capsys):
    lines_file.lines_path(recording).unlink()
    output = shown(capsys, recording)
    assert "Only functions are known, not lines" in " ".join(output.split())
    assert "mine.py:1" in output


def test_a_report_has_the_lines_of_a_capture(run, capsys):
    assert main(["report", str(run), "--full"]) == 0
    output = capsys.readouterr().out
    assert "What each line of yours costs" in output
    assert "y = slow(x)" in output
    rows = {line.split()[0]: line.split()[2:4] for line in output.splitlines() if line.startswith("mine.py:")}
    assert rows["mine.py:3"] == ["40.0", "µs"]  # its operator, and half of the time before the next
    assert rows["mine.py:4"] == ["40.0", "µs"]


def test_exported_lines_add_up_to_the_buckets(run, tmp_path, capsys):
    import pyarrow.parquet as pq

    assert main(["export", str(run), "-o", str(tmp_path / "tables")]) == 0
    rows = pq.read_table(tmp_path / "tables" / "lines.parquet").to_pylist()
    wanted = pq.read_table(tmp_path / "tables" / "attribution.parquet").to_pylist()
    assert {row["line"] for row in rows} == {1, 2, 3, 4}
    assert {(row["variant"], row["file"], row["phase"]) for row in rows} == {("eager", FILE, "other")}
    for entry in wanted:
        in_bucket = [row for row in rows if (row["view"], row["bucket"]) == (entry["view"], entry["bucket"])]
        assert sum(row["step_ns"] for row in in_bucket) == entry["dur_ns"]
    assert all(row["divided_ns"] <= row["step_ns"] for row in rows)


def test_programs_get_every_row(run, capsys):
    assert main(["report", str(run), "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    (lines,) = [answer for answer in document["answers"] if answer["analysis"] == "lines"]
    names = [column["name"] for column in lines["columns"]]
    assert names[:7] == ["variant", "file", "line", "lines", "function", "library", "module"]
    assert names[7:] == ["phase", "view", "bucket", "row", "step_ns", "divided_ns"]
    rows = [dict(zip(names, row, strict=True)) for row in lines["rows"]]
    (variant,) = document["variants"]
    for view in ("wall", "host"):
        for bucket, ns in variant["mean"][view].items():
            in_bucket = [row["step_ns"] for row in rows if (row["view"], row["bucket"]) == (view, bucket)]
            assert sum(in_bucket) == pytest.approx(ns)
    assert {(row["variant"], row["file"], tuple(row["lines"])) for row in rows} == {
        ("eager", FILE, (f"{FILE}:{line}",)) for line in (1, 2, 3, 4)
    }


def test_the_whole_file_is_in_a_page(run, capsys):
    assert main(["report", str(run), "--format", "html"]) == 0
    page = capsys.readouterr().out
    assert f"All of {FILE}" in page
    assert page.count("y = slow(x)") == 2  # in the costliest function, and in the file


def test_a_package_of_yours_is_named(tmp_path, capsys):
    trace = write(
        tmp_path / "trace.json", step(0, 0, 100), call("ours/model.py(7): run", 0, 80), op("aten::mm", 20, 60)
    )
    output = shown(capsys, trace)
    assert "code in ours counts as a library's" in output
    output = shown(capsys, trace, "--mine", "ours")
    assert [line.split()[:3] for line in output.splitlines() if "model.py" in line] == [["model.py:7", "80.0", "µs"]]


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


def test_stacks_that_operators_carry_are_not_said_to_be_missing(tmp_path, capsys):
    carrying = op("aten::mm", 20, 60) | {"args": {"Call stack": "train.py(3): <module>"}}
    trace = write(tmp_path / "trace.json", step(0, 0, 100), carrying)
    assert main(["lines", str(trace)]) == 1
    said = capsys.readouterr().err
    assert "its call stacks are in the arguments of operators" in said
    assert "holds no Python stacks" not in said
    assert "with_stack=True and a newer torch" in said
