"""The first step may be long because something starts up: then no mean has it, and the report says what it was."""

import pytest
from small import event, kernel, launch, op, step, write

from tracekit.cli import main
from tracekit.profile import open_subject
from tracekit.profile.start_up import FirstUses


def steps(path, *more, first=0, starting=0.0, lasts=(100,) * 5):
    """Steps of an operator that launches a kernel; something takes `starting` µs before the first."""
    events, at = [*more], 0.0
    for k, length in enumerate(lasts):
        begin = at + (starting if k == 0 else 0)
        events += [
            step(first + k, at, begin + length),
            op("aten::relu", begin + 10, begin + 50),
            launch(begin + 20, begin + 30, k + 1),
            kernel("relu", begin + 35, begin + 90, k + 1),
        ]
        at = begin + length
    return write(path, *events)


def loading(start, end):
    return launch(start, end, 0), event("overhead", "Lazy Function Loading", start, end, tid=0, pid=-1)


def opened(path):
    return open_subject([path]).profiles[0]


def test_code_loading_in_the_first_step(tmp_path, capsys):
    path = steps(tmp_path / "t.json", *loading(5, 4355), starting=4360)
    profile = opened(path)
    assert profile.counted.tolist() == [False, True, True, True, True]
    assert profile.means["wall"].step_ns == 100_000
    assert main(["report", str(path), "--no-cache"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "t takes 100 µs a step:" in said
    assert "Left out of the mean: step 0, 4.46 ms (4.35 ms of code loading, once)." in said
    assert "mean of 4 of 5 steps" in said
    # Never per step: the means are of other steps.
    assert "One-time start-up makes the first step longer 4.35 ms, once Left out" in said


@pytest.mark.parametrize("doing", [op("aten::mul", 5, 4355), event("python_function", "train.py(3): pause", 5, 4355)])
def test_a_slow_first_step_without_start_up_stays(tmp_path, doing):
    profile = opened(steps(tmp_path / "t.json", doing, starting=4360))
    assert not profile.cold_steps
    assert profile.counted.all()


def test_a_slow_step_later_on_stays(tmp_path):
    profile = opened(steps(tmp_path / "t.json", *loading(205, 4000), lasts=(100, 100, 4000, 100, 100)))
    assert profile.counted.all()


def test_a_recording_that_begins_after_other_steps_has_no_first_calls(tmp_path):
    calls = [launch(5, 4355, 0, "cudaFree")]
    assert opened(steps(tmp_path / "t.json", *calls, starting=4360)).cold_steps
    assert not opened(steps(tmp_path / "u.json", *calls, starting=4360, first=5)).cold_steps


def test_kernels_that_are_tried_once(tmp_path):
    tried = [
        each
        for k in range(3)
        for each in (launch(5 + k, 6 + k, 90 + k), kernel(f"conv{k}", 100 * k + 10, 100 * k + 105, 90 + k))
    ]
    (cold,) = opened(steps(tmp_path / "t.json", *tried, starting=310)).cold_steps
    assert cold.parts["kernels that run only once"] == 285_000
    lost = launch(8, 9, 99)  # what it launched may have been one of them
    assert not opened(steps(tmp_path / "u.json", *tried, lost, starting=310)).cold_steps


def test_mean_and_median_where_steps_differ(tmp_path, capsys):
    path = steps(tmp_path / "t.json", lasts=(100, 103, 101, 900, 102, 104, 100, 101, 103, 100))
    assert main(["report", str(path), "--no-cache"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "t takes 181 µs a step on average (median 102 µs)" in said
    assert "10 181 µs 102 µs 100 µs 900 µs" in said


@pytest.mark.parametrize(
    ("events", "first"),
    [
        # The n-th call is not the first because it is slow.
        ([launch(k * 4, k * 4 + 3, 0, "cudaStreamQuery") for k in range(3)], [True, False, False]),
        # cuBLAS starts under the first operator that needs it, whatever its calls.
        (
            [launch(0, 5, 0, "cudaMalloc"), launch(20, 30, 0, "cudaMalloc"), launch(60, 70, 0, "cudaMalloc")],
            [True, True, False],
        ),
    ],
)
def test_what_is_a_first_call(tmp_path, events, first):
    products = [op("aten::addmm", 15, 40), op("aten::addmm", 55, 80)]
    trace = opened(write(tmp_path / "t.json", *products, *events, op("aten::add", 90, 95))).trace
    calls = trace.where(lambda part: part.roles.runtime)
    assert FirstUses(trace).of(calls).tolist() == first
