"""Advice is given only where what it needs is there, and where nothing has shown that it does not help."""

import json

import pytest
from real import case_path
from small import event, kernel, launch, op, step, write

from tests.findings.test_gpu_details import SGEMM, working
from tracekit.findings import diagnose
from tracekit.findings.rules.matrix_products import without_tensor_cores
from tracekit.profile import open_subject
from tracekit.report import report
from tracekit.report.sections.headline import at_a_glance


def test_what_was_shown_to_be_slower_is_not_advised():
    folder = case_path("compiled_is_slower")
    made = report(open_subject([folder / "eager.json", folder / "compiled.json"]))
    eager = made.diagnoses["eager"].findings[0]
    assert eager.id == "dispatch_bound"
    assert eager.do.startswith("Compiling was tried here: compiled is ")
    assert "slower than eager (one trace each)." in eager.do
    assert "Dispatch fewer operators" not in eager.do
    assert "torch.compile" not in at_a_glance(made, ()).next_do
    alone = report(open_subject([folder / "eager.json"])).diagnoses["eager"].findings[0]
    assert "torch.compile" in alone.do


def host_bound(path, major):
    """Ten steps of ten operators, each of which launches a short kernel."""
    events = []
    for k in range(100):
        at = 100.0 * k
        events += [step(k // 10, at, at + 1000)] * (k % 10 == 0)
        events += [
            op("aten::mm", at, at + 95),
            launch(at + 90, at + 95, k + 1),
            kernel("gemm", at + 96, at + 99, k + 1),
        ]
    document = json.loads(write(path, *events).read_text()) | {"deviceProperties": [{"id": 0, "computeMajor": major}]}
    path.write_text(json.dumps(document))
    return diagnose(open_subject([path]).profiles[0]).findings


@pytest.mark.parametrize(("major", "compiles"), [(6, False), (7, True), (12, True)])
def test_compiling_is_not_advised_on_a_gpu_that_triton_refuses(tmp_path, major, compiles):
    (first, *_) = host_bound(tmp_path / "a.json", major)
    assert first.id == "dispatch_bound"
    assert ("torch.compile fuses them" in first.do) is compiles
    assert ("reduce-overhead" in first.do) is compiles
    assert ("torch.cuda.graph" in first.do) is not compiles


def test_graphs_that_are_recorded_in_every_step_need_fewer_sizes():
    profile = open_subject([case_path("graphs_recorded_every_step") / "trace.json"]).profiles[0]
    said = " ".join(finding.advice for finding in diagnose(profile).findings)
    assert "Pad batches to a few sizes" in said
    assert "Bring more of the step into" not in said


@pytest.mark.parametrize("launched", [1, 2])
def test_a_step_of_one_launch_has_nothing_to_bring_into_a_graph(tmp_path, launched):
    events = []
    for k in range(10):
        at = 1000.0 * k
        events += [step(k, at, at + 990), op("aten::mm", at, at + 800)]
        for number in range(launched):
            start, name = at + 500 + 100 * number, "cudaLaunchKernel" if number else "cudaGraphLaunch"
            correlation = 2 * k + number + 1
            events += [
                launch(start, start + 20, correlation, name),
                kernel("gemm", start + 30, start + 60, correlation),
            ]
    (first, *_) = diagnose(open_subject([write(tmp_path / "a.json", *events)]).profiles[0]).findings
    assert ("Bring more of the step into the CUDA graphs" in first.do) is (launched > 1)


@pytest.mark.parametrize(
    ("device", "major", "said"),
    [
        ("NVIDIA A100-SXM4-40GB", 8, "Allow TF32"),
        ("Tesla V100-SXM2-16GB", 7, "Run them in fp16"),
        ("Tesla P100-PCIE-16GB", 6, None),
        ("AMD Instinct MI100", 9, None),
        ("A GPU of tomorrow", None, None),
    ],
)
def test_smaller_types_are_those_of_the_devices_generation(tmp_path, device, major, said):
    product = ("aten::mm", [[10, 20], [20, 30]], SGEMM.replace("ampere_", ""), 500, {})
    found = [*without_tensor_cores(working(tmp_path / "a.json", product, device=device, major=major))]
    assert bool(found) is (said is not None)
    assert said is None or found[0].do.startswith(said)


def idle_first(path, *events):
    """Ten steps of 20 ms: for 10 of them nothing is recorded, then operators launch kernels."""
    made = [*events]
    for k in range(10):
        at = 20_000.0 * k
        made += [step(k, at, at + 20_000), op("aten::mm", at + 10_000, at + 19_000)]
        made += [launch(at + 10_100, at + 10_110, k + 1), kernel("gemm", at + 10_200, at + 19_900, k + 1)]
    return diagnose(open_subject([write(path, *made)]).profiles[0]).findings


def test_that_it_might_be_loading_is_said_to_be_a_guess(tmp_path):
    (first, *_) = idle_first(tmp_path / "a.json")
    assert first.why.endswith("it may be loading (a guess).")
    assert "num_workers" in first.do
    loader = event("user_annotation", "enumerate(DataLoader)#_SingleProcess.__next__", 19_950, 19_960)
    assert not any("a guess" in finding.why for finding in idle_first(tmp_path / "b.json", loader))


def test_a_loader_without_an_event_is_not_said_to_be_fine():
    made = report(open_subject([case_path("loader_without_an_event") / "trace.json"]))
    (answer,) = (answer for _, answer in made.answers if answer.analysis == "stages")
    assert answer.sentence == "No event of a data loader was recorded, and none that builds a graph."
    assert any("it may be loading (a guess)" in finding.why for finding in made.diagnoses["trace"].findings)
