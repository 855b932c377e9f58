"""A long stretch of the host: a stall only where the same is far faster elsewhere, per step only where it recurs."""

import pytest
from small import event, kernel, launch, op, step, write

from tests.findings.pointing import points_at_events
from tracekit.findings import Where, diagnose, holes
from tracekit.findings.rules import long_stretches
from tracekit.profile import open_subject


def listed(path, *events):
    profile = open_subject([write(path, *events)]).profiles[0]
    diagnosis = diagnose(profile)
    for each in diagnosis.all_findings:
        points_at_events(profile, each)
    return {each.id: each for each in diagnosis.all_findings}


def on_a_cpu(gaps, between=("aten::conv2d", "aten::relu")):
    """Steps of two operators, each 4 ms, with some µs between them in which nothing is recorded."""
    events, at = [], 0.0
    for number, gap in enumerate(gaps):
        first, second = at + 10, at + 4010 + gap
        events += [
            step(number, at, at + 8020 + gap),
            op(between[0], first, first + 4000),
            op(between[1], second, second + 4000),
        ]
        at += 8020 + gap
    return events


@pytest.fixture
def lines_known(monkeypatch):
    """As if a recording with stacks lay beside the trace."""
    for module in (holes, long_stretches):
        monkeypatch.setattr(module, "where_of_piece", lambda *_: Where("train.py", 12, "forward"))


def test_one_outlier_between_operators_is_a_stall(tmp_path, lines_known):
    findings = listed(tmp_path / "a.json", *on_a_cpu([30, 30, 30, 30, 6800, 30, 30, 30, 30, 30]))
    assert "python_bound" not in findings
    stall = findings["host_freeze"]
    assert stall.headline == "The host stalls in the time between aten::conv2d and aten::relu at train.py:12"
    assert stall.why == "Once, it takes 6.80 ms instead of the usual 30.0 µs."
    assert "The recording does not show what kept the host" in stall.advice


def test_the_places_of_stalls_are_told_by_their_time(tmp_path, lines_known):
    """Two stalls of 2 ms after the first operator of a step, and one of 9 ms after the second."""
    events, at = [], 0.0
    for number in range(12):
        start = at
        for name, gap in (
            ("aten::conv2d", 2000 if number in (3, 5) else 30),
            ("aten::relu", 9000 if number == 7 else 30),
            ("aten::mm", 10),
        ):
            events.append(op(name, at, at + 4000))
            at += 4000 + gap
        events.append(step(number, start, at - 5))
    stall = listed(tmp_path / "a.json", *events)["host_freeze"]
    assert stall.why == (
        "It does so 3 times at 2 places (between aten::relu and aten::mm once, between aten::conv2d and aten::relu "
        "2 times), for 13.0 ms in all; the longest takes 9.00 ms instead of the usual 30.0 µs."
    )


def test_a_time_that_recurs_is_no_stall(tmp_path, lines_known):
    findings = listed(tmp_path / "a.json", *on_a_cpu([30, 6800] * 5))
    assert "host_freeze" not in findings
    assert findings["python_bound"].title == (
        "Python is busy at train.py:12. It takes 3.40 ms a step, up to 6.80 ms at a time"
    )
    assert "GPU" not in findings["python_bound"].advice


def test_an_outlier_that_is_not_far_slower_than_usual_is_no_finding(tmp_path, lines_known):
    findings = listed(tmp_path / "a.json", *on_a_cpu([300] * 8 + [4200, 300]))
    assert not {"python_bound", "host_freeze"} & {*findings}


def test_what_occurs_once_and_nowhere_else_is_not_told_per_step(tmp_path, lines_known):
    events = on_a_cpu([30] * 9) + [
        each | {"ts": each["ts"] + 80_000, "name": each["name"].replace("Step#0", "Step#9")}
        for each in on_a_cpu([6800], between=("aten::conv2d", "aten::argmax"))
    ]
    findings = listed(tmp_path / "a.json", *events)
    assert "host_freeze" not in findings
    title = findings["python_bound"].title
    assert title == "Python is busy at train.py:12. It takes 6.80 ms in all, in only 1 of 10 steps"


def test_the_same_operator_at_another_line_shows_no_stall(tmp_path):
    events = []
    for number in range(6):
        at = 20_000.0 * number
        where, lasts = ("train.py(50): evaluate", 8000) if number == 4 else ("train.py(5): forward", 60)
        events += [
            step(number, at, at + 10_000),
            event("python_function", where, at + 5, at + lasts + 15),
            op("aten::mm", at + 10, at + 10 + lasts),
            launch(at + lasts, at + lasts + 5, number + 1),
            kernel("gemm", at + lasts + 8, at + 9000, number + 1),
            launch(at + lasts + 20, at + 9001, 0, "cudaDeviceSynchronize"),
        ]
    findings = listed(tmp_path / "a.json", *events)
    assert "host_freeze" not in findings
    busy = findings["dispatch_bound"]
    assert busy.headline == "The GPU waits for the host in aten::mm at train.py:50"
    assert busy.why.endswith(", in only 1 of 6 steps.")
    assert "GPU" not in busy.advice  # the operator runs where it must


def test_the_operators_around_are_those_that_no_other_encloses(tmp_path):
    inner = []
    for event_of in on_a_cpu([6800] * 6, between=("aten::linear", "aten::relu")):
        if event_of["name"] == "aten::linear":
            end = event_of["ts"] + event_of["dur"]
            inner.append(op("aten::resolve_conj", end - 5, end))
    findings = listed(tmp_path / "a.json", *on_a_cpu([6800] * 6, between=("aten::linear", "aten::relu")), *inner)
    assert findings["python_bound"].headline == "Python is busy between aten::linear and aten::relu"


def on_a_gpu(slow, usual, first_slow=8):
    """Nine steps in which the host needs 60 µs before it launches a kernel, and in the last ones 8 ms: the events that
    `usual(at, end)` and `slow(at, end)` return lie in that time."""
    events = []
    for k in range(9):
        at = 20_000.0 * k
        make, lasts = (slow, 8000) if k >= first_slow else (usual, 60)
        events += [
            step(k, at, at + 10_000),
            *make(at + 10, at + 10 + lasts),
            op("aten::mm", at + lasts + 20, at + lasts + 40),
            launch(at + lasts + 25, at + lasts + 30, k + 1),
            kernel("gemm", at + lasts + 32, at + 9000, k + 1),
            launch(at + lasts + 50, at + 9001, 0, "cudaDeviceSynchronize"),
        ]
    return events


def builtin(at, end):
    return [event("python_function", "<built-in method tolist of Tensor object>", at, end)]


def copied(rows):
    """An operator whose first input has that many rows."""
    return lambda at, end: [op("aten::copy_", at, end) | {"args": {"Input Dims": [[rows, 64], []]}}]


def beside(busy_us):
    """The same while another thread works for so long."""
    return lambda at, end: [*copied(8)(at, end), event("cpu_op", "aten::mul", at, at + busy_us, tid=77)]


def test_a_builtin_that_takes_long_is_python_at_work(tmp_path):
    findings = listed(tmp_path / "a.json", *on_a_gpu(builtin, builtin))
    assert "host_freeze" not in findings
    assert findings["python_bound"].do == (
        "Move it out of the step, or do it in parallel: in another thread or process, or on the GPU."
    )


@pytest.mark.parametrize(
    "name",
    [
        "torch/autograd/__init__.py(91): _make_grads",
        "/env/lib/python3.12/site-packages/torch/optim/adam.py(213): step",
        "<built-in method run_backward of torch._C._EngineBase object at 0x7f12>",
    ],
)
def test_what_pytorch_does_to_take_a_step_cannot_be_moved_out_of_it(tmp_path, name):
    def in_pytorch(at, end):
        return [event("python_function", name, at, end)]

    findings = listed(tmp_path / "a.json", *on_a_gpu(in_pytorch, in_pytorch))
    advice = findings["dispatch_bound" if name.startswith("<") else "python_bound"].do
    assert advice == (
        "Run every size once before you measure, and look at what else the machine does: nothing that was recorded "
        "inside the function explains its time."
    )


def test_a_larger_input_is_no_stall(tmp_path):
    findings = listed(tmp_path / "a.json", *on_a_gpu(copied(1000), copied(8)))
    assert "host_freeze" not in findings
    findings = listed(tmp_path / "b.json", *on_a_gpu(copied(8), copied(8)))
    assert findings["host_freeze"].why == (
        "Once, it takes 8.00 ms instead of the usual 60.0 µs, and the GPU idles meanwhile."
    )


@pytest.mark.parametrize(("busy_us", "crowded"), [(7000, True), (3000, False)])
def test_other_threads_are_to_blame_only_if_they_work_meanwhile(tmp_path, busy_us, crowded):
    stall = listed(tmp_path / "a.json", *on_a_gpu(beside(busy_us), copied(8)))["host_freeze"]
    assert ("other threads of this process work at the same time" in stall.do) is crowded
    assert ("The recording does not show what kept the host" in stall.do) is not crowded


def filling(at, end):
    ids = int(at)
    return [op("aten::normal_", at, end), launch(end - 5, end - 1, ids), kernel("normal", end + 2, end + 4, ids)]


def in_backward(at, end):
    node = "autograd::engine::evaluate_function: MulBackward0"
    return [op(node, at, end), op("aten::normal_", at, end)]


def test_only_work_on_the_cpu_is_to_be_moved(tmp_path):
    """Neither what backward calls, nor what submits work, nor a call of the runtime can be."""

    def advice(name, events):
        findings = listed(tmp_path / name, *on_a_gpu(events, events, first_slow=0))
        return findings["cpu_compute" if "cpu_compute" in findings else "dispatch_bound"].do

    computing = advice("cpu.json", lambda at, end: [op("aten::normal_", at, end)])
    assert computing.startswith("Let it work on the GPU")
    submitting = advice("gpu.json", filling)
    assert submitting == advice("backward.json", in_backward)
    assert submitting.startswith("Run every size once before you measure")
    calling = advice("call.json", lambda at, end: [launch(at, end, 0, "cudaFuncGetAttributes")])
    assert calling.startswith("Find out what the call waits for")
    assert "or a core that other work holds" in calling  # a host without one is held up in calls, too


def test_events_that_are_in_the_file_twice_do_no_harm(tmp_path):
    """What was recorded about an event is looked up by start and name, and is found for one of two that are alike."""
    sized = {"Input Dims": [[4, 4]], "Input type": ["float"]}
    events = [step(0, 0, 60_000), launch(1, 5, 1), kernel("gemm", 10, 40, 1)]
    for k in range(12):
        lasts = 30_000 if k == 11 else 50
        indexing = event("cpu_op", "aten::index", 100.0 * k + 100, 100.0 * k + 100 + lasts, **sized)
        events += [indexing, dict(indexing)]
    events += [launch(50_000, 50_005, 2), kernel("gemm", 50_010, 50_040, 2)]
    assert diagnose(open_subject([write(tmp_path / "t.json", *events)]).profiles[0]).all_findings
