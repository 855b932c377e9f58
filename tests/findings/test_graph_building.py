"""Graphs that are built in the loop are a finding with its line, and no time is counted twice."""

import pytest
from small import event, kernel, launch, op, step, write

from tests.findings.healthy import healthy
from tests.lines.recorded import call
from tracekit.findings import diagnose
from tracekit.findings.page import FINDING_PAGES
from tracekit.findings.rules.graph_building import graph_building
from tracekit.profile import open_subject

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def opened(path, *events):
    (profile,) = open_subject([write(path, *events)]).profiles
    return profile


def on_a_cpu(function, took=30, waits=()):
    """Steps of 100 µs in which a function of PyG's takes that long, called in `forward`."""
    events = []
    for k in range(4):
        t = 1000.0 * k
        events += [
            step(k, t, t + 100),
            call("train.py(1): train", t, t + 100),
            call("model.py(5): forward", t + 5, t + 70),
        ]
        events += [call(f"torch_geometric/utils/x.py(1): {function}", t + 10, t + 10 + took)]
        events += [
            op("aten::sort", t + 11, t + 9 + took),
            op("aten::mm", t + 60, t + 70),
            op("aten::mul", t + 70, t + 98),
        ]
        events += [event("user_annotation", LOADER, t + start, t + end) for start, end in waits]
    return events


@pytest.mark.parametrize(
    ("function", "advice"),
    [
        ("radius_graph", "If positions do not change, search once"),
        ("add_self_loops", "Do it once before training"),
        ("from_data_list", "Let a PyG DataLoader with workers"),
        ("sample_from_nodes", "Sample in the workers of a loader"),
        ("dense_to_sparse", "Build it once and keep it"),
    ],
)
def test_each_kind_has_its_advice(tmp_path, function, advice):
    (finding,) = graph_building(opened(tmp_path / "t.json", *on_a_cpu(function)))
    assert finding.headline == f"Graph building in the loop: {function} at model.py:5"
    assert finding.why == "It takes 30.0 µs of a step (30.0 %) in 1 call."
    assert finding.do.startswith(advice)
    assert finding.evidence


def test_costs_count_once_beside_operators(tmp_path):
    findings = {
        each.id: each for each in diagnose(opened(tmp_path / "t.json", *on_a_cpu("radius_graph", 30))).all_findings
    }
    assert findings["graph_building"].cost_ns == 30_000
    assert findings["cpu_compute"].cost_ns == 10_000 + 28_000  # without the sort inside of it
    assert "mul" in findings["cpu_compute"].headline


def test_the_loader_that_calls_it_has_the_cost(tmp_path):
    profile = opened(tmp_path / "t.json", *on_a_cpu("from_data_list", 30, waits=[(8, 58)]))
    assert [finding.why for finding in graph_building(profile)] == [
        "It takes 30.0 µs of a step (30.0 %) in 1 call, while the loop waits for its batch."
    ]
    findings = {each.id: each for each in diagnose(profile).all_findings}
    assert findings["dataloader_bound"].cost_ns == 50_000
    assert "graph_building" in findings["dataloader_bound"].overlaps
    assert "graph_building" not in findings
    assert "from_data_list" in " ".join(findings["dataloader_bound"].also)


def test_the_gpu_is_freed_of_its_work(tmp_path):
    events = []
    for k in range(4):
        t = 1000.0 * k
        events += [step(k, t, t + 200), op("torch_cluster::radius", t + 10, t + 40), launch(t + 20, t + 25, 2 * k + 1)]
        events += [kernel("radius_kernel", t + 26, t + 86, 2 * k + 1), op("aten::mm", t + 40, t + 50)]
        events += [launch(t + 42, t + 45, 2 * k + 2), kernel("gemm", t + 86, t + 190, 2 * k + 2)]
        events += [launch(t + 50, t + 192, 0, "cudaDeviceSynchronize")]
    (finding,) = (
        each for each in diagnose(opened(tmp_path / "t.json", *events)).all_findings if each.id == "graph_building"
    )
    assert "60.0 µs of it on the GPU" in finding.why
    assert 60_000 <= finding.cost_ns <= 76_000  # its kernel, and the host's time before


@pytest.mark.parametrize("took", [0.5, 1.9])
def test_a_little_is_none(tmp_path, took):
    events = [step(k, 1000.0 * k, 1000.0 * k + 100) for k in range(4)]
    events += [call("train.py(1): train", 1000.0 * k, 1000.0 * k + 100) for k in range(4)]
    events += [call("model.py(1): radius_graph", 1000.0 * k + 10, 1000.0 * k + 10 + took) for k in range(4)]
    events += [op("aten::mm", 1000.0 * k + 20, 1000.0 * k + 100) for k in range(4)]
    assert not [*graph_building(opened(tmp_path / "t.json", *events))]


def test_a_healthy_loop_has_none(tmp_path):
    (profile,) = open_subject([healthy(tmp_path / "t.json")]).profiles
    assert not [*graph_building(profile)]


def test_every_cure_says_what_it_changes():
    assert {cure.safety for cure in FINDING_PAGES["graph_building"].cures} == {"memory", "results", "rounding"}
