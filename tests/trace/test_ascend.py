"""What Ascend's profiler writes is read as what ran: an NPU's tasks, and the calls of CANN that submitted them."""

import json
from pathlib import Path
from typing import Any

import pytest
from real import case_path

from tracekit.engine import attribute
from tracekit.engine.buckets import CODES
from tracekit.trace import Trace
from tracekit.trace.reading import chunks

BASE_NS = 1_747_130_000_123_456_000
PYTHON, CANN, NPU, HCCL = "10", "20", "31", "40"
Event = dict[str, Any]


def us(ns: int) -> str:
    """A time as torch_npu writes it: in quotes, with three decimals."""
    return f"{(BASE_NS + ns) // 1000}.{(BASE_NS + ns) % 1000:03}"


def process(pid: str, name: str) -> Event:
    return {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}


def span(name: str, pid: str, tid: object, start: int, length: int, **more: object) -> Event:
    return {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": us(start), "dur": length / 1000, **more}


def flow(kind: str, number: object, source: Event, target: Event) -> list[Event]:
    ends = ("s", source), ("f", target)
    return [
        {"ph": ph, "bp": "e", "name": kind, "cat": kind, "id": number, **{key: at[key] for key in ("pid", "tid", "ts")}}
        for ph, at in ends
    ]


def task(name: str, start: int, length: int, kind: str = "AI_CORE", stream: int = 2) -> Event:
    return span(name, NPU, stream, start, length, args={"Task Type": kind, "Stream Id": stream})


PROCESSES = [process(PYTHON, "Python"), process(CANN, "CANN"), process(NPU, "Ascend Hardware")]


def loop(steps: int = 3) -> list[Event]:
    """Steps of 100 µs: an operator calls CANN twice, for a kernel and for a copy, while a stream waits for another."""
    events: list[Event] = []
    for k in range(steps):
        t = 100_000 * k
        operator = span("aten::mm", PYTHON, 99, t + 10_000, 30_000, cat="cpu_op", args={"Sequence number": k})
        first = span("AscendCL@aclnnMm", CANN, 99, t + 12_000, 5_000, args={"connection_id": k})
        second = span("Node@launch", CANN, 99, t + 20_000, 5_000)
        work, copy = task("MatMulV2", t + 30_001, 40_000), task("MEMCPY_ASYNC", t + 75_000, 5_000, "SDMA_SQE")
        events += [
            span(f"ProfilerStep#{k}", PYTHON, 99, t, 100_000, cat="cpu_op"),
            *(operator, first, second, work, copy),
            task("EVENT_WAIT", t + 5_000, 90_000, "EVENT_WAIT_SQE", stream=3),
            *flow("async_npu", f"{BASE_NS + t}000", operator, work),  # ids of 22 digits, as text and as numbers
            *flow("async_npu", int(f"{BASE_NS + t}001"), operator, copy),
            *flow("HostToDevice", str(4_294_967_296 + k), second, copy),
        ]
    return events


def read(path: Path, events: list[Event], cut: int = 0) -> Trace:
    text = json.dumps(events)
    path.write_text(text[: len(text) - cut])
    return Trace.load(path, use_cache=False)


def names(trace: Trace, rows: Any) -> list[str]:
    return [trace.names[trace.name_codes[row]] for row in rows]


def wall_us(trace: Trace, bucket: str) -> list[float]:
    return [float(ns) / 1000 for ns in attribute(trace).wall[:, CODES[bucket]]]


@pytest.mark.parametrize("last", [False, True], ids=["names first", "names last"])
@pytest.mark.parametrize("size", [900, chunks.CHUNK_BYTES])
def test_tasks_are_gpu_work_and_calls_of_cann_submit_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, last: bool
) -> None:
    monkeypatch.setattr(chunks.Chunks.__init__, "__defaults__", (size,))
    trace = read(tmp_path / "view.json", [*loop(), *PROCESSES] if last else [*PROCESSES, *loop()])
    assert (trace.lost, trace.mended, trace.device) == (0, 0, "gpu")
    activities = [row for part in trace.parts() for row in part.rows(part.roles.gpu)]
    assert names(trace, activities) == ["MatMulV2", "MEMCPY_ASYNC"] * 3  # waiting is no work
    assert [int(trace.ts_ns[row]) - BASE_NS for row in activities[:2]] == [30_001, 75_000]
    launches = trace.links.launch(trace.links.activities)
    assert names(trace, launches) == ["AscendCL@aclnnMm", "Node@launch"] * 3
    assert {trace.tracks["pid"][int(trace.track[row])].as_py() for row in launches} == {PYTHON}
    assert (wall_us(trace, "gpu_compute"), wall_us(trace, "gpu_copy")) == ([40.0] * 3, [5.0] * 3)
    (said,) = (entry.message for entry in trace.health if entry.id == "ascend")
    assert said.endswith("its NPU, and calls of CANN count as dispatch.")


def test_a_file_that_was_cut_still_has_its_tasks(tmp_path: Path) -> None:
    trace = read(tmp_path / "view.json", [*PROCESSES, *loop()], cut=30)
    assert trace.cut_short
    assert len(trace.links.activities) == 6


def test_without_calls_nothing_is_said_to_submit_tasks(tmp_path: Path) -> None:
    events = [event for event in loop() if event["pid"] != CANN]
    trace = read(
        tmp_path / "view.json", [*PROCESSES, *events, process(HCCL, "Communication"), span("h", HCCL, 1, 0, 1)]
    )
    assert (trace.device, len(trace.links.activities)) == ("gpu", 0)
    assert "communicates as idle" in next(entry.message for entry in trace.health if entry.id == "ascend")


def test_ranks_in_one_file_do_not_lend_each_other_calls(tmp_path: Path) -> None:
    trace = read(tmp_path / "view.json", [*PROCESSES, process("11", "Python"), *loop()])
    assert (trace.device, len(trace.links.activities)) == ("gpu", 0)


def test_a_case_whose_truth_is_known() -> None:
    trace = Trace.load(case_path("ascend_trace_view/trace_view.json"), use_cache=False)
    attributed = attribute(trace)
    assert attributed.wall_ns.tolist() == [5_000_000] * 3
    assert wall_us(trace, "gpu_compute") == [3_452.0] * 3
    assert trace.census.count(lambda roles: roles.gpu) == len(trace.links.activities) == 15
    assert names(trace, trace.links.launch(trace.links.activities)) == ["AscendCL@aclnnMm"] * 15
