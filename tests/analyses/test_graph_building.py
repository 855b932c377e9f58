"""What building graphs in the loop takes: known answers, with stacks and without, on host and GPU."""

import pytest
from small import event, kernel, launch, op, step, write

from tests.lines.owner_twin import adds_up, agrees
from tests.lines.recorded import call, recorded_run
from tracekit.analyses import summary
from tracekit.profile import open_subject


def opened(path, *events):
    (profile,) = open_subject([write(path, *events)]).profiles
    return profile


def rows(profile):
    return summary(profile, "graph_building").table.to_pylist()


def on_a_gpu(k, *around):
    """A step of 100 µs: an operator searches neighbours, for which a kernel works beside the kernel of a product."""
    t = 1000.0 * k
    return [
        step(k, t, t + 100),
        *(call(name, t + start, t + end) for name, start, end in around),
        op("torch_cluster::radius", t + 10, t + 40),
        launch(t + 20, t + 25, 2 * k + 1),
        kernel("radius_kernel", t + 30, t + 60, 2 * k + 1),
        op("aten::mm", t + 40, t + 50),
        launch(t + 42, t + 45, 2 * k + 2),
        kernel("gemm", t + 60, t + 100, 2 * k + 2),
    ]


def test_an_operator_without_stacks(tmp_path):
    profile = opened(tmp_path / "t.json", *on_a_gpu(0), *on_a_gpu(1), *on_a_gpu(2))
    (row,) = rows(profile)
    assert (row["builder"], row["where"], row["per_step"]) == ("torch_cluster::radius", None, 1)
    # The GPU idles for 20 µs of the operator, and works for it for 30.
    assert (row["step_ns"], row["host_ns"], row["gpu_ns"], row["share"]) == (50_000, 30_000, 30_000, 0.5)
    assert summary(profile, "graph_building").sentence == (
        "Building graphs takes 50.0 µs of a step, 50.0 % (30.0 µs of the host's time and 30.0 µs of the GPU's): "
        "torch_cluster::radius (50.0 µs). Without Python stacks only operators of pyg-lib, torch-cluster and "
        "torch-sparse are seen, and spans named “graph building”."
    )
    stages = summary(profile, "stages").table.to_pylist()
    assert {row["stage"]: row["step_ns"] for row in stages} == {"graph building": 50_000, "running the model": 50_000}


def test_the_line_that_calls_a_function(tmp_path):
    frames = ("train.py(1): train", 0, 100), ("model.py(5): forward", 2, 55), ("model.py(1): radius_graph", 8, 41)
    profile = opened(tmp_path / "t.json", *on_a_gpu(0, *frames), *on_a_gpu(1, *frames))
    (row,) = rows(profile)
    assert (row["builder"], row["function"], row["host_ns"]) == ("radius_graph", "forward", 33_000)
    assert row["gpu_ns"] == 30_000
    assert "stacks" not in summary(profile, "graph_building").sentence
    phases = profile.owner_means.by("wall", lambda owner: owner.phase)
    assert phases["graph building"] == row["step_ns"] == 22_000 + 30_000
    adds_up(profile.ownership)
    agrees(profile.ownership, 60)


def test_functions_are_carried_over_to_the_steady_trace(tmp_path):
    detail = write(
        tmp_path / "detail.json",
        step(0, 0, 100),
        call("mine.py(1): work", 0, 100),
        call("torch_geometric/utils/loop.py(5): add_self_loops", 10, 62),
        op("aten::mm", 20, 60),
        op("aten::add", 64, 70),
        op("aten::relu", 85, 95),
    )
    (profile,) = open_subject([recorded_run(detail)]).profiles
    (row,) = rows(profile)
    # The steady trace has no frames: its aten::mm takes 80 µs, with some of the time around it.
    assert (row["builder"], row["function"], row["per_step"]) == ("add_self_loops", "work", 1)
    assert 80_000 <= row["host_ns"] == row["step_ns"] < 120_000


def test_a_loop_that_builds_none(tmp_path):
    answer = summary(opened(tmp_path / "a.json", step(0, 0, 100), op("aten::mm", 0, 100)), "graph_building")
    assert (answer.status, answer.sentence) == (
        "absent",
        "Nothing that builds a graph was recorded in a step; without Python stacks only operators of pyg-lib, "
        "torch-cluster and torch-sparse are seen, and spans named “graph building”.",
    )
    stacks = call("train.py(1): train", 0, 100)
    answer = summary(opened(tmp_path / "b.json", step(0, 0, 100), stacks, op("aten::mm", 0, 90)), "graph_building")
    assert answer.sentence == "No function or operator that builds a graph was recorded in a step."


def test_what_another_thread_builds_is_no_stage(tmp_path):
    worker = event("cpu_op", "pyg::neighbor_sample", 10, 90, tid=2)
    assert not rows(opened(tmp_path / "t.json", step(0, 0, 100), op("aten::mm", 0, 100), worker))


@pytest.mark.parametrize("name", ["graph building", "neighbor_list"])
def test_a_span_of_the_users_own(tmp_path, name):
    span = event("user_annotation", name, 20, 60)
    (row,) = rows(opened(tmp_path / "t.json", step(0, 0, 100), op("aten::mm", 0, 100), span))
    assert (row["builder"], row["host_ns"], row["step_ns"]) == (name, 40_000, 40_000)
