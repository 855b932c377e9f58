"""What memory that is allocated in every step costs, also right after a wait."""

import pytest
from small import event, kernel, launch, op, step, write

from tracekit.findings import diagnose
from tracekit.profile import open_subject


def cost(path, first, second):
    """Each step of 400 µs waits for a kernel of 100 µs and then makes two calls of 100 µs each, the first of which is
    part of the refill after the wait; then it launches another kernel of 50 µs."""
    events = []
    for k in range(5):
        at, n = 400.0 * k, 2 * k + 1
        events += [
            step(k, at, at + 400),
            launch(at, at + 5, n),
            kernel("gemm", at + 10, at + 110, n),
            launch(at + 6, at + 115, 0, "cudaDeviceSynchronize"),
            op("aten::empty", at + 115, at + 315),
            *(event("cuda_runtime", name, at + 115 + 100 * j, at + 215 + 100 * j) for j, name in enumerate(first)),
            *(event("cuda_runtime", name, at + 215 + 100 * j, at + 315 + 100 * j) for j, name in enumerate(second)),
            launch(at + 320, at + 325, n + 1),
            kernel("relu", at + 330, at + 380, n + 1),
            launch(at + 330, at + 385, 0, "cudaStreamSynchronize"),
        ]
    diagnosis = diagnose(open_subject([write(path, *events)]).profiles[0])
    return next(each.cost_ns for each in diagnosis.all_findings if each.id == "allocator")


def test_calls_in_the_refill_after_a_wait_are_part_of_the_cost(tmp_path):
    assert cost(tmp_path / "both.json", ["cudaFree"], ["cudaMalloc"]) == pytest.approx(200_000, rel=0.05)
    assert cost(tmp_path / "one.json", ["cudaEventQuery"], ["cudaMalloc"]) == pytest.approx(100_000, rel=0.05)
