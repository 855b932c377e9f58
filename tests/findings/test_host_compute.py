"""Operators that compute on the CPU, in a run on a GPU."""

import pytest
from small import kernel, launch, op, step, write

from tests.findings.pointing import points_at_events
from tracekit.findings import diagnose
from tracekit.profile import open_subject

NODE = "autograd::engine::evaluate_function: MulBackward0"


def listed(path, make, steps=5):
    """Findings about steps that submit a kernel of 100 µs after 2 ms in which the host does what `make` says."""
    events = []
    for k in range(steps):
        at = 10_000.0 * k
        events += [
            step(k, at, at + 2200),
            *make(at + 10, at + 2010),
            op("aten::mm", at + 2020, at + 2040),
            launch(at + 2025, at + 2030, k + 1),
            kernel("gemm", at + 2032, at + 2132, k + 1),
            launch(at + 2045, at + 2133, 0, "cudaDeviceSynchronize"),
        ]
    profile = open_subject([write(path, *events)]).profiles[0]
    diagnosis = diagnose(profile)
    for each in diagnosis.all_findings:
        points_at_events(profile, each)
    return {each.id: each for each in diagnosis.all_findings}


def drawn(at, end):
    return [op("aten::normal_", at, end)]


def in_pieces(at, end):
    """Three operators of two thirds of a millisecond: none of them is a long stretch by itself."""
    return [op("aten::normal_", at + 666 * k, at + 666 * k + 664) for k in range(3)]


@pytest.mark.parametrize("make", [drawn, in_pieces])
def test_an_operator_that_computes_on_the_cpu(tmp_path, make):
    findings = listed(tmp_path / "a.json", make)
    found = findings["cpu_compute"]
    assert found.headline == "The GPU waits while the CPU computes aten::normal_"
    assert found.why.startswith("It computes on the CPU for ")
    assert found.cost_ns == pytest.approx(2_000_000, rel=0.02)
    assert "dispatch_bound" not in findings
    assert "torch.compile" not in found.advice


def submitting(at, end):
    return [op("aten::normal_", at, end), launch(end - 5, end - 1, int(at)), kernel("n", end, end + 2, int(at))]


@pytest.mark.parametrize(
    "make",
    [
        submitting,
        lambda at, end: [op(NODE, at, end), op("aten::normal_", at, end)],
        lambda at, end: [op("aten::empty", at, end)],
        lambda at, end: [op("c10d::allreduce_", at, end)],
        lambda at, end: [op("aten::normal_", at + 50 * k, at + 50 * k + 48) for k in range(40)],
    ],
    ids=["it submits work", "backward", "allocates", "communicates", "dispatches"],
)
def test_what_does_not_compute_on_the_cpu(tmp_path, make):
    assert "cpu_compute" not in listed(tmp_path / "a.json", make)
