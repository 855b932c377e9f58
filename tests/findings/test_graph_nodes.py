"""A hole before the first recorded node of every replay is not idle time of the GPU."""

import pytest
from small import kernel, launch, op, step, write

from tracekit.findings import diagnose
from tracekit.profile import open_subject


def replaying(path, holes, marked=None):
    """A step for each hole (in µs) between the launch of a graph and the first of its two nodes; perhaps only some of
    them are marked."""
    events, at = [op("aten::empty", -20, -10)], 0.0
    for k, hole in enumerate(holes):
        begin = at + 10 + hole
        events += [
            op("aten::empty", at + 0.2, at + 0.8),
            launch(at + 1, at + 10, k + 1, "cudaGraphLaunch"),
            kernel("gemm", begin, begin + 300, k + 1),
            kernel("gemm", begin + 301, begin + 600, k + 1),
            launch(at + 11, begin + 600, 0, "cudaDeviceSynchronize"),
            *([step(k, at, begin + 605)] if marked is None or k in marked else []),
        ]
        at = begin + 605
    return open_subject([write(path, *events)]).profiles[0]


def test_the_same_hole_each_time(tmp_path):
    profile = replaying(tmp_path / "a.json", [400, 402, 398, 401])
    (breach,) = (each for each in profile.trace.health if each.is_grave)
    assert (breach.id, breach.count, breach.worst["name"]) == ("lost_nodes", 4, "cudaGraphLaunch")
    assert breach.gpu.total() == (400 + 402 + 398 + 401) * 1000
    assert "queued_not_started" not in [each.id for each in diagnose(profile).findings]


def test_replays_of_one_graph_are_known_by_their_nodes_where_steps_are_not(tmp_path):
    profile = replaying(tmp_path / "a.json", [400, 402, 398, 401], marked=(0, 3))
    assert "lost_nodes" in [each.id for each in profile.trace.health]


@pytest.mark.parametrize("holes", [[8, 9, 8, 8], [400, 9, 8, 9], [400, 400]])
def test_holes_that_come_and_go_are_idle_time(tmp_path, holes):
    assert not any(each.is_grave for each in replaying(tmp_path / "a.json", holes).trace.health)
