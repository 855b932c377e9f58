"""A GPU that sets the pace: by which kind of work, and by which kernel."""

import numpy as np
import pytest
from real import trace_path
from small import BEFORE, event, kernel, launch, op, step, write

from tracekit.base.intervals import Union
from tracekit.findings import Finding, diagnose, diagnosis
from tracekit.findings.verdict import as_finding, phase_shares, verdict
from tracekit.profile import open_subject

GEMM = "ampere_bf16_s16816gemm_bf16_128x64_tn"
MEMORY = "gpu_bound_memory_bound"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)"


def busy(path, *work, call="cudaLaunchKernel"):
    """Two steps that keep the GPU busy; each piece of work is given by operator, name, µs and category."""
    events = []
    for k in range(2):
        at = 1000.0 * k
        until = at + 10
        for number, (operator, name, length, cat) in enumerate(work):
            events += [
                op(operator, at + number, at + number + 0.9),
                launch(at + number + 0.1, at + number + 0.8, 10 * k + number + 1, call),
                kernel(name, until, until + length, 10 * k + number + 1, cat),
            ]
            until += length
        events.append(step(k, at, until))
    return diagnose(open_subject([write(path, *events)]).profiles[0])


@pytest.mark.parametrize(
    ("work", "verdict", "operator", "costliest"),
    [
        ([("aten::mm", GEMM, 600, "kernel"), ("aten::add", ADD, 300, "kernel")], "gpu_bound_gemm", "aten::mm", GEMM),
        ([("aten::mm", GEMM, 300, "kernel"), ("aten::add", ADD, 600, "kernel")], MEMORY, "aten::add", ADD),
        ([("my::own", "mine", 900, "kernel")], "gpu_bound_other", "my::own", "mine"),
        ([("aten::copy_", "Memcpy DtoD", 900, "gpu_memcpy")], MEMORY, "aten::copy_", "Memcpy DtoD"),
    ],
)  # fmt: skip
def test_the_kind_that_takes_most(tmp_path, work, verdict, operator, costliest):
    diagnosis = busy(tmp_path / "busy.json", *work)
    assert diagnosis.verdict.id == verdict
    assert (diagnosis.verdict.where.operator, diagnosis.verdict.where.kernel) == (operator, costliest)
    assert diagnosis.verdict.share > 0.95


def test_the_advice_begins_with_what_can_be_saved(tmp_path):
    """That is what other findings say of the GPU's work, and otherwise its largest kernel."""
    busy(tmp_path / "busy.json", ("aten::mm", GEMM, 900, "kernel"))
    profile = open_subject([tmp_path / "busy.json"]).profiles[0]
    alone = as_finding(profile, verdict(profile), [])
    assert alone.do.startswith("Make the GPU's work cheaper, beginning with bf16_s16816gemm bf16 128x64 tn (ampere)")
    for low, words in ((20_000, "Begin with the other findings"), (2_000, "Make the GPU's work cheaper")):
        claim = Union.of(np.array([low]), np.array([low + 5_000]))
        beside = as_finding(profile, verdict(profile), [Finding("x", "X", claim=claim)])
        assert beside.do.startswith(words)


def bounded_by_both(path, latency=15):
    """Five products a step of 200 µs each, which take the host 100 µs each: without the GPU's work, half is left. The
    first one of a step starts `latency` µs after the step does."""
    events, at, free = [], 0.0, 0.0
    for k in range(4):
        begin = at
        for n in range(5):
            start = max(at + latency, free)
            free = start + 200
            events += [op("aten::mm", at, at + 100), launch(at + 10, at + 15, 100 * k + n + 1)]
            events.append(kernel(GEMM, start, free, 100 * k + n + 1))
            at += 100
        events.append(launch(at, free, 0, "cudaDeviceSynchronize"))
        at = free
        events.append(step(k, begin, at))
    return open_subject([write(path, *events)]).profiles[0]


def test_other_findings_about_the_work_take_their_part_of_what_it_can_save(tmp_path):
    """What a step saves without any of the GPU's work is less than that work takes where the host needs time, too."""
    profile = bounded_by_both(tmp_path / "a.json")
    alone = as_finding(profile, verdict(profile), [])
    assert alone.then_bound_by == "host"
    assert alone.cost_ns < 0.6 * alone.claimed_ns
    pieces = profile.attribution.pieces
    work, idle = pieces.union(pieces.of("gpu_compute")), pieces.union(pieces.of("dispatch"))
    part = Finding("x", "X", claim=work, cost_ns=300_000.0, share=0.3)
    rest = as_finding(profile, verdict(profile), [part])
    assert rest.cost_ns == pytest.approx(alone.cost_ns - 300_000)
    assert rest.then == "without this cause, the host would bound the step"  # not: "so removing it saves only 215 µs"
    elsewhere = Finding("y", "Y", claim=idle, cost_ns=10_000.0, share=0.01)
    assert as_finding(profile, verdict(profile), [elsewhere]).cost_ns == pytest.approx(alone.cost_ns)


def test_a_host_that_keeps_up_is_not_to_be_made_faster_first(tmp_path, monkeypatch):
    """Only where its own finding costs more than the GPU's work can save."""
    profile = bounded_by_both(tmp_path / "a.json")
    monkeypatch.setattr("tracekit.findings.verdict._MAIN_SHARE", 0.6)
    usual = verdict(profile)
    assert as_finding(profile, usual, []).do.endswith("After that, the host has to become faster, too.")
    slow_host = Finding("dispatch_bound", "Dispatch-bound", cost_ns=900_000.0, share=0.9)
    assert as_finding(profile, usual, [slow_host]).do.startswith("Make the host faster first")


def test_only_one_thing_bounds_a_step(tmp_path):
    """Where that is the GPU's work, a slow host is told as one that bounds the step at times."""
    profile = bounded_by_both(tmp_path / "a.json", latency=100)
    pieces = profile.attribution.pieces
    idle = pieces.union(pieces.of("dispatch", "kernel_launch"))
    slow_host = Finding("dispatch_bound", "Dispatch-bound: the host is too slow", claim=idle)
    headlines = [finding.headline for finding in diagnosis(profile, [slow_host]).all_findings]
    assert headlines == [
        "GPU-bound, mostly by matrix products and convolutions",
        "Dispatch-bound at times: the host is too slow",
    ]


def test_graphs_that_keep_the_gpu_supplied_are_said(tmp_path):
    diagnosis = busy(tmp_path / "graph.json", ("graph", GEMM, 900, "kernel"), call="cudaGraphLaunch")
    assert diagnosis.verdict.id == "cuda_graph_ok_gpu_bound"


def test_a_copy_that_kernels_hide_takes_no_time(tmp_path):
    events = [
        step(0, 0, 910),
        op("aten::mm", 0, 5),
        launch(1, 4, 1),
        op("aten::copy_", 5, 9),
        launch(6, 8, 2, "cudaMemcpyAsync"),
        kernel(ADD, 10, 400, 1),
        kernel("Memcpy HtoD (Pinned -> Device)", 10, 910, 2, "gpu_memcpy") | {"tid": 9},
        op("aten::add", 400, 405),
        launch(401, 402, 3),
        kernel(ADD, 410, 900, 3),
    ]
    diagnosis = diagnose(open_subject([write(tmp_path / "hidden.json", *BEFORE, *events)]).profiles[0])
    assert diagnosis.verdict.where.kernel == ADD


def worked(at, until, length, correlation, name=GEMM, call="cudaLaunchKernel", tid=1):
    """A kernel, and the call that launches it."""
    return [
        launch(at, at + 1, correlation, call) | {"tid": tid},
        kernel(name, until, until + length, correlation),
    ]


def phases_of(path, *events):
    return phase_shares(open_subject([write(path, step(0, 0, 915), *events)]).profiles[0])


def test_forward_backward_and_the_optimizer(tmp_path):
    backward = [op("autograd::engine::evaluate_function: MmBackward0", 20, 25), *worked(21, 310, 500, 2)]
    optimizer = [event("user_annotation", "Optimizer.step#SGD.step", 30, 40), *worked(31, 810, 100, 3)]
    events = [step(0, 0, 915), op("aten::mm", 0, 5), *worked(1, 10, 300, 1), *backward, *optimizer]
    profile = open_subject([write(tmp_path / "a.json", *BEFORE, *events)]).profiles[0]
    shares = {"forward and the rest": 3 / 9, "backward": 5 / 9, "the optimizer": 1 / 9}
    assert phase_shares(profile) == pytest.approx(shares)
    assert "forward and the rest 33.3 %, backward 55.6 %, the optimizer 11.1 %" in diagnose(profile).verdict.sentence
    assert not phase_shares(open_subject([write(tmp_path / "b.json", *events[:4])]).profiles[0])


NODE = "autograd::engine::evaluate_function: MmBackward0"
WGRAD = "cudnn::cnn::wgrad_alg0_engine<float, 128>(int)"


def test_backward_is_what_its_thread_launches(tmp_path):
    """Also between its nodes, and where no node was recorded around a launch."""
    thread = [event("cpu_op", NODE, 20, 25, tid=2), *worked(40, 310, 500, 2, tid=2)]
    assert phases_of(tmp_path / "a.json", op("aten::mm", 0, 5), *worked(1, 10, 500, 1), *thread) == {
        "forward and the rest": 0.5,
        "backward": 0.5,
    }


@pytest.mark.parametrize(
    ("name", "phase"),
    [
        ("## backward ##", "backward"),
        ("(B) micro-batch 3", "backward"),
        ("backward", "backward"),
        ("## optimizer ##", "the optimizer"),
        ("Optimizer.zero_grad#SGD.zero_grad", "the optimizer"),
        ("## backwards compatible ##", None),
    ],
)
def test_the_programs_own_words_count(tmp_path, name, phase):
    named = [event("user_annotation", name, 20, 45), *worked(40, 510, 300, 2)]
    told = phases_of(tmp_path / "a.json", op("aten::mm", 0, 5), *worked(1, 10, 500, 1), *named)
    assert told == ({"forward and the rest": 5 / 8, phase: 3 / 8} if phase else {})


def test_phases_that_contradict_the_kernels_are_not_told(tmp_path):
    some = [op(NODE, 20, 25), *worked(21, 310, 500, 2)]
    assert phases_of(tmp_path / "a.json", *worked(1, 10, 300, 1), *some)
    assert not phases_of(tmp_path / "b.json", *worked(1, 10, 300, 1, name=WGRAD), *some)


def test_a_graph_that_no_phase_encloses_may_hold_all_of_them(tmp_path):
    some = [op(NODE, 20, 25), *worked(21, 810, 100, 2)]
    assert not phases_of(tmp_path / "a.json", *worked(1, 10, 700, 1, call="cudaGraphLaunch"), *some)
    assert phases_of(tmp_path / "b.json", *worked(1, 10, 700, 1), *some)


def test_backward_of_a_real_run_that_names_no_node_is_that_of_its_thread():
    told = phase_shares(open_subject([trace_path("kineto_resnet50_v100_dataloader4")]).profiles[0])
    assert told["backward"] == pytest.approx(0.63, abs=0.01)
