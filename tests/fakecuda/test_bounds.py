"""What binds a step by construction is what tracekit says binds it: the same loop on devices of different speed."""

import os
import subprocess
import sys

import pytest

if "FAKECUDA" not in os.environ:
    pytest.skip("needs the fake GPU: make verify-cuda", allow_module_level=True)

from tracekit.findings import diagnose
from tracekit.findings.verdict import HOST_BOUND, verdict
from tracekit.profile import open_subject

LOOP = """
import sys
import torch
from torch.profiler import ProfilerActivity, profile, schedule

net = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8)).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(1024, 256)


def step():
    optimizer.zero_grad()
    net(x.to("cuda")).square().mean().backward()
    optimizer.step()


for _ in range(3):
    step()
with profile(
    activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
    schedule=schedule(wait=0, warmup=1, active=6, repeat=1),
    on_trace_ready=lambda profiler: profiler.export_chrome_trace(sys.argv[1]),
) as profiler:
    for _ in range(7):
        step()
        profiler.step()
"""
# A host that is busy with other work may also be stalled, or slow to change threads.
A_SLOW_HOST = {*HOST_BOUND, "host_freeze", "backward_handover"}
A_SLOW_GPU = {"gpu_bound_gemm", "gpu_bound_memory_bound", "gpu_bound_other"}
DEVICES = {
    "kernels that take no time": ({"KERNEL_US": "0", "PAGEABLE_GBPS": "1000"}, A_SLOW_HOST, ()),
    "kernels that take long": ({"KERNEL_US": "2000"}, A_SLOW_GPU, ("gpu_compute",)),
    "a slow copy engine": ({"PAGEABLE_GBPS": "0.02"}, {"gpu_bound_memory_bound"}, ("gpu_copy",)),
}


@pytest.mark.parametrize("device", DEVICES)
def test_the_verdict_follows_the_device(device, tmp_path):
    settings, verdicts, buckets = DEVICES[device]
    environment = {**os.environ, **{f"FAKECUDA_{name}": value for name, value in settings.items()}}
    trace = tmp_path / "trace.json"
    subprocess.run([sys.executable, "-c", LOOP, str(trace)], env=environment, check=True)
    (opened,) = open_subject([trace]).profiles
    said = verdict(opened)
    total = sum(opened.parts.values())
    on_the_gpu = (opened.parts["gpu_compute"] + opened.parts["gpu_copy"]) / total
    assert said.id in verdicts, said.sentence
    if buckets:
        assert sum(opened.parts[bucket] for bucket in buckets) > 0.6 * total
    else:
        assert on_the_gpu < 0.2
    copies = [finding for finding in diagnose(opened).all_findings if finding.id == "h2d_pageable_copy"]
    if "gpu_copy" in buckets:
        assert copies[0].cost_ns > 0.6 * total
    else:
        assert not copies or copies[0].cost_ns < 0.3 * total
