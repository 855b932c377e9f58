"""The same few operators again and again, each for a tiny kernel; no layers, long kernels, steps of one operator."""

import pytest
from small import event, kernel, launch, op, step, write

from tracekit.findings import diagnose
from tracekit.findings.rules.habits import operator_loops
from tracekit.profile import open_subject


def looping(path, times, body=("aten::add_",), length=2.0, steps=3, around=None):
    """Each operator takes 10 µs of the host; its kernel starts when it ends. A large kernel follows."""
    events, number = [], 0
    for k in range(steps):
        at = begun = 10_000.0 * k
        for name in body * times:
            number += 1
            events += [
                op(name, at, at + 10),
                launch(at + 5, at + 9, number),
                kernel("k", at + 10, at + 10 + length, number),
            ]
            at += 10
        if around is not None:
            events.append(event("user_annotation", around, begun, at))
        number += 1
        events += [
            op("aten::mm", at, at + 10),
            launch(at + 5, at + 9, number),
            kernel("gemm", at + 20, at + 500, number),
        ]
        events += [launch(at + 15, at + 502, 0, "cudaDeviceSynchronize"), step(k, begun, at + 505)]
    return open_subject([write(path, *events)]).profiles[0]


@pytest.mark.parametrize("body", [("aten::add_",), ("aten::mul_", "aten::add_", "aten::copy_")])
def test_a_loop_costs_its_host_time_and_its_kernels(tmp_path, body):
    profile = looping(tmp_path / "a.json", times=60, body=body)
    (finding,) = operator_loops(profile)
    assert finding.where.operator == body[0]
    assert f"{60 * len(body)} operators a step" in finding.why
    first = diagnose(profile).findings[0]
    assert first.id == "operator_loop"
    assert first.cost_ns == pytest.approx(60 * len(body) * 10_000, rel=0.05)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"times": 12}, id="as many may be layers"),
        pytest.param({"times": 60, "length": 9.0}, id="kernels that have enough to do"),
        pytest.param({"times": 1, "steps": 60}, id="steps of one operator"),
        pytest.param({"times": 40, "body": tuple(f"aten::op{k}" for k in range(6))}, id="a larger model"),
        pytest.param({"times": 60, "around": "Optimizer.step#SGD.step"}, id="a habit with a rule of its own"),
    ],
)
def test_what_is_no_loop_of_small_operators(tmp_path, options):
    assert not [*operator_loops(looping(tmp_path / "a.json", **options))]
