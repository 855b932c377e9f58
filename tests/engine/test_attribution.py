"""The attribution against the contract: known answers, and its brute-force twin on random and real traces."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
import twin
from hypothesis import given
from hypothesis import strategies as st
from real import trace_names, trace_path
from strategies import as_json, traces

from tracekit.faces.shared.document import attribution

STEP_KEYS = ("step", "start_ns", "wall_ns", "host_start_ns", "host_ns", "steady", "wall", "host")


def by_twin(path: Path) -> dict[str, Any]:
    return twin.document(twin.load_events(path))


def by_engine(path: Path, size: int = 1 << 16) -> dict[str, Any]:
    from tracekit.engine import attribute
    from tracekit.trace import Trace

    return attribution(attribute(Trace.load(path), size))


def view(document: dict[str, Any]) -> dict[str, Any]:
    """What two documents of one trace must agree on: all but the wording of a reason."""
    return {
        "device": document["device"],
        "cannot_answer": sorted(document["cannot_answer"]),
        "steps": [{key: step[key] for key in STEP_KEYS} for step in document["steps"]],
    }


def assert_adds_up(document: dict[str, Any]) -> None:
    for step in document["steps"]:
        for name, buckets, total in (("wall", twin.WALL, "wall_ns"), ("host", twin.HOST, "host_ns")):
            parts = step[name]
            if name in document["cannot_answer"]:
                assert parts is None
            if parts is not None:
                assert list(parts) == buckets or set(parts) == set(buckets)
                assert all(part >= 0 for part in parts.values())
                assert sum(parts.values()) == step[total]


# ------------------------------------------------------------------------------------ known answers
# Times of events are in µs, of answers in ns. pid 1 is the process; tid 1 its main thread.

Event = dict[str, Any]


def x(cat: str | None, name: str, start: Any, end: Any, corr: int | None = None, tid: Any = 1) -> Event:
    """An event over [start, end)."""
    event = {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": start, "dur": end - start}
    return event | ({} if corr is None else {"args": {"correlation": corr}})


def step(n: int, start: int, end: int) -> Event:
    return x("user_annotation", f"ProfilerStep#{n}", start, end)


def note(name: str, start: int, end: int) -> Event:
    return x("user_annotation", name, start, end)


def op(name: str, start: Any, end: Any, tid: int = 1) -> Event:
    return x("cpu_op", name, start, end, tid=tid)


def frame(name: str, start: int, end: int) -> Event:
    return x("python_function", name, start, end)


def call(name: str, start: int, end: int, corr: int | None = None, tid: int = 1) -> Event:
    return x("cuda_runtime", name, start, end, corr, tid)


def launch(start: int, end: int, corr: int, tid: int = 1) -> Event:
    return call("cudaLaunchKernel", start, end, corr, tid)


def kernel(start: int, end: int, corr: int, name: str = "gemm") -> Event:
    return x("kernel", name, start, end, corr, tid=7) | {"pid": 0}


def copy(start: int, end: int, corr: int) -> Event:
    return x("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", start, end, corr, tid=7) | {"pid": 0}


def tool(name: str, start: int, end: int) -> Event:
    return x("overhead", name, start, end, tid=0) | {"pid": -1}


@dataclass(frozen=True)
class Known:
    """A trace small enough to check by eye, and its answer."""

    rule: str
    events: list[Event]
    # (step, begin, done, S, E, steady) of each step, in ns
    steps: list[tuple[int, int, int, int, int, bool]]
    # the buckets that are not zero; None where it cannot be answered
    wall: list[dict[str, int] | None]
    host: list[dict[str, int] | None]
    cannot: list[str] = field(default_factory=list)
    device: str = "gpu"


KNOWN = [
    Known(
        "§1 decimal text, half to even; a negative dur is 0",
        [
            step(0, 0, 10),
            # starts at 1 000.5 → 1 000, lasts 1 001.5 → 1 002 ns
            op("a", Decimal("1.0005"), Decimal("2.0020")),
            op("b", 5, 3),
        ],
        [(0, 0, 10_000, 0, 10_000, True)],
        [{"cpu_compute": 1_002, "python": 8_998}],
        [{"cpu_compute": 1_002, "python": 8_998}],
        device="cpu",
    ),
    Known(
        "§1 a zero-length activity ends no gap; a zero-length call may be a launch",
        [step(0, 0, 20), launch(5, 5, 1), kernel(10, 10, 1), kernel(15, 20, 1)],
        [(0, 0, 20_000, 0, 20_000, True)],
        [{"python": 5_000, "kernel_launch": 10_000, "gpu_compute": 5_000}],
        [{"python": 20_000}],
    ),
    Known(
        "§2 a file of 2019: no cat, the pid says it; nothing is linked",
        [
            {"ph": "X", "name": "add", "pid": "CPU functions", "tid": 0, "ts": 0, "dur": 10},
            {"ph": "X", "name": "add_kernel", "pid": "CUDA functions", "tid": 0, "ts": 2, "dur": 4},
        ],
        [(0, 0, 10_000, 0, 10_000, True)],
        [None],
        [{"dispatch": 10_000}],
        cannot=["wall"],
    ),
    Known(
        "§2 a blocking copy is a sync; its own call does not launch in §6.2",
        [
            step(0, 0, 40),
            # The copy ends before its call does, so that the call has waited for it.
            call("cudaMemcpyAsync_v3020", 10, 30, 1),
            copy(25, 28, 1),
        ],
        [(0, 0, 40_000, 0, 40_000, True)],
        [{"python": 20_000, "sync_stall": 17_000, "gpu_copy": 3_000}],
        [{"python": 20_000, "sync": 20_000}],
    ),
    Known(
        "§3 without steps: the most launches outside the autograd engine, not the most launches",
        [
            op("outer", 0, 20),
            launch(2, 4, 1),
            op("autograd::engine::evaluate_function: A", 10, 20, tid=2),
            launch(11, 12, 2, tid=2),
            launch(13, 14, 3, tid=2),
            kernel(4, 20, 1),
        ],
        [(0, 0, 20_000, 0, 20_000, True)],
        # Were thread 2 the main thread, its launches at 11 and 13 would be in the host view.
        [{"dispatch": 2_000, "kernel_launch": 2_000, "gpu_compute": 16_000}],
        [{"dispatch": 18_000, "kernel_launch": 2_000}],
    ),
    Known(
        "§4 the first rule that applies",
        [
            step(0, 0, 100),
            note("enumerate(DataLoader)#it", 0, 20),
            op("stack", 5, 10),
            op("dynamo", 20, 40),
            op("aten::mm", 25, 30),
            op("TorchDynamo Cache Lookup", 40, 45),
            op("aten::mm", 50, 60),
            call("cudaMalloc", 52, 55),
            call("cudaGetDeviceCount", 55, 56),
            call("cudaDeviceSynchronize", 56, 58),
        ],
        [(0, 0, 100_000, 0, 100_000, False)],
        [
            {"dataload": 20_000, "compile": 20_000, "guards": 5_000, "cpu_compute": 4_000, "alloc": 3_000}
            | {"dispatch": 1_000, "sync_stall": 2_000, "python": 45_000}
        ],
        [
            {"dataload": 20_000, "compile": 20_000, "guards": 5_000, "cpu_compute": 4_000, "alloc": 3_000}
            | {"dispatch": 1_000, "sync": 2_000, "python": 45_000}
        ],
        device="cpu",
    ),
    Known(
        "§4 of equal intervals a runtime call before an operator before a frame",
        [step(0, 0, 20), frame("f.py(1): f", 0, 10), call("cudaMalloc", 0, 10), op("aten::empty", 0, 10)],
        [(0, 0, 20_000, 0, 20_000, True)],
        [{"alloc": 10_000, "python": 10_000}],
        [{"alloc": 10_000, "python": 10_000}],
        device="cpu",
    ),
    Known(
        "§4.7 Python frames: the engine, compiled code, and the rest",
        [
            step(0, 0, 100),
            frame("<built-in method run_backward of torch._C._EngineBase object at 0x1>", 10, 30),
            frame("/tmp/torchinductor_me/c.py(9): call", 40, 50),
            frame("c.py(12): inner", 42, 45),
            frame("train.py(1): step", 60, 70),
        ],
        [(0, 0, 100_000, 0, 100_000, True)],
        [{"cpu_compute": 30_000, "python": 70_000}],
        [{"cpu_compute": 30_000, "python": 70_000}],
        device="cpu",
    ),
    Known(
        "§4.7 generated code is known by how its file is named, wherever the cache folder is",
        [
            step(0, 0, 100),
            frame("/tmp/pass/inductor/7r/c7r2lb574illqeptjflwv2zdklurlcr3zvfyon4l7m6ip5jpjdgq.py(107): call", 10, 20),
            frame("w7/cw7vj52l34hrj32sjriah5qg.py(2): call", 30, 40),
            frame("w7/cw6vj52l34hrj32sjriah5qg.py(2): call", 50, 60),  # of another folder
            frame("w7/cw7vj52l34hrj32.py(2): call", 70, 80),  # too short
        ],
        [(0, 0, 100_000, 0, 100_000, True)],
        [{"cpu_compute": 20_000, "python": 80_000}],
        [{"cpu_compute": 20_000, "python": 80_000}],
        device="cpu",
    ),
    Known(
        "§2 tuning by descent and recording a function are compiling",
        [
            step(0, 0, 10),
            step(1, 10, 20),
            step(2, 20, 30),
            op("CachingAutotuner.coordinate_descent_tuning", 2, 6),
            note("CUDAGraphTreeManager.record_function", 12, 16),
        ],
        [
            (0, 0, 10_000, 0, 10_000, False),
            (1, 10_000, 20_000, 10_000, 20_000, False),
            (2, 20_000, 30_000, 20_000, 30_000, True),
        ],
        [{"compile": 4_000, "python": 6_000}, {"compile": 4_000, "python": 6_000}, {"python": 10_000}],
        [{"compile": 4_000, "python": 6_000}, {"compile": 4_000, "python": 6_000}, {"python": 10_000}],
        device="cpu",
    ),
    Known(
        "§5 the autograd thread while the main thread waits for it",
        [
            step(0, 0, 100),
            frame("<built-in method run_backward of torch._C._EngineBase object at 0x1>", 10, 60),
            op("autograd::engine::evaluate_function: A", 20, 30, tid=2),
            op("autograd::engine::evaluate_function: B", 40, 70, tid=2),
            launch(42, 44, 1, tid=2),
            kernel(44, 48, 1),
        ],
        [(0, 0, 100_000, 0, 100_000, True)],
        # host: engine [10, 60), helper [20, 30) and [40, 70), so that [10, 70) is no Python
        [{"python": 40_000, "dispatch": 54_000, "kernel_launch": 2_000, "gpu_compute": 4_000}],
        [{"python": 40_000, "dispatch": 58_000, "kernel_launch": 2_000}],
    ),
    Known(
        "§5 between two events of a helper the engine is at work, without any Python stack",
        [
            step(0, 0, 60),
            op("aten::mm", 0, 10),
            op("autograd::engine::evaluate_function: A", 20, 30, tid=2),
            op("autograd::engine::evaluate_function: B", 40, 50, tid=2),
        ],
        [(0, 0, 60_000, 0, 60_000, True)],
        [{"cpu_compute": 40_000, "python": 20_000}],
        [{"cpu_compute": 40_000, "python": 20_000}],
        device="cpu",
    ),
    Known(
        "§5 tool overhead: only over dispatch, launches and allocations",
        [
            step(0, 0, 40),
            op("aten::mm", 0, 10),
            tool("Buffer Flush", 5, 8),
            launch(10, 20, 1),
            tool("Lazy Function Loading", 12, 18),
            tool("Buffer Flush", 16, 19),
            kernel(20, 25, 1),
            tool("Buffer Flush", 27, 30),
        ],
        [(0, 0, 40_000, 0, 40_000, True)],
        [
            {"dispatch": 7_000, "kernel_launch": 3_000, "module_load": 6_000, "profiler": 4_000}
            | {"gpu_compute": 5_000, "python": 15_000}
        ],
        [{"dispatch": 7_000, "kernel_launch": 3_000, "module_load": 6_000, "profiler": 4_000} | {"python": 20_000}],
    ),
    Known(
        "§6 busy: computation hides communication hides copies",
        [
            step(0, 0, 40),
            call("cudaGraphLaunch_v10000", 0, 2, 1),
            kernel(2, 10, 1),
            kernel(5, 20, 1, "ncclDevKernel_AllReduce"),
            copy(15, 30, 1),
        ],
        [(0, 0, 40_000, 0, 40_000, True)],
        [{"kernel_launch": 2_000, "gpu_compute": 8_000, "gpu_comm": 10_000, "gpu_copy": 10_000} | {"python": 10_000}],
        [{"kernel_launch": 2_000, "python": 38_000}],
    ),
    Known(
        "§2 communication beyond NCCL, in any case",
        [
            step(0, 0, 100),
            launch(0, 1, 1),
            *(
                kernel(k, k + 10, 1, name)
                for k, name in (
                    (1, "mscclpp_allreduce"),
                    (11, "void deep_ep::internode::combine<4>"),
                    (21, "NVSHMEM_barrier_all"),
                    (31, "multimem_all_reduce_kernel"),
                    (41, "two_shot_all_reduce_kernel"),
                    (51, "void vllm::cross_device_reduce_2stage<half>"),
                    (61, "my_mscclpp"),
                )
            ),
        ],
        [(0, 0, 100_000, 0, 100_000, True)],
        [{"kernel_launch": 1_000, "gpu_comm": 60_000, "gpu_compute": 10_000, "python": 29_000}],
        [{"kernel_launch": 1_000, "python": 99_000}],
    ),
    Known(
        "§6.1 submission latency, and 30 µs later a gap",
        [step(0, 0, 100), launch(0, 5, 1), kernel(80, 90, 1)],
        [(0, 0, 100_000, 0, 100_000, True)],
        [{"kernel_launch": 35_000, "gpu_gap": 45_000, "gpu_compute": 10_000, "python": 10_000}],
        [{"kernel_launch": 5_000, "python": 95_000}],
    ),
    Known(
        "§6.1 queued before the gap began",
        [step(0, 0, 20), launch(0, 2, 1), launch(2, 4, 2), kernel(4, 10, 1), kernel(15, 20, 2)],
        [(0, 0, 20_000, 0, 20_000, True)],
        # [0, 4): the launch call, then its latency; [10, 15): the second launch ended at 4
        [{"kernel_launch": 4_000, "gpu_compute": 11_000, "gpu_gap": 5_000}],
        [{"kernel_launch": 4_000, "python": 16_000}],
    ),
    Known(
        "§6.3 the refill after a sync is the sync's for as long as it had waited",
        [
            step(0, 0, 100),
            launch(0, 2, 1),
            kernel(2, 50, 1),
            call("cudaStreamSynchronize", 46, 52, 2),  # had waited 4 µs at 50: until 56
            op("aten::mm", 52, 60),
            launch(60, 62, 3),
            kernel(62, 90, 3),
        ],
        [(0, 0, 100_000, 0, 100_000, True)],
        [{"kernel_launch": 4_000, "gpu_compute": 76_000, "sync_stall": 6_000, "dispatch": 4_000} | {"python": 10_000}],
        [{"kernel_launch": 4_000, "sync": 6_000, "dispatch": 8_000, "python": 82_000}],
    ),
    Known(
        "§6.3 no refill where no activity ends the gap",
        [step(0, 0, 50), launch(0, 2, 1), kernel(2, 20, 1), call("cudaStreamSynchronize", 10, 25)],
        [(0, 0, 50_000, 0, 50_000, True)],
        [{"kernel_launch": 2_000, "gpu_compute": 18_000, "sync_stall": 5_000, "python": 25_000}],
        [{"kernel_launch": 2_000, "sync": 15_000, "python": 33_000}],
    ),
    Known(
        "§6 no wall view: launches and no GPU activity",
        [step(0, 0, 10), launch(2, 4, 1)],
        [(0, 0, 10_000, 0, 10_000, True)],
        [None],
        [{"kernel_launch": 2_000, "python": 8_000}],
        cannot=["wall"],
        device="cpu",
    ),
    Known(
        "§6 no wall view: two processes make launch calls",
        [step(0, 0, 10), launch(2, 4, 1), kernel(4, 8, 1), launch(5, 6, 9) | {"pid": 2}],
        [(0, 0, 10_000, 0, 10_000, True)],
        [None],
        [{"kernel_launch": 2_000, "python": 8_000}],
        cannot=["wall"],
    ),
    Known(
        "§6 no wall view of a step whose launches have lost their work",
        [step(1, 0, 10), launch(0, 2, 1), kernel(2, 8, 1), step(2, 10, 20), launch(11, 13, 2)],
        [(1, 0, 10_000, 0, 10_000, True), (2, 10_000, 20_000, 10_000, 20_000, True)],
        [{"kernel_launch": 2_000, "gpu_compute": 6_000, "python": 2_000}, None],
        [{"kernel_launch": 2_000, "python": 8_000}, {"kernel_launch": 2_000, "python": 8_000}],
    ),
    Known(
        "§7 the host is ahead: a step lasts until its work is done",
        [
            step(1, 0, 10),
            launch(1, 2, 1),
            step(2, 10, 20),
            launch(11, 12, 2),
            kernel(2, 30, 1),
            kernel(30, 70, 2),
        ],
        [(1, 0, 30_000, 0, 10_000, True), (2, 30_000, 70_000, 10_000, 20_000, True)],
        [{"python": 1_000, "kernel_launch": 1_000, "gpu_compute": 28_000}, {"gpu_compute": 40_000}],
        [{"kernel_launch": 1_000, "python": 9_000}, {"kernel_launch": 1_000, "python": 9_000}],
    ),
    Known(
        "§7 the backlog: work of a call before the first step, and unlinked work of a smaller correlation",
        [
            launch(80, 81, 10),
            step(1, 100, 120),
            launch(101, 102, 12),
            kernel(90, 110, 10),
            kernel(110, 115, 5),
            kernel(115, 130, 12),
            kernel(130, 140, 99),  # neither: it is nobody's, and no step waits for it
        ],
        [(1, 115_000, 130_000, 100_000, 120_000, True)],
        [{"gpu_compute": 15_000}],
        [{"kernel_launch": 1_000, "python": 19_000}],
    ),
    Known(
        "§7 a step that nests in another's completion lasts 0 ns",
        [
            step(1, 0, 50),
            launch(5, 6, 1),
            step(2, 10, 20),
            launch(12, 13, 2),
            kernel(6, 80, 1),
            kernel(20, 30, 2),
        ],
        [(1, 0, 80_000, 0, 50_000, True), (2, 80_000, 80_000, 10_000, 20_000, True)],
        [{"python": 5_000, "kernel_launch": 1_000, "gpu_compute": 74_000}, {}],
        [{"kernel_launch": 2_000, "python": 48_000}, {"kernel_launch": 1_000, "python": 9_000}],
    ),
    Known(
        "§10 GPU rows alone: nothing can be answered",
        [kernel(5, 10, 1), kernel(12, 20, 2)],
        [(0, 5_000, 20_000, 5_000, 20_000, True)],
        [None],
        [None],
        cannot=["host", "wall"],
    ),
]


@pytest.mark.parametrize("implementation", [by_twin, by_engine])
@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.rule)
def test_known_answer(known: Known, implementation: Callable[[Path], dict[str, Any]], tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(as_json(known.events))
    document = implementation(path)
    assert document["device"] == known.device
    assert sorted(document["cannot_answer"]) == known.cannot
    assert [
        (
            *(s["step"], s["start_ns"], s["start_ns"] + s["wall_ns"]),
            *(s["host_start_ns"], s["host_start_ns"] + s["host_ns"], s["steady"]),
        )
        for s in document["steps"]
    ] == known.steps
    assert [nonzero(s["wall"]) for s in document["steps"]] == known.wall
    assert [nonzero(s["host"]) for s in document["steps"]] == known.host
    assert_adds_up(document)


def nonzero(buckets: dict[str, int] | None) -> dict[str, int] | None:
    return None if buckets is None else {name: ns for name, ns in buckets.items() if ns}


# ----------------------------------------------------------------------------------- random and real


@given(traces(), st.randoms(use_true_random=False))
def test_twin_on_any_trace(events: list[Event], rng: random.Random) -> None:
    """The yardstick itself adds up and knows no order of events."""
    document = twin.document(events)
    assert_adds_up(document)
    shuffled = list(events)
    rng.shuffle(shuffled)
    assert twin.document(shuffled) == document


@given(traces(), st.booleans(), st.randoms(use_true_random=False), st.sampled_from([1, 1, 2, 3, 5, 8, 1 << 16]))
def test_engine_on_any_trace(events: list[Event], bare: bool, rng: random.Random, size: int) -> None:
    """The engine says what the twin says, adds up, and knows no order of events and no size of blocks."""
    from tracekit.errors import EmptyTraceError

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        path.write_bytes(as_json(events, bare=bare))
        try:
            document = by_engine(path, size)
        except EmptyTraceError:
            assert not any(event["ph"] == "X" for event in events)
            return
        assert view(document) == view(by_twin(path))
        assert_adds_up(document)
        shuffled = list(events)
        rng.shuffle(shuffled)
        path.write_bytes(as_json(shuffled, bare=bare))
        assert view(by_engine(path)) == view(document)


@given(traces(), st.integers(1, 12))
def test_moments_of_any_trace(events: list[Event], size: int) -> None:
    """Segments and the cost of syncs do not depend on where time is cut, and make up the totals."""
    from tracekit.errors import EmptyTraceError

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        path.write_bytes(as_json(events))
        try:
            assert_same_moments(path, size)
        except EmptyTraceError:
            return


def assert_same_moments(path: Path, size: int) -> None:
    from tracekit.engine import attribute
    from tracekit.trace import Trace

    trace = Trace.load(path)
    whole, cut = attribute(trace), attribute(trace, size)
    assert cut.stalls.equals(whole.stalls)
    for name in ("wall", "host"):
        rows = [row for part in cut.segments_of(name, size) for row in part.to_pylist()]
        assert rows == [row for part in whole.segments_of(name) for row in part.to_pylist()]
        for row, following in pairwise(rows):
            assert row["start_ns"] + row["dur_ns"] == following["start_ns"]
            assert (row["bucket"], row["event"]) != (following["bucket"], following["event"])
    low, _ = trace.steps.window
    if "wall" not in whole.cannot_answer and len(trace.steps) == 1 and low == int(trace.steps.begin[0]):
        spent = dict.fromkeys(twin.WALL, 0)
        for part in whole.segments_of("wall"):
            for row in part.to_pylist():
                spent[row["bucket"]] += row["dur_ns"]
        assert list(spent.values()) == whole.wall[0].tolist()
        stalled = sum(whole.stalls.filter(pc.equal(whole.stalls["step"], 0))["dur_ns"].to_pylist())
        assert stalled == spent["sync_stall"]


@pytest.mark.traces
@pytest.mark.parametrize("name", trace_names() or ["any"])
def test_engine_on_real_trace(name: str) -> None:
    """Every real trace, to the nanosecond."""
    path = trace_path(name)
    expected = by_twin(path)
    assert_adds_up(expected)
    document = by_engine(path)
    assert view(document) == view(expected)
    assert_adds_up(document)


@pytest.mark.traces
@pytest.mark.parametrize("size", [7, 500])
@pytest.mark.parametrize("name", trace_names() or ["any"])
def test_blocks_of_real_trace(name: str, size: int) -> None:
    """Every real trace, cut into blocks: moment by moment what it is as a whole. The smallest ones event by event."""
    path = trace_path(name)
    small = path.stat().st_size < 100_000
    if size == 7 and not small:
        size = 2_111
    assert_same_moments(path, size)


@pytest.mark.traces
@pytest.mark.parametrize(
    "name", [name for name in trace_names() if trace_path(name).stat().st_size < 30_000] or ["any"]
)
def test_one_event_a_block(name: str) -> None:
    assert_same_moments(trace_path(name), 1)
