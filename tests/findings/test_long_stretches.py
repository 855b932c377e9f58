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
    assert "what kept the thread from running, which is the likeliest cause" in stall.advice


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
