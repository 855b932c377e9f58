"""A bare trace with a log written by TORCH_TRACE: the ledger, reasons, graph breaks and the lines of kernels."""

import gzip
import json

import pytest
from small import event, op, step, write

from tests.lines.recorded import call
from tracekit.cli import main
from tracekit.compile_log import torch_trace
from tracekit.compile_log.log import from_json
from tracekit.compile_log.torch_trace import read
from tracekit.errors import TracekitError
from tracekit.errors.reading import BombError
from tracekit.vocabulary.lines_file import Graph

HEAD = "V1122 01:19:27.696000 1 torch/_dynamo/utils.py:2350]"
MINE = "/home/me/model.py"
STACK = f'File "{MINE}", line 7, in forward\n    return x.sin()'
STACKS = "inductor_provenance_tracking_kernel_stack_traces"
BREAK = f"""Graph break in user code at {MINE}:8
Graph Break Reason: print
User code traceback:
  File "{MINE}", line 8, in forward
    print(x)
"""


def record(metadata, payload=None):
    lines = [f"{HEAD} {json.dumps(metadata)}"]
    return "\n".join(lines + [f"\t{line}" for line in (payload or "").splitlines()]) + "\n"


def span(name, phase, ms, frame=0, attempt=0):
    made = {"name": name, "ph": phase, "ts": 1_000_000.0 + ms * 1000, "args": {"compile_id": f"{frame}/{attempt}"}}
    return record({"chromium_event": {}, "frame_id": frame, "frame_compile_id": attempt}, json.dumps(made, indent=1))


def artifact(name, payload, **ids):
    return record({"artifact": {"name": name, "encoding": "string"}, **ids}, payload)


@pytest.fixture
def log(tmp_path):
    """A first compilation of 30 ms with a graph break, and a recompilation of 10 ms."""
    ids = {"frame_id": 0, "frame_compile_id": 0}
    metrics = {"compile_id": "0/0", "co_filename": MINE, "co_firstlineno": 6, "co_name": "forward"}
    folder = tmp_path / "log"
    folder.mkdir()
    (folder / "dedicated_log_torch_trace_rank_0_a1.log").write_text(
        span("dynamo", "B", 0)
        + artifact("dynamo_graph_break_reason", BREAK, **ids)
        + artifact(
            "inductor_provenance_tracking_kernel_stack_traces", json.dumps({"cpp_fused_sin_0:1": [STACK]}), **ids
        )
        + artifact("fx_graph_cache_miss", json.dumps({"key": "fabc"}), **ids)
        + "torn line {\n"
        + record({"compilation_metrics": metrics, **ids})
        + span("dynamo", "E", 30)
        + span("dynamo", "B", 50, attempt=1)
        + artifact("recompile_reasons", json.dumps(["0/0: x.shape[0] == 3"]), frame_id=0, frame_compile_id=1)
        + span("dynamo", "E", 60, attempt=1)
    )
    return folder


def test_the_ledger_of_a_log(log):
    ledger, graphs = read(log)
    first, again = ledger.compiles
    assert (first.kind, first.end_ns - first.start_ns, first.code) == ("first", 30_000_000, f"{MINE}:6 forward")
    assert (again.kind, again.reason, again.guard) == ("recompile", "0/0: x.shape[0] == 3", "x.shape[0] == 3")
    (broken,) = ledger.breaks
    assert (broken.file, broken.line, broken.t_ns) == (MINE, 8, 1_000_000_000)
    assert graphs == [Graph("fabc", "0/0", [("cpp_fused_sin_0:1", [STACK])])]
    assert read(next(log.iterdir())) == (ledger, graphs)


def test_a_trace_with_its_log(log, tmp_path, capsys):
    trace = write(
        tmp_path / "trace.json",
        step(0, 0, 100),
        call("train.py(1): work", 0, 100),
        op("## Call CompiledFxGraph fabc ##", 20, 80),
        event("cpu_op", "cpp_fused_sin_0", 30, 70),
    )
    assert main(["report", str(trace), "--compile-log", str(log), "--format", "json"]) == 0
    answers = {answer["analysis"]: answer for answer in json.loads(capsys.readouterr().out)["answers"]}
    assert len(answers["compiles"]["rows"]) == 2
    assert answers["graph_breaks"]["rows"][0][0] == f"{MINE}:8 forward"
    names = [column["name"] for column in answers["lines"]["columns"]]
    rows = [dict(zip(names, row, strict=True)) for row in answers["lines"]["rows"]]
    assert {(row["file"], row["line"], row["step_ns"]) for row in rows if row["view"] == "wall"} >= {(MINE, 7, 60_000)}
    assert "Compiled kernels count at the line that calls their graph" not in answers["lines"]["sentence"]
    assert main(["report", str(trace), "--format", "json"]) == 0
    answers = {answer["analysis"]: answer for answer in json.loads(capsys.readouterr().out)["answers"]}
    assert (
        "Compiled kernels count at the line that calls their graph, for 100.0 % of its calls"
        in answers["lines"]["sentence"]
    )


@pytest.mark.parametrize("content", ["", "no log\n", "V1122 x 1 y] {\n", "\t{}\n"])
def test_what_is_no_log_is_said(tmp_path, capsys, content):
    trace = write(tmp_path / "trace.json", step(0, 0, 100), op("aten::mm", 20, 60))
    (tmp_path / "some.log").write_text(content)
    assert main(["report", str(trace), "--compile-log", str(tmp_path / "some.log")]) == 1
    assert "cannot be used as a compile log" in capsys.readouterr().err


def test_a_log_belongs_to_one_trace(log, tmp_path, capsys):
    traces = [str(write(tmp_path / f"{name}.json", step(0, 0, 100), op("aten::mm", 20, 60))) for name in "ab"]
    assert main(["report", *traces, "--compile-log", str(log)]) == 1
    assert "but 2 were given" in capsys.readouterr().err
    assert main(["report", traces[0], "--compile-log", str(tmp_path / "none")]) == 1


@pytest.mark.parametrize("strange", [10**400, -1, float("nan"), float("inf"), "text", None, [], {"a": 1}, True])
@pytest.mark.parametrize(
    "key", ["start_time", "entire_frame_compile_time_s", "guard_latency_us", "fail_type", "co_filename", "compile_id"]
)
def test_metrics_of_other_types_are_passed_over(tmp_path, key, strange):
    metrics = {"compile_id": "0/0", "start_time": 1.0, "entire_frame_compile_time_s": 0.5, key: strange}
    (tmp_path / "some.log").write_text(record({"compilation_metrics": metrics, "frame_id": 0, "frame_compile_id": 0}))
    ledger, _ = read(tmp_path / "some.log")
    assert len(ledger.compiles) <= 1
    trace = write(tmp_path / "trace.json", step(0, 0, 100), op("aten::mm", 20, 60))
    assert main(["report", str(trace), "--compile-log", str(tmp_path / "some.log"), "--full"]) == 0


def test_times_that_no_column_holds_are_left_out(tmp_path):
    log = span("dynamo", "B", 0) + span("dynamo", "E", 30) + span("dynamo", "B", -1e4) + span("dynamo", "E", 10**12)
    (tmp_path / "some.log").write_text(log + artifact("recompile_reasons", "[1, null]", frame_id=0, frame_compile_id=0))
    assert len(read(tmp_path / "some.log")[0].compiles) == 1


@pytest.mark.parametrize("digits", [9, 10, 5000])
def test_overlong_numbers_are_no_lines(tmp_path, digits):
    text = f"Graph break in user code at /m.py:{'1' * digits}\nReason: x"
    (tmp_path / "some.log").write_text(artifact("dynamo_graph_break_reason", text, frame_id="1" * digits))
    (broken,) = read(tmp_path / "some.log")[0].breaks
    assert broken.line == (111_111_111 if digits == 9 else None)


@pytest.mark.parametrize("unit", ["x", "\t", "\n", f"{HEAD} {{}}\n"])
def test_a_packed_log_that_grows_beyond_bounds_is_refused(tmp_path, monkeypatch, unit):
    monkeypatch.setattr(torch_trace, "_ALWAYS", 1 << 16)
    (tmp_path / "some.log").write_bytes(gzip.compress(unit.encode() * ((4 << 20) // len(unit))))
    with pytest.raises(BombError, match="unpacks from"):
        read(tmp_path / "some.log")


@pytest.mark.parametrize("payload", ["\n".join(["x" * 90] * 20), "x" * 1800])
def test_a_record_beyond_bounds_is_left_out(tmp_path, monkeypatch, payload):
    monkeypatch.setattr(torch_trace, "_LONGEST_RECORD", 1000)
    long = artifact("dynamo_graph_break_reason", payload, frame_id=0)
    short = artifact("dynamo_graph_break_reason", BREAK, frame_id=0)
    (tmp_path / "some.log").write_text(short + long + short)
    assert len(read(tmp_path / "some.log")[0].breaks) == 2


def test_a_damaged_archive_is_said(tmp_path):
    (tmp_path / "some.log").write_bytes(gzip.compress(span("dynamo", "B", 0).encode() * 1000)[:-9])
    with pytest.raises(TracekitError, match=r"the archive ends early|damaged"):
        read(tmp_path / "some.log")


def test_half_of_a_surrogate_pair_is_replaced(tmp_path):
    trace, log = tmp_path / "t.json", tmp_path / "log"
    write(trace, step(0, 0, 100), op("aten::mm", 10, 20))
    log.write_text(
        span("dynamo", "B", 1)
        + span("dynamo", "E", 2)
        + record({"compilation_metrics": {"compile_id": "0/0", "co_filename": "\ud800.py", "fail_reason": "\udfff"}})
    )
    assert main(["report", str(trace), "--compile-log", str(log), "--full"]) == 0
    assert from_json('["\\ud83d\\ude00", "\\\\ud800", "\\ud800"]') == ["😀", "\\ud800", "\ufffd"]
