"""A hole before the first recorded node of every replay is not idle time of the GPU."""

import pytest
from small import kernel, launch, step, write

from tracekit.findings import diagnose
from tracekit.findings.rules.not_recorded import graph_nodes
from tracekit.profile import open_subject


def replaying(path, holes):
    """One step for each hole (in µs) between the launch of a graph and the first of its two nodes."""
    events, at = [], 0.0
    for k, hole in enumerate(holes):
        begin = at + 10 + hole
        events += [
            launch(at + 1, at + 10, k + 1, "cudaGraphLaunch"),
            kernel("gemm", begin, begin + 300, k + 1),
            kernel("gemm", begin + 301, begin + 600, k + 1),
            launch(at + 11, begin + 600, 0, "cudaDeviceSynchronize"),
            step(k, at, begin + 605),
        ]
        at = begin + 605
    return open_subject([write(path, *events)]).profiles[0]


def test_the_same_hole_each_time(tmp_path):
    profile = replaying(tmp_path / "a.json", [400, 402, 398, 401])
    (finding,) = graph_nodes(profile)
    assert finding.where.function == "cudaGraphLaunch"
    (cost,) = (each.cost_ns for each in diagnose(profile).all_findings if each.id == "graph_nodes_missing")
    assert cost == pytest.approx(400_250)


@pytest.mark.parametrize("holes", [[8, 9, 8, 8], [400, 9, 8, 9], [400, 900, 150, 3000], [400, 400]])
def test_holes_that_come_and_go_are_idle_time(tmp_path, holes):
    assert not [*graph_nodes(replaying(tmp_path / "a.json", holes))]
