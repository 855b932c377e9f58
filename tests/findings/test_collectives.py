"""Collectives that need not be, or not so late: each rule fires on its cause, and is silent without it."""

import pytest
from real import trace_path
from small import event, kernel, launch, step, write

from tracekit.findings import diagnose
from tracekit.findings.rules.communication import buffer_broadcast, late_collectives
from tracekit.profile import open_subject

NCCL = "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)"


def of(path, make):
    """Two steps of 1,000 µs each."""
    events = [each for k in range(2) for each in (step(k, 1000 * k, 1000 * k + 1000), *make(1000.0 * k, 10 * k + 1))]
    return open_subject([write(path, *events)]).profiles[0]


def broadcasting(name="nccl:broadcast", forward="DistributedDataParallel.forward", overlap=50):
    """200 µs of communication before the forward pass, of which the last 50 overlap its first kernel."""

    def make(at, number):
        return [
            event("user_annotation", forward, at + 5, at + 500),
            event("user_annotation", name, at + 10, at + 20),
            launch(at + 11, at + 15, number),
            kernel(NCCL, at + 100, at + 300, number) | {"tid": 9},
            launch(at + 30, at + 35, number + 1),
            kernel("gemm", at + 300 - overlap, at + 990, number + 1),
            launch(at + 40, at + 990, 0, "cudaDeviceSynchronize"),
        ]

    return make


def test_the_buffers_that_ddp_broadcasts(tmp_path):
    (finding,) = buffer_broadcast(of(tmp_path / "a.json", broadcasting()))
    assert finding.claim.total() == 2 * 150_000
    assert "1 broadcast a step, during which the GPU computes nothing for 150 µs" in finding.title
    told = " ".join(each.advice for each in diagnose(of(tmp_path / "b.json", broadcasting(overlap=0))).findings)
    assert "broadcast_buffers=False" in told


@pytest.mark.parametrize(
    ("name", "forward"), [("nccl:all_reduce", "DistributedDataParallel.forward"), ("nccl:broadcast", "epoch")]
)
def test_other_communication_is_not_of_buffers(tmp_path, name, forward):
    assert not [*buffer_broadcast(of(tmp_path / "a.json", broadcasting(name, forward)))]


def test_buffers_that_take_no_time_are_found_but_not_told():
    profile = open_subject([trace_path("tracelens_resnet_mi300x_training")]).profiles[0]
    (finding,) = buffer_broadcast(profile)
    assert "2 broadcasts a step" in finding.title
    assert "broadcast_buffers" not in " ".join(each.advice for each in diagnose(profile).findings)


def reducing(busy=True, submitted=30.0, call="cudaLaunchKernel"):
    """A collective that could begin at 200 µs and begins at 500, while another kernel runs, submitted after it."""

    def make(at, number):
        return [
            launch(at + 10, at + 15, number),
            kernel("gemm", at + 20, at + 200, number),
            launch(at + submitted, at + submitted + 5, number + 1, call),
            kernel(NCCL, at + 500, at + 900, number + 1) | {"tid": 9},
            *([launch(at + 40, at + 45, number + 2), kernel("gemm", at + 200, at + 600, number + 2)] if busy else []),
        ]

    return make


def test_a_collective_that_begins_late(tmp_path):
    (finding,) = late_collectives(of(tmp_path / "a.json", reducing()))
    assert "1 collective a step could begin earlier, by 300 µs at most" in finding.title
    assert "TORCH_NCCL_HIGH_PRIORITY=1" in finding.advice
    assert finding.claim.total() == 2 * 300_000  # it would have ended at 600 µs


@pytest.mark.parametrize(
    "make",
    [
        reducing(busy=False),  # nothing runs that it could wait for
        reducing(submitted=480.0),  # it begins as soon as it is submitted
        reducing(submitted=50.0),  # it may wait for the second product, which was submitted before it
        reducing(call="cudaGraphLaunch"),
    ],
)
def test_a_collective_that_could_not_begin_earlier(tmp_path, make):
    found = [*late_collectives(of(tmp_path / "a.json", make))]
    assert not found


@pytest.mark.parametrize("name", ["tracelens_resnet_mi300x_training", "param_dlrm_v100_rank1", "hta_diff_control"])
def test_in_real_jobs_collectives_begin_when_they_can(name):
    found = diagnose(open_subject([trace_path(name)]).profiles[0])
    assert "TORCH_NCCL_HIGH_PRIORITY" not in " ".join(each.advice for each in found.findings)
