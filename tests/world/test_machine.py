"""Small programs whose course can be worked out by hand."""

from __future__ import annotations

from dataclasses import replace

from tests.world.machine import AUTOGRAD, MAIN, Event, Hardware, Recorder, Recording, run
from tests.world.program import Activity, Busy, Fetch, Handover, Join, Nodes, Overhead, Span, Submit, Sync

PLAIN = Hardware(queue=1024, latency=2, gap=1, wake=3, handover=4)


def launch(name: str, ns: int, *, call: int = 5, **options: object) -> Submit:
    return Submit("launch", (Activity(name, ns),), ns=call, **options)  # type: ignore[arg-type]


def after(*nodes: object, hardware: Hardware = PLAIN, free: tuple[str, ...] = (), steps: int = 1) -> Recording:
    program: Nodes = nodes  # type: ignore[assignment]
    (recording,) = run([[program] * steps], [hardware], free, start=0)
    return recording


def times(recording: Recording) -> dict[str, tuple[int, int]]:
    return {each.name: (each.start, each.end) for each in recording.events}


def test_a_stream_takes_its_work_in_order() -> None:
    seen = times(after(launch("a", 100), launch("b", 10)))
    assert seen == {"launch": (5, 10), "a": (7, 107), "b": (108, 118)}


def test_streams_overlap_unless_one_waits_for_the_other() -> None:
    apart = times(after(launch("a", 100), launch("b", 10, stream=8)))
    assert apart["b"] == (12, 22)
    joined = times(after(launch("a", 100), Join(8, 7), launch("b", 10, stream=8)))
    assert joined["b"][0] == 1012  # the call that makes the stream wait takes 1 µs


def test_a_full_queue_blocks_the_call() -> None:
    recording = after(*(launch(name, 100) for name in "abc"), hardware=replace(PLAIN, queue=1))
    calls = [each for each in recording.events if each.name == "launch"]
    assert [(each.start, each.end) for each in calls] == [(0, 5), (5, 12), (12, 113)]  # until a, then b has started


def test_a_sync_waits_for_the_gpu_and_not_without_work() -> None:
    recording = after(launch("a", 5000), Sync("first"), Busy(10), Sync("second"))
    assert times(recording)["first"] == (5, 5010)
    assert times(recording)["second"] == (5020, 6020)
    assert times(after(launch("a", 5000), Sync("first"), free=("sync",)))["first"] == (5, 1005)


def test_a_blocking_copy_returns_when_it_is_done() -> None:
    copy = Submit("copy", (Activity("Memcpy", 100, "copy", "gpu_memcpy"),), ns=5, waits=True)
    assert times(after(launch("a", 50), copy))["copy"] == (5, 161)


def test_a_graph_runs_one_activity_after_the_other() -> None:
    graph = Submit("graph", (Activity("a", 10), Activity("b", 20)), ns=5)
    recording = after(graph)
    assert times(recording) == {"a": (7, 17), "b": (18, 38), "graph": (0, 5)}
    assert len({each.correlation for each in recording.events}) == 1


def test_autograd_works_while_the_caller_waits() -> None:
    recording = after(Span("python_function", "backward", (Handover((Span("cpu_op", "node", (Busy(10),)),)),)))
    assert times(recording) == {"node": (4, 14), "backward": (0, 18)}
    assert {each.name: each.track for each in recording.events} == {"node": AUTOGRAD, "backward": MAIN}


def test_workers_prepare_batches_ahead() -> None:
    fetch = Fetch(workers=2, ns=100_000, ahead=1)
    ready = after(fetch, Busy(1), steps=4).done
    assert ready == [50_001, 100_001, 150_001, 200_001]
    quick = after(Fetch(workers=2, ns=10_000, ahead=1), Busy(1), steps=2).done
    assert quick == [25_001, 50_002]  # until a batch that is ready is handed over
    assert after(fetch, free=("data",), steps=2).done == [0, 0]


def test_work_starts_when_no_other_process_has_the_gpu() -> None:
    shared = replace(PLAIN, foreign=((0, 50), (100, 150)))
    seen = times(after(launch("a", 70), launch("b", 10), hardware=shared))
    assert (seen["a"], seen["b"]) == ((50, 120), (150, 160))
    assert times(after(launch("a", 70), hardware=shared, free=("foreign",)))["a"] == (7, 77)


def test_a_collective_begins_everywhere_when_the_last_rank_arrives() -> None:
    def rank(ns: int) -> Nodes:
        return (Busy(ns), Submit("launch", (Activity("nccl", 100, "comm"), Activity("a", 7)), ns=5))

    early, late = run([[rank(0)], [rank(1000)]], [PLAIN, PLAIN], start=0)
    assert (times(early)["nccl"], times(late)["nccl"]) == ((7, 1107), (1007, 1107))
    assert times(early)["a"] == times(late)["a"] == (1108, 1115)


def test_what_is_free_takes_no_time_and_recording_costs_what_is_said() -> None:
    program = (Span("cpu_op", "op", (Busy(10, "dispatch"), launch("a", 100))), Overhead("flush", 30, "profiler"))
    assert times(after(*program))["flush"] == (15, 45)
    assert times(after(*program, free=("dispatch", "launch")))["a"] == (0, 100)
    recorded = times(after(*program, Sync(), hardware=replace(PLAIN, recorder=Recorder(operator=4, call=3))))
    assert recorded["op"] == (2, 20)
    assert recorded["launch"] == (12, 20)
    assert recorded["flush"] == (22, 52)
    assert recorded["cudaStreamSynchronize"] == (52, 1055)
    frame = Span("python_function", "f", (Busy(10),))
    assert times(after(frame, hardware=replace(PLAIN, recorder=Recorder(frame=6))))["f"] == (3, 13)


def test_a_step_is_done_when_its_work_is() -> None:
    recording = after(launch("a", 100), steps=2)
    assert (recording.begun, recording.done) == ([0, 5], [107, 208])
    assert (recording.step_ns(), recording.step_ns(1)) == (104, 101)


def test_every_submission_has_a_number_of_its_own() -> None:
    events: list[Event] = after(launch("a", 1), Sync(), launch("b", 1)).events
    calls = [each.correlation for each in events if each.cat == "cuda_runtime"]
    assert len(set(calls)) == 3
