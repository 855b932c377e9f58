"""A side that is missing from the recording is reported first, and nothing is concluded from its absence."""

import pytest
from small import BEFORE, event, kernel, launch, op, step, write

from tests.findings.healthy import healthy
from tests.findings.pointing import points_at_events
from tracekit.analyses import answers
from tracekit.findings import diagnose
from tracekit.profile import open_subject
from tracekit.report import report
from tracekit.report.sections.headline import headline


def diagnosed(path):
    profile = open_subject([path]).profiles[0]
    diagnosis = diagnose(profile)
    for finding in diagnosis.all_findings:
        points_at_events(profile, finding)
    return diagnosis


def missing(path):
    diagnosis = diagnosed(path)
    assert diagnosis.findings[0].id == diagnosis.verdict.id
    assert diagnosis.findings[0].cost_ns is diagnosis.verdict.share is None
    return diagnosis.verdict.id, str(diagnosis.verdict.where)


def test_launches_without_a_kernel(tmp_path):
    events = [step(0, 0, 100), *(launch(10 * k, 10 * k + 5, k + 1) for k in range(5))]
    assert missing(write(tmp_path / "a.json", *events)) == ("gpu_side_missing", "cudaLaunchKernel")


@pytest.mark.parametrize(
    "made",
    [
        op("aten::cudnn_convolution", 10, 50),
        op("aten::_cudnn_rnn", 10, 50),
        op("triton_poi_fused_add_0", 10, 50),
        event("user_annotation", "nccl:all_reduce", 10, 50),
        event("mtia_runtime", "mtiaLaunch", 10, 50),
        event("mtia_ccp_events", "kernel", 10, 50, tid=9),
    ],
)
def test_operators_of_an_accelerator_on_a_trace_of_the_cpu(tmp_path, made):
    diagnosis = diagnosed(write(tmp_path / "a.json", step(0, 0, 100), op("aten::relu", 60, 90), made))
    assert diagnosis.verdict.id == "gpu_side_missing"
    assert not any("CPU" in finding.title + finding.advice for finding in diagnosis.findings)


@pytest.mark.parametrize("annotated", [True, False])
def test_what_the_host_needs_to_submit_work_is_not_the_work(tmp_path, annotated):
    """Rows are gathered on a GPU that was not recorded: nobody knows how long that takes, or what computing takes."""
    events = [op("aten::index_select", 10, 50), op("aten::scatter_add_", 50, 90)]
    submits = launch(20, 25, 1) if annotated else op("triton_poi_fused_add_0", 90, 95)
    path = write(tmp_path / "a.json", *([step(0, 0, 100)] if annotated else []), *events, submits)
    profile = open_subject([path]).profiles[0]
    (said,) = headline(report(open_subject([path])))
    assert "CPU" not in said
    assert "operators (" in said
    of = {each.analysis: each for each in answers(profile)}
    assert of["message_passing"].status == "unanswered"
    assert not len(of["message_passing"].table)
    assert "These are times of the host" in of["operators"].sentence


def test_kernels_of_nobody(tmp_path):
    path = write(tmp_path / "a.json", kernel("gemm", 10, 50, 1), kernel("gemm", 60, 90, 2))
    assert missing(path)[0] == "host_side_missing"


def test_kernels_of_another_process_than_that_of_the_steps(tmp_path):
    other = [each | {"pid": 2, "tid": 2} for each in (op("aten::mm", 10, 40), launch(20, 30, 1))]
    path = write(tmp_path / "a.json", step(0, 0, 100), *other, kernel("gemm", 35, 50, 1))
    assert missing(path)[0] == "host_side_missing"
    finding = diagnosed(path).findings[0]
    assert finding.headline == "The host side is missing: another process submitted GPU work"
    assert finding.why.endswith("no call of the training process that submitted it. Process 2 launched it.")


def test_a_process_whose_calls_submitted_none_of_the_work_is_not_named(tmp_path):
    other = [each | {"pid": 2, "tid": 2} for each in (op("aten::mm", 10, 40), launch(20, 30, 9))]
    path = write(tmp_path / "a.json", step(0, 0, 100), *other, kernel("gemm", 35, 50, 1))
    assert "nothing says who" in diagnosed(path).findings[0].headline


@pytest.mark.parametrize(
    "names",
    [
        ("aten::mkldnn_convolution", "aten::mm"),
        ("aten::conv2d", "cpp_fused_add_0"),
        ("aten::cudnn_is_acceptable", "aten::mkldnn_rnn_layer"),  # asked of every LSTM
    ],
)
def test_a_cpu_that_computes_is_no_missing_gpu(tmp_path, names):
    path = write(
        tmp_path / "a.json",
        *BEFORE,
        step(0, 0, 100),
        *(op(name, 10 + 40 * k, 45 + 40 * k) for k, name in enumerate(names)),
    )
    assert diagnosed(path).verdict.id == "cpu_compute"


def test_an_annotation_that_sounds_like_an_accelerator_is_none(tmp_path):
    named = event("user_annotation", "npu_emulation", 5, 95)
    path = write(tmp_path / "a.json", *BEFORE, step(0, 0, 100), named, op("aten::mm", 10, 90))
    assert diagnosed(path).verdict.id == "cpu_compute"


def test_both_sides_are_there(tmp_path):
    assert not diagnosed(healthy(tmp_path / "a.json")).findings


def test_without_operators_the_gpu_still_waits_for_the_host(tmp_path):
    """Nobody knows what the host does between its calls, but it is the host; before its first call, it need not be."""
    events = [step(0, 0, 4500)]
    for k in range(40):
        at = 500 + 100 * k
        events += [launch(at, at + 30, k + 1), kernel("gemm", at + 32, at + 62, k + 1)]
    finding, before = diagnosed(write(tmp_path / "a.json", *events)).findings
    assert before.id == "idle_unexplained"
    assert (finding.headline, finding.confidence) == ("Host-bound: the host is too slow", "inferred")
    assert "1.48 ms unrecorded time, 1.28 ms launches" in finding.why
    assert finding.claimed_ns == pytest.approx(39 * 70_000 + 32_000)
    assert finding.do.startswith("Record operators, too")
