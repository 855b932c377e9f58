"""Copies from pageable memory: what is usual, and what happened once."""

import pytest
from small import event, kernel, launch, op, step, write

from tracekit.findings import diagnose
from tracekit.profile import open_subject


def copying(path, *lasts_us):
    """Each step copies once, in a call of the given length, and then runs a kernel."""
    events, at = [], 0.0
    for k, lasts in enumerate(lasts_us):
        copied = at + 10 + lasts
        events += [
            op("aten::to", at, copied + 2),
            launch(at + 5, copied, 2 * k + 1, "cudaMemcpyAsync"),
            event(
                "gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", at + 10, copied - 1,
                tid=7, pid=0, correlation=2 * k + 1, stream=7, bytes=10**6,
            ),
            launch(copied + 2, copied + 8, 2 * k + 2),
            kernel("gemm", copied + 10, copied + 1000, 2 * k + 2),
            step(k, at, copied + 1000),
        ]  # fmt: skip
        at = copied + 1000
    (found,) = (
        each
        for each in diagnose(open_subject([write(path, *events)]).profiles[0]).all_findings
        if each.id == "h2d_pageable_copy"
    )
    return found.why


def test_a_copy_that_took_long_once_is_told_beside_the_usual_one(tmp_path):
    why = copying(tmp_path / "a.json", 300, 300, 310, 4000, 300, 290)
    assert why.endswith(
        " a step on average; the longest takes 4.00 ms, where a copy of that size usually takes 305 µs."
    )


@pytest.mark.parametrize("lasts", [(300, 310, 290, 500), (300, 4000)])
def test_nothing_is_unusual_among_copies_that_are_alike_or_few(tmp_path, lasts):
    assert "usually" not in copying(tmp_path / "a.json", *lasts)
