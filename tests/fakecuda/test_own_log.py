"""The engine's buckets against those computed from the device's own log, on real training loops."""

import os
import tempfile
import time
from pathlib import Path

import pytest

if "FAKECUDA" not in os.environ:
    pytest.skip("needs the fake GPU: make verify-cuda", allow_module_level=True)

os.environ["FAKECUDA_LOG"] = tempfile.mkdtemp(prefix="fakecuda-")  # read at the first call of CUDA

import torch
from torch.profiler import ProfilerActivity, profile, schedule

from tests.fakecuda.own_log import buckets
from tracekit.engine.buckets import WALL
from tracekit.profile import open_subject

TOLD_APART = ("gpu_compute", "gpu_copy", "gpu_gap", "kernel_launch", "sync_stall", "alloc")
STEPS = 4
ROUNDING_NS = 100  # both convert between clocks and round, at each of up to 200 boundaries; seen: 5 ns a step


def network(width=64, layers=2):
    torch.manual_seed(0)
    made = [part for _ in range(layers) for part in (torch.nn.Linear(width, width), torch.nn.ReLU())]
    return torch.nn.Sequential(*made).cuda()


def training(net, optimizer, batch):
    def step():
        optimizer.zero_grad()
        loss = net(batch()).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


def plain(optimizer=torch.optim.SGD, width=64, layers=2, **options):
    net = network(width, layers)
    x = torch.randn(128, width, device="cuda")
    return training(net, optimizer(net.parameters(), lr=0.1, **options), lambda: x)


def reading_its_loss():
    step = plain()
    return lambda: step().item()


def asleep_after_a_wait():
    step = plain()

    def take():
        torch.cuda._sleep(4_000_000)
        step().item()
        time.sleep(0.003)

    return take


def fed(pinned):
    net = network(256)
    x = torch.randn(4096, 256)
    x = x.pin_memory() if pinned else x
    return training(net, torch.optim.SGD(net.parameters(), lr=0.1), lambda: x.to("cuda", non_blocking=pinned))


def on_two_streams():
    step, side = plain(), torch.cuda.Stream()

    def take():
        with torch.cuda.stream(side):
            torch.cuda._sleep(1_000_000)
        step()
        torch.cuda.current_stream().wait_stream(side)

    return take


def replayed():
    x = torch.ones(1024, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(20):
            x.add_(1)
    return graph.replay


def allocating():
    step = plain()

    def take():
        torch.cuda.empty_cache()
        torch.empty(1 << 26, device="cuda", dtype=torch.uint8).add_(1)
        step()

    return take


def bound_by_the_gpu():
    step = plain()

    def take():
        for _ in range(20):
            torch.cuda._sleep(400_000)
        step()

    return take


LOOPS = {
    "sgd": plain,
    "adam": lambda: plain(torch.optim.Adam),
    "adam, one by one": lambda: plain(torch.optim.Adam, layers=4, foreach=False),
    "reading its loss": reading_its_loss,
    "asleep after a wait": asleep_after_a_wait,
    "fed from pageable memory": lambda: fed(pinned=False),
    "fed from pinned memory": lambda: fed(pinned=True),
    "on two streams": on_two_streams,
    "a graph": replayed,
    "allocating": allocating,
    "bound by the GPU": bound_by_the_gpu,
}


@pytest.mark.parametrize("name", LOOPS)
def test_the_engine_agrees_with_the_device(name, tmp_path):
    step = LOOPS[name]()
    for _ in range(3):
        step()
    torch.cuda.synchronize()
    trace = tmp_path / "trace.json"
    with profile(
        activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
        schedule=schedule(wait=0, warmup=1, active=STEPS, repeat=1),
        on_trace_ready=lambda profiler: profiler.export_chrome_trace(str(trace)),
    ) as profiler:
        for _ in range(STEPS + 1):
            step()
            profiler.step()
    expected = buckets(trace, Path(os.environ["FAKECUDA_LOG"]) / f"{os.getpid()}.tsv")
    (opened,) = open_subject([trace]).profiles
    totals = opened.views["wall"].totals
    assert len(totals) == len(expected) == STEPS
    for row, wanted in zip(totals, expected, strict=True):
        seen = dict(zip(WALL, row.tolist(), strict=True))
        figures = {bucket: (seen[bucket], wanted[bucket]) for bucket in TOLD_APART}
        figures["all"] = (sum(seen.values()), wanted.total())
        assert all(abs(a - b) <= ROUNDING_NS for a, b in figures.values()), figures
