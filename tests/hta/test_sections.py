"""Sections by HTA: only on request, and with the reason if HTA's number differs from ours."""

import pytest
from real import trace_path

from tracekit.hta.sections import asked_for, gpu_time, taken_for_kernels
from tracekit.profile import open_subject
from tracekit.report import report
from tracekit.trace import Trace


def sections(*names):
    with asked_for():
        made = report(open_subject([trace_path(name) for name in names])).sections
    return {each.id: each.blocks for each in made if each.id.startswith("hta_")}


def rows(blocks):
    return next(block.rows.to_pylist() for block in blocks if block.kind == "table")


@pytest.mark.traces
def test_nothing_of_hta_unless_it_is_asked_for():
    made = report(open_subject([trace_path("leimao_eager_rtx5080")]))
    assert not any(each.id.startswith("hta_") for each in made.sections)


@pytest.mark.traces
def test_idle_time_is_ours_and_what_hta_says_by_default_stands_beside_it():
    made = sections("hta_ns_resolution")["hta_gpu_time"]
    idle = next(row for row in rows(made) if row["what"] == "idle")
    assert idle["here_ns"] == pytest.approx(7_574_738, abs=1)
    assert idle["hta_ns"] == pytest.approx(idle["here_ns"], abs=2)
    assert idle["because"] is None
    assert idle["hta_alone_ns"] > 10_000_000
    assert "leaves out the last step" in made[0].lines[0]


@pytest.mark.traces
def test_host_operators_that_it_takes_for_kernels_are_named():
    trace = Trace.load(trace_path("hta_triton_example"))
    assert gpu_time(trace).compute_ns == 1760
    assert taken_for_kernels(trace) == (1, 95_812)
    compute = next(row for row in rows(sections("hta_triton_example")["hta_gpu_time"]) if row["what"] == "compute")
    assert compute["here_ns"] == 1760
    assert compute["because"] == "it takes 1 host event with a stream for kernels (95.8 µs)"


@pytest.mark.traces
def test_critical_path_and_queue_length():
    made = sections("leimao_eager_rtx5080")
    assert "The longest chain of work in the second step takes" in made["hta_critical_path"][0].lines[0]
    assert sum(row["path_ns"] for row in rows(made["hta_critical_path"])) > 1_000_000
    assert "pieces of work are queued, on stream 7 of rank 0" in made["hta_queue_length"][0].lines[0]
    assert "hta_overlap" not in made


@pytest.mark.traces
def test_overlap_of_four_ranks():
    overlaps = rows(sections(*(f"param_dlrm_v100_rank{rank}" for rank in range(4)))["hta_overlap"])
    assert [row["rank"] for row in overlaps] == [0, 1, 2, 3]
    for row in overlaps:
        assert row["because"] is None
        assert row["here"] == pytest.approx(row["hta"], abs=1e-4)
