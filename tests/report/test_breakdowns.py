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


def test_operators_do_not_compute_what_they_submit_to_a_device_that_was_not_recorded(tmp_path):
    """Tables and sentences call them the same: what computes on a CPU looks alike in the trace."""

    def told(*events):
        made = report(open_subject([write(tmp_path / "a.json", step(0, 0, 100), op("aten::mm", 0, 90), *events)]))
        tables = [section.blocks[0] for section in made.sections if section.id in ("wall", "host")]
        labels = {part.label for table in tables for part in table.parts if part.key == "cpu_compute"}
        (headline,) = (section for section in made.sections if section.id == "headline")
        return labels, headline.blocks[0].lines[0]

    labels, sentence = told()
    assert labels == {"CPU compute"}
    assert "90.0 µs CPU compute" in sentence
    labels, sentence = told(launch(10, 20, 1))
    assert labels == {"operators"}
    assert sentence == (
        "a: where the wall time went is unknown; the host takes 100 µs a step: 80.0 µs operators (80.0 %), "
        "10.0 µs Python (10.0 %), 10.0 µs launches (10.0 %)."
    )
