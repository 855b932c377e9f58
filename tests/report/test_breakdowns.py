"""What stands beside the tables of buckets."""

import pytest
from small import event, kernel, launch, op, step, write

from tracekit.profile import open_subject
from tracekit.report import report
from tracekit.report.blocks import Sentences


def beside_the_host_table(path, *, kernel_ends):
    """A step of 100 µs in which the host waits for the GPU from 20 to 90 µs; its kernel ends before that."""
    events = [
        step(0, 0, 100),
        op("aten::mm", 0, 10),
        launch(2, 8, 1),
        kernel("gemm", 8, kernel_ends, 1),
        event("cuda_runtime", "cudaDeviceSynchronize", 20, 90),
        op("aten::add", 91, 99),
    ]
    sections = report(open_subject([write(path, *events)])).sections
    (host,) = (section for section in sections if section.id == "host")
    return [text for block in host.blocks if isinstance(block, Sentences) for text in block.lines]


@pytest.mark.parametrize(
    ("kernel_ends", "said"),
    [
        (
            88,
            "A step loses only 2.00 µs (sync stall), although the host waits in syncs for 70.0 µs a step, mostly while "
            "the GPU works.",
        ),
        (40, None),
    ],
)
def test_long_waits_of_the_host_that_cost_little_are_explained(tmp_path, kernel_ends, said):
    assert beside_the_host_table(tmp_path / "a.json", kernel_ends=kernel_ends) == ([said] if said else [])
