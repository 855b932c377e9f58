"""What a step would take if something were different: known answers, measured pairs, and what no replay may do."""

import numpy as np
import pytest
from msgspec.structs import replace
from real import trace_names, trace_path
from small import event, kernel, launch, op, step, write

from tracekit.analyses import summary
from tracekit.analyses.what_if import changes, whole_steps
from tracekit.cli import main
from tracekit.engine.windows import windows
from tracekit.profile import open_subject

STEPS = 8
_ADDED = ("batches were always ready", "one CUDA graph")  # these may cost more than they save


def opened(path):
    (profile,) = open_subject([path]).profiles
    return profile


def told(path):
    """The answer in plain spaces, and the rows of its table by what is different."""
    answer = summary(opened(path), "what_if")
    answer = replace(answer, sentence=" ".join(answer.sentence.split()))
    return answer, {row["if"]: row for row in answer.table.to_pylist()}


def steps(path, events_of, apart=1001.0):
    """Steps of a millisecond, with what `events_of(number, start)` returns; they start so far apart, in µs."""
    events = []
    for number in range(STEPS):
        start = apart * number
        events += [step(number, start, start + 1000), *events_of(number, start)]
    return write(path, *events)


def waiting(number, start):
    """100 µs of the host, 600 µs of a kernel that it waits for, and 300 µs of the host."""
    return [
        op("aten::mm", start, start + 100),
        launch(start + 90, start + 100, number + 1),
        kernel("gemm", start + 100, start + 700, number + 1),
        launch(start + 101, start + 702, 0, "cudaStreamSynchronize"),
        op("aten::add", start + 705, start + 1000),
    ]


def loading(number, start):
    """700 µs of waiting for a batch, 100 µs of the host, and 150 µs of a kernel."""
    fetch = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    return [
        event("user_annotation", fetch, start, start + 700),
        op("aten::mm", start + 720, start + 800),
        launch(start + 790, start + 800, number + 1),
        kernel("gemm", start + 805, start + 955, number + 1),
    ]


def copying(number, start):
    """A copy from pageable memory of 500 µs, whose call returns 18 µs before it ends; then 300 µs of the host and 60 µs
    of a kernel. This is how CUDA writes it: the call fills buffers, and leaves the last of them to the GPU."""
    copy, gemm = 2 * number + 1, 2 * number + 2
    return [
        op("aten::to", start, start + 560),
        launch(start + 10, start + 542, copy, "cudaMemcpyAsync"),
        kernel("Memcpy HtoD (Pageable -> Device)", start + 60, start + 560, copy, "gpu_memcpy"),
        op("aten::mm", start + 600, start + 900),
        launch(start + 890, start + 900, gemm),
        kernel("gemm", start + 905, start + 965, gemm),
    ]


def many_launches(number, start):
    """Ten operators of 100 µs, each of which launches a kernel of 20 µs; the last one waits for nothing."""
    events = []
    for k in range(10):
        at, correlation = start + 100 * k, 10 * number + k + 1
        events += [
            op("aten::mm", at, at + 100),
            launch(at + 90, at + 95, correlation),
            kernel("gemm", at + 97, at + 117, correlation),
        ]
    return events


def test_from_pinned_memory_a_copy_no_longer_holds_up_the_host(tmp_path):
    _, rows = told(steps(tmp_path / "a.json", copying))
    row = rows["copies came from pinned memory"]
    # Of 1,000 µs, the host copies for 532 − 10; at worst, the GPU takes 450 for the copy, 60 for the kernel, and gaps.
    assert 450_000 <= row["best_ns"] <= row["worst_ns"] <= 580_000


def test_a_wait_that_goes_leaves_the_longer_of_host_and_gpu(tmp_path):
    answer, rows = told(steps(tmp_path / "a.json", waiting))
    row = rows["the wait for the GPU went"]
    # Of 1,000 µs, the host works for about 400 and the GPU for 600; the host of the next step starts at once.
    assert 580_000 <= row["best_ns"] <= 720_000
    assert row["worst_ns"] <= 740_000
    assert answer.sentence.startswith("If the wait for the GPU went: at best 1.00 ms → ")
    assert answer.sentence.endswith("Less if Python needs the values that it waits for.")


def test_batches_that_are_ready_leave_the_rest_of_the_step(tmp_path):
    _, rows = told(steps(tmp_path / "a.json", loading))
    row = rows["batches were always ready"]
    assert 240_000 <= row["best_ns"] <= 310_000 <= 1.3 * row["worst_ns"]
    assert row["worst_ns"] <= 400_000


def test_a_graph_leaves_the_kernels_and_the_gaps_between_them(tmp_path):
    _, rows = told(steps(tmp_path / "a.json", many_launches))
    row = rows["the 10 kernels of a step were one CUDA graph"]
    assert 190_000 <= row["best_ns"] <= 215_000
    assert 200_000 <= row["worst_ns"] <= 350_000


def test_half_of_the_launches_leave_half_of_the_dispatch(tmp_path):
    _, rows = told(steps(tmp_path / "a.json", many_launches))
    row = rows["half of the launches went (fused kernels)"]
    assert 480_000 <= row["best_ns"] <= 560_000
    assert row["then"] == "the host"


def test_what_operators_compute_on_the_cpu_is_no_launching(tmp_path):
    def computing(number, start):
        launching, stacked = many_launches(number, start)[:15], op("aten::stack", start + 500, start + 1000)
        return [*launching, stacked]

    _, rows = told(steps(tmp_path / "a.json", computing))
    assert rows["half of the launches went (fused kernels)"]["best_ns"] >= 730_000
    assert rows["the 5 kernels of a step were one CUDA graph"]["best_ns"] >= 480_000


def test_time_between_steps_stays(tmp_path):
    _, near = told(steps(tmp_path / "a.json", many_launches))
    _, far = told(steps(tmp_path / "b.json", many_launches, apart=5000.0))
    for name in near:
        assert far[name]["best_ns"] == pytest.approx(near[name]["best_ns"], abs=60_000), name


def test_faster_kernels_gain_nothing_where_the_host_decides(tmp_path):
    _, rows = told(steps(tmp_path / "a.json", many_launches))
    assert rows["matmul kernels took half as long"]["gain"] == 0.0


def test_no_graph_is_offered_to_steps_that_wait_or_differ_or_show_no_operators(tmp_path):
    def differing(number, start):
        events = many_launches(number, start)
        events[-1]["name"] = f"gemm of {number}"
        return events

    def silent(number, start):
        frames = [event("python_function", "train.py(4): step", start + 1, start + 999)]
        return frames + [each for each in many_launches(number, start) if each["cat"] != "cpu_op"]

    for number, events_of in enumerate((waiting, differing, silent)):
        _, rows = told(steps(tmp_path / f"{number}.json", events_of))
        assert not [name for name in rows if "CUDA graph" in name]


def test_what_one_rank_would_do_without_the_others_is_not_told(tmp_path):
    def collective(number, start):
        events = many_launches(number, start)
        events[-1]["name"] = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
        return events

    answer, rows = told(steps(tmp_path / "a.json", collective))
    assert answer.status == "unanswered"
    assert "the collectives wait for other ranks" in answer.sentence
    assert not rows


def test_one_slow_copy_does_not_stand_for_all(tmp_path):
    def held_up(number, start, end, call_end):
        """A copy whose call returns just before it ends, and 860 µs of the host and the GPU; µs."""
        copy, gemm = 2 * number + 1, 2 * number + 2
        return [
            step(number, start, end),
            op("aten::to", start, call_end + 1),
            launch(start + 1, call_end, copy, "cudaMemcpyAsync"),
            kernel("Memcpy HtoD (Pageable -> Device)", call_end - 60, call_end + 1, copy, "gpu_memcpy"),
            op("aten::mm", call_end + 2, end - 60),
            launch(end - 70, end - 60, gemm),
            kernel("gemm", end - 60, end - 1, gemm),
        ]

    # The third call takes 10.1 ms, and the other seven 100 µs each.
    events, start = [], 0
    for number in range(STEPS):
        call_end = start + (10_101 if number == 2 else 101)
        events += held_up(number, start, call_end + 899, call_end)
        start = call_end + 899
    _, rows = told(write(tmp_path / "a.json", *events))
    row, mean = rows["copies came from pinned memory"], opened(tmp_path / "a.json").means["wall"]
    assert row["gain"] > 0.2
    assert mean.step_ns - row["best_ns"] <= (10_101_000 + 7 * 101_000) / STEPS


def test_what_the_sentence_says_agrees_with_the_range(tmp_path):
    """The gain leaves out the margin of the best time: beside that, it would be another one than the times give."""
    answer, rows = told(steps(tmp_path / "a.json", many_launches))
    for row in rows.values():
        assert 1_000_000 * row["gain"] <= 1_000_000 - row["best_ns"] + 2_000, row["if"]
    assert "% " not in answer.sentence.replace("\N{NO-BREAK SPACE}", " ")
    assert "%)" not in answer.sentence


def test_without_a_gpu_there_is_nothing_to_replay(tmp_path):
    path = steps(tmp_path / "a.json", lambda _, start: [op("aten::mm", start, start + 900)])
    assert told(path)[0].sentence == "Nothing to replay: there is no GPU."


def test_a_recording_that_lacks_what_its_kernels_wait_for_is_refused(tmp_path):
    def late(number, start):
        return [
            op("aten::mm", start, start + 100),
            launch(start + 90, start + 100, number + 1),
            kernel("gemm", start + (100 if number % 3 else 500), start + 900, number + 1),
        ]

    answer, rows = told(steps(tmp_path / "a.json", late))
    assert "starts late without a cause in this recording" in answer.sentence
    assert not rows


def test_steps_that_lack_work_are_not_replayed(tmp_path):
    def losing(number, start):
        events = many_launches(number, start)
        return events[:-1] if number in (0, 5) else events

    profile = opened(steps(tmp_path / "a.json", losing))
    # What is lost may have run until the next step's work begins.
    assert np.flatnonzero(~whole_steps(profile)).tolist() == [0, 1, 5, 6]
    everywhere = steps(tmp_path / "b.json", lambda number, start: many_launches(number, start)[:-1])
    answer, rows = told(everywhere)
    assert "have no work in the trace" in answer.sentence
    assert not rows


def test_the_recordings_own_wait_is_not_replayed(tmp_path):
    def ending(number, start):
        events = many_launches(number, start)[:-3]
        if number == STEPS - 1:
            events.append(launch(start + 920, start + 999, 0, "cudaDeviceSynchronize"))
            events.append(
                event("python_function", "torch/profiler/profiler.py(9): stop_trace", start + 910, start + 1000)
            )
        return events

    profile = opened(steps(tmp_path / "a.json", ending))
    *_, last = windows(profile.trace, whole_steps(profile))
    own_start, _ = profile.trace.steps.own_end
    assert last.last == STEPS
    assert last.high <= own_start


@pytest.mark.traces
@pytest.mark.parametrize("name", trace_names())
def test_a_replay_of_what_was_recorded_is_what_was_recorded(name):
    profile = opened(trace_path(name))
    for window in windows(profile.trace, profile.counted) if profile.means["wall"] else ():
        assert 0.97 <= window.recorded_ns / (window.high - window.low - window.lead) <= 1.01


@pytest.mark.traces
@pytest.mark.parametrize("name", trace_names())
def test_what_takes_less_delays_nothing(name):
    profile = opened(trace_path(name))
    for window in windows(profile.trace, profile.counted) if profile.means["wall"] else ():
        for change in changes(profile, [window]):
            best, worst = change.removals(window)
            assert window.length_ns(best) <= 1.0005 * window.recorded_ns, change.name
            assert change.name.endswith(_ADDED) or window.length_ns(worst) <= 1.0005 * window.recorded_ns, change.name


@pytest.mark.traces
def test_pairs_that_were_measured_lie_in_the_range():
    _, rows = told(trace_path("leimao_eager_rtx5080"))
    row = rows["the 36 kernels of a step were one CUDA graph"]
    replayed = opened(trace_path("leimao_cudagraph_manual_rtx5080")).means["wall"]
    assert row["best_ns"] <= replayed.step_ns <= row["worst_ns"]

    compiled, rows = told(trace_path("luatil_compile_rtx3060"))
    row = next(row for name, row in rows.items() if "CUDA graph" in name)
    graphed = opened(trace_path("luatil_compile_cudagraph_rtx3060")).means["wall"]
    assert row["gain"] == 0.0  # none came, either
    assert abs(graphed.step_ns / row["worst_ns"] - 1) < 0.02
    assert "matmul kernels" in compiled.sentence


@pytest.mark.traces
def test_the_verb_draws_a_table_for_each_variant(capsys):
    paths = [str(trace_path(f"leimao_{name}_rtx5080")) for name in ("eager", "cudagraph_manual")]
    assert main(["what-if", *paths]) == 0
    drawn = capsys.readouterr().out
    prose = " ".join(drawn.split())
    assert "leimao_eager_rtx5080: If the 36 kernels of a step were one CUDA graph: at best 2.58" in prose
    assert "leimao_cudagraph_manual_rtx5080: If matmul kernels took half as long" in prose
    assert "At best, the change costs nothing" in prose
