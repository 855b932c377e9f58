"""A compile log that is of another process, day or version than the trace is named as such, and not used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from small import op, step, write

from tracekit.cli import main
from tracekit.profile.assembled import processes
from tracekit.trace import Trace

PROCESS = 3529
DAY_US = 86_400_000_000
RECORDED_US = 1_780_000_000_000_000  # 28 May 2026
TOLD = "The compile log is of another process than the recording"


def trace(folder: Path, base_us: int = RECORDED_US, process: int = PROCESS, calls: str = "") -> Path:
    events = [step(0, 100, 200), op("aten::mm", 110, 150), op("aten::mm", 160, 190)]
    events += [op(f"## Call CompiledFxGraph {calls} ##", 120, 140)] if calls else []
    path = folder / "trace.json"
    header = {"schemaVersion": 1, "baseTimeNanoseconds": 1000 * base_us}
    path.write_text(json.dumps({**header, "traceEvents": [each | {"pid": process} for each in events]}))
    return path


def record(process: int, metadata: dict[str, Any], payload: str) -> str:
    return f"V0528 01:19:27.696000 {process} torch/_dynamo/utils.py:2350] {json.dumps(metadata)}\n\t{payload}\n"


def log(folder: Path, at_us: int = RECORDED_US, process: int = PROCESS, key: str = "fabc", rank: int = 0) -> Path:
    """One compilation of 30 ms that ends so many µs before that time, and made a graph of that key."""
    folder = folder / "logs"
    folder.mkdir(exist_ok=True)
    ids = {"frame_id": 0, "frame_compile_id": 0}
    spans = [
        record(
            process,
            {"chromium_event": {}, **ids},
            json.dumps({"name": "dynamo", "ph": phase, "ts": at_us - before, "args": {}}),
        )
        for phase, before in (("B", 40_000), ("E", 10_000))
    ]
    stack = {"triton_poi_0:1": ['File "/home/me/model.py", line 7, in forward\n    return x.sin()']}
    named = {"artifact": {"name": "inductor_provenance_tracking_kernel_stack_traces"}, **ids}
    made = [
        record(process, named, json.dumps(stack)),
        record(process, {"artifact": {"name": "fx_graph_cache_miss"}, **ids}, json.dumps({"key": key})),
    ]
    (folder / f"dedicated_log_torch_trace_rank_{rank}_a1.log").write_text("".join([spans[0], *made, spans[1]]))
    return folder


def told(capsys: pytest.CaptureFixture[str], trace_path: Path, log_path: Path) -> tuple[str | None, int]:
    """What is said of the log, and how many compilations are told."""
    assert main(["report", str(trace_path), "--compile-log", str(log_path), "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    found = [each for each in document["variants"][0]["health"] if each["id"] == "foreign_log"]
    assert all(each["severity"] == "doubt" and each["touches"] == ["lines"] for each in found)
    (compiles,) = (answer["rows"] for answer in document["answers"] if answer["analysis"] == "compiles")
    return next((each["message"] for each in found), None), len(compiles)


def test_a_log_of_the_same_process_is_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for at_us in (RECORDED_US, RECORDED_US - DAY_US // 2):  # it may train for long before it is recorded
        assert told(capsys, trace(tmp_path), log(tmp_path, at_us)) == (None, 1)


def test_a_log_of_another_process(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said, compiles = told(capsys, trace(tmp_path), log(tmp_path, process=77))
    assert said == f"{TOLD} (77 and 3529), and is not used."
    assert compiles == 0


@pytest.mark.parametrize(("days", "date"), [(-3, "2026-05-25"), (3, "2026-05-31")])
def test_a_log_of_another_day(tmp_path: Path, capsys: pytest.CaptureFixture[str], days: int, date: str) -> None:
    """In containers, every process may have the same number."""
    said, compiles = told(capsys, trace(tmp_path), log(tmp_path, RECORDED_US + days * DAY_US))
    assert said == (
        f"The compile log is of {date}, the recording of 2026-05-28: the log is of another run, and is not used."
    )
    assert compiles == 0


def test_a_log_of_another_version(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The key of a graph depends on the code and on torch."""
    said, compiles = told(capsys, trace(tmp_path, calls="fother"), log(tmp_path))
    assert said is not None
    assert said.startswith("No graph that the recording calls is in the compile log: the log is of another program")
    assert compiles == 0
    assert told(capsys, trace(tmp_path, calls="fabc"), log(tmp_path)) == (None, 1)


def test_what_is_not_known_is_no_doubt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Old versions log ids of threads, and a trace may have times that begin at zero."""
    assert told(capsys, trace(tmp_path), log(tmp_path, process=140_000_000_000_000)) == (None, 1)
    assert told(capsys, trace(tmp_path, base_us=0), log(tmp_path, RECORDED_US - 30 * DAY_US)) == (None, 1)
    assert told(capsys, trace(tmp_path), log(tmp_path, 10**30)) == (None, 0)
    no_operator = tmp_path / "bare.json"
    no_operator.write_text(
        trace(tmp_path, base_us=RECORDED_US - 30 * DAY_US).read_text().replace("cpu_op", "user_annotation")
    )
    assert told(capsys, no_operator, log(tmp_path)) == (None, 1)


def test_of_the_logs_of_several_ranks_that_of_the_trace_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log(tmp_path, process=77)
    assert told(capsys, trace(tmp_path), log(tmp_path, rank=1)) == (None, 1)


def test_it_is_said_first_and_fails_where_strictness_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["report", str(trace(tmp_path)), "--strict", "--compile-log"]
    assert main([*given, str(log(tmp_path, process=77))]) == 3
    assert capsys.readouterr().out.startswith(f"In doubt: {TOLD}")
    assert main([*given, str(log(tmp_path))]) == 0


def test_an_id_of_thousands_of_digits_is_of_no_process(tmp_path: Path) -> None:
    for pid, found in (("9" * 5000, frozenset()), ("7", frozenset({7}))):
        path = write(tmp_path / "t.json", op("aten::mm", 0, 5) | {"pid": pid})
        assert processes(Trace.load(path, use_cache=False)) == found
