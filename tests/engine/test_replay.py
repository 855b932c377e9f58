"""A replay from which nothing is removed is the recording; without a cause, it is what the naive twin says."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from real import trace_names, trace_path
from small import event, kernel, launch, op, step, write
from strategies import as_json, traces

from tests.engine.known import Event
from tests.engine.replay_twin import Removed, twin
from tracekit.base.intervals import Union
from tracekit.engine import dependencies
from tracekit.engine.dependencies import DRAINED, FULL, RETURN
from tracekit.engine.replay import Edit, Replay, replay
from tracekit.errors.reading import EmptyTraceError
from tracekit.trace import Trace


def whole(trace: Trace) -> Replay:
    low, high = trace.steps.window
    return replay(trace, low, high, int(trace.steps.returned[-1]))


def assert_is_the_recording(run: Replay) -> None:
    times = run.without(Edit())
    assert times.start.tolist() == run.nodes.start.tolist()
    assert times.end.tolist() == run.nodes.end.tolist()
    assert run.end(times) == int(run.nodes.end[run._last].max())


@pytest.mark.parametrize("name", trace_names())
def test_a_real_trace_replays_to_the_nanosecond(name: str) -> None:
    trace = Trace.load(trace_path(name))
    run = whole(trace)
    assert run.activities.sum() == len(
        [row for row in run.nodes.row if row >= 0 and trace.events_at(np.array([row])).roles.gpu[0]]
    )
    assert_is_the_recording(run)


def loop(rng: random.Random) -> list[Event]:
    """A training loop on a coarse grid: launches on two streams, syncs of each kind, backward on a helper thread."""
    made, now, busy, correlation = [], 0, {7: 0, 8: 0}, 0

    def submit(tid: int) -> None:
        nonlocal now, correlation
        correlation += 1
        stream = rng.choice([7, 7, 7, 8])
        begin, now = now, now + rng.choice([1, 2])
        others = [*busy.values()] if rng.random() < 0.3 else []
        start = max(begin + rng.choice([1, 3, 12]), busy[stream] + rng.choice([0, 1, 12]), *others)
        busy[stream] = start + rng.choice([1, 4, 15])
        made.append(event("cuda_runtime", "cudaLaunchKernel", begin, now, tid=tid, correlation=correlation))
        args = {"correlation": correlation, "stream": stream}
        made.append(event("kernel", "gemm", start, busy[stream], tid=stream, pid=0, **args))

    def wait(tid: int) -> None:
        nonlocal now
        name = rng.choice(["cudaDeviceSynchronize", "cudaStreamSynchronize"])
        begin, until = now, max(busy.values()) if "Device" in name else busy[7]
        now = max(begin, until) + rng.choice([1, 2])
        made.append(event("cuda_runtime", name, begin, now, tid=tid))

    def work(tid: int) -> None:
        for _ in range(rng.randint(1, 4)):
            rng.choice([submit, submit, submit, wait])(tid)

    for number in range(rng.randint(1, 3)):
        begin = now
        for _ in range(rng.randint(1, 3)):
            now += rng.choice([0, 1, 5])
            entered = now
            work(1)
            made.append(op("aten::mm", entered, now + 1))
            now += 2
            if rng.random() < 0.6:  # the main thread waits for the autograd engine
                now += rng.choice([0, 2])
                entered = now
                work(2)
                made.append(event("cpu_op", "autograd::engine::evaluate_function: MmBackward0", entered, now, tid=2))
                now += 1
        now += 1
        made.append(step(number, begin, now))
    return made


stretches = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 12)), max_size=4)


@given(st.integers(0, 1 << 32), stretches, stretches, stretches, st.sampled_from([1, 2, 3, 1024]))
def test_any_loop_replays_as_the_twin_says(
    seed: int,
    host: list[tuple[int, int]],
    delays: list[tuple[int, int]],
    latencies: list[tuple[int, int]],
    depth: int,
) -> None:
    rng = random.Random(seed)
    assert_like_the_twin(loop(rng), host, delays, latencies, rng, depth)


@given(traces(), stretches, stretches, stretches, st.randoms(use_true_random=False), st.sampled_from([1, 2, 1024]))
def test_any_trace_replays_as_the_twin_says(
    events: list[Event],
    host: list[tuple[int, int]],
    delays: list[tuple[int, int]],
    latencies: list[tuple[int, int]],
    rng: random.Random,
    depth: int,
) -> None:
    assert_like_the_twin(events, host, delays, latencies, rng, depth)


def assert_like_the_twin(
    events: list[Event],
    host: list[tuple[int, int]],
    delays: list[tuple[int, int]],
    latencies: list[tuple[int, int]],
    rng: random.Random,
    depth: int,
) -> None:
    """A random part of the trace's work is removed from the replay and from the twin's, with a queue of that depth."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(dependencies, "QUEUE_DEPTH", depth)
        path = Path(folder) / "trace.json"
        path.write_bytes(as_json(events))
        try:
            trace = Trace.load(path)
        except EmptyTraceError:
            return
        if trace.threads.main is None or not len(trace.steps):
            return
        run = whole(trace)
        assert_is_the_recording(run)
        low, high = trace.steps.window
        unit = max((high - low) // 40, 1)
        unions = [
            Union.of(*(np.array([low + edge * unit for edge in edges], np.int64) for edges in (starts, ends)))
            for part in (host, delays, latencies)
            for starts, ends in [([start for start, _ in part], [start + length for start, length in part])]
        ]
        removed = Removed(*([*zip(union.starts.tolist(), union.ends.tolist(), strict=True)] for union in unions))
        nodes, gpu = run.nodes, run.activities
        shorter = np.array(
            [rng.choice([0, 0, int(dur), int(dur) // 2]) for dur in (nodes.end - nodes.start)[gpu]], np.int64
        )
        removed.device = dict(zip(nodes.row[gpu].tolist(), shorter.tolist(), strict=True))
        waiting = nodes.row[np.isin(nodes.kind, (RETURN, DRAINED, FULL))].tolist()
        removed.returns = {row for row in waiting if rng.random() < 0.5}
        removed.undone = {row for row in nodes.row[gpu].tolist() if rng.random() < 0.2}
        returning, undone = (np.array(sorted(rows), np.int64) for rows in (removed.returns, removed.undone))
        taken = Edit(*unions, shorter, returning, undone=undone)
        times = run.without(taken)
        expected = twin(trace, low, high, int(trace.steps.returned[-1]), removed, depth)
        rows, at, end = nodes.row.tolist(), times.start, times.end
        assert {rows[node]: at[node] for node in np.flatnonzero(gpu)} == expected["start"]
        assert {rows[node]: end[node] for node in np.flatnonzero(gpu)} == expected["end"]
        returns = {rows[node]: at[node] for node in range(len(rows)) if nodes.kind[node] in (RETURN, DRAINED, FULL)}
        assert returns == expected["return"]
        assert run.end(times) == expected["done"][-1]
        assert all(
            now <= then for now, then in zip((*at, *end), (*nodes.start.tolist(), *nodes.end.tolist()), strict=True)
        )


def test_a_handover_to_more_threads_than_there_are_nodes() -> None:
    calls = [("100", 0, 10), ("100", 0, 10), ("9", 0, 10), ("9", 0, 10), ("10", 0, 0)]
    events = [
        *(
            event("user_annotation", "ProfilerStep#0", *span, tid=tid, pid=100)
            for tid, span in (("9", (0, 10)), ("100", (10, 20)))
        ),
        event("cuda_driver", "cuLaunchKernel", 10, 20, tid="worker", pid=100, correlation=40),
        *(
            event("cuda_runtime", "cudaMemcpyAsync", start, start + lasts, tid=tid, pid=100, correlation=4 + number)
            for number, (tid, start, lasts) in enumerate(calls)
        ),
        {"ph": "X", "cat": "hpu_op", "name": "hpu", "pid": 0, "tid": "7", "ts": 0, "dur": 0},
    ]
    assert_like_the_twin(events, [], [], [(0, 1)], random.Random(0), 1)


@pytest.mark.parametrize(("depth", "done"), [(1024, 287), (1, 386)])
def test_without_a_wait_the_host_gets_as_far_as_the_queue_is_deep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, depth: int, done: int
) -> None:
    """In a queue of one, a launch returns when the one before has started: the second at 10 µs, the third at 111.

    After the launches, of 5 µs each, the CPU computes for 275 µs.
    """
    monkeypatch.setattr(dependencies, "QUEUE_DEPTH", depth)
    events = [
        launch(0, 2, 1),
        kernel("gemm", 5, 105, 1),
        launch(2, 110, 0, "cudaStreamSynchronize"),
        launch(110, 115, 2),
        kernel("gemm", 115, 215, 2),
        launch(115, 220, 0, "cudaStreamSynchronize"),
        launch(220, 225, 3),
        kernel("gemm", 225, 226, 3),
        op("aten::on_the_cpu", 225, 500),
        step(0, 0, 500),
    ]
    trace = Trace.load(write(tmp_path / "a.json", *events))
    run = whole(trace)
    assert_is_the_recording(run)
    times = run.without(Edit(returns=run.nodes.row[run.nodes.kind == RETURN]))
    assert run.end(times) == done * 1000


def test_where_a_recording_ends_in_backward_it_still_waits_for_the_main_thread(tmp_path: Path) -> None:
    """The main thread's call is not over, so that it is not in the file: nothing of it comes after the wait."""
    backward = "autograd::engine::evaluate_function: MmBackward0"
    events = [
        op("aten::mm", 0, 10),
        launch(2, 5, 1),
        kernel("gemm", 10, 1010, 1),
        launch(20, 1012, 0, "cudaStreamSynchronize"),
        event("cpu_op", backward, 1020, 1060, tid=2),
        event("cuda_runtime", "cudaLaunchKernel", 1030, 1035, tid=2, correlation=2),
        kernel("gemm", 1040, 1050, 2),
    ]
    run = whole(Trace.load(write(tmp_path / "a.json", *events)))
    assert_is_the_recording(run)
    _, second = run.nodes.row[run.activities]
    times = run.without(Edit(device=np.array([1_000_000, 0], np.int64)))
    assert times.start[int(np.flatnonzero(run.nodes.row == second)[0])] == 50_000
