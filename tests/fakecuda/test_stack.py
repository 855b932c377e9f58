"""What the fake GPU promises. Run by `make verify-cuda`; skipped elsewhere, because it needs PyTorch's CUDA wheel."""

import collections
import itertools
import json
import os
import subprocess
import sys
import time

import pytest

if "FAKECUDA" not in os.environ:
    pytest.skip("needs the fake GPU: make verify-cuda", allow_module_level=True)

import torch
from torch.profiler import ProfilerActivity, profile

CYCLES_PER_S = 1.98e9


@pytest.fixture(autouse=True)
def _quiet():
    torch.cuda.synchronize()
    yield
    torch.cuda.synchronize()


def recorded(tmp_path, step, steps=3, **options):
    """The rows of a profile of some steps, by category."""
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], **options) as profiler:
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
    profiler.export_chrome_trace(str(tmp_path / "trace.json"))
    rows = collections.defaultdict(list)
    for row in json.loads((tmp_path / "trace.json").read_text())["traceEvents"]:
        rows[row.get("cat")].append(row)
    return rows


def check(rows):
    """Every activity has its call, runs after it began, and shares its stream with no other; nothing is lost."""
    calls = {row["args"]["correlation"]: row for row in rows["cuda_runtime"] + rows["cuda_driver"]}
    assert len(calls) == len(rows["cuda_runtime"]) + len(rows["cuda_driver"])
    activities = rows["kernel"] + rows["gpu_memcpy"] + rows["gpu_memset"]
    streams = collections.defaultdict(list)
    for row in activities:
        assert row["ts"] >= calls[row["args"]["correlation"]]["ts"]
        streams[row["args"]["stream"]].append((row["ts"], row["ts"] + row["dur"]))
    for spans in streams.values():
        spans.sort()
        assert all(before[1] <= after[0] + 0.002 for before, after in itertools.pairwise(spans))
    launches = [row for row in calls.values() if "LaunchKernel" in row["name"] or "GraphLaunch" in row["name"]]
    assert launches
    assert {row["args"]["correlation"] for row in launches} <= {row["args"]["correlation"] for row in activities}


def test_a_trace_says_that_its_gpu_is_none():
    seen = torch.cuda.get_device_properties(0)
    assert (seen.name, seen.major, seen.multi_processor_count) == ("Fake H100", 9, 132)


def test_what_the_host_wrote_is_what_it_reads():
    x = torch.arange(100_000)
    assert torch.equal(x.cuda().cpu(), x)
    assert torch.equal(x.pin_memory().cuda(non_blocking=True).cpu(), x)
    assert torch.full((7,), 3.5, device="cuda").tolist() == [3.5] * 7
    assert not torch.zeros(1000, device="cuda").cpu().any()


def test_what_a_kernel_wrote_reads_as_zero_and_all_as_true():
    x = torch.full((1000,), 9, device="cuda")
    assert int(x.max()) == 0
    assert not (x + 1).cpu().any()
    assert bool((x >= 0).all())
    assert not bool((x < 0).any())
    assert not x.nonzero().numel()
    x.repeat_interleave(torch.ones(1000, dtype=torch.long, device="cuda"))


def test_memory_runs_out():
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(1 << 40, device="cuda", dtype=torch.uint8)


def test_the_host_runs_ahead_and_waits_in_real_time():
    torch.cuda._sleep(1000)
    torch.cuda.synchronize()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
    began = time.perf_counter()
    marks[0].record()
    torch.cuda._sleep(int(0.2 * CYCLES_PER_S))
    marks[1].record()
    ahead = not marks[1].query()
    torch.cuda.synchronize()
    assert ahead
    assert time.perf_counter() - began >= 0.2
    assert marks[0].elapsed_time(marks[1]) == pytest.approx(200, rel=0.01)


def test_streams_overlap_and_wait_for_events():
    first, second = torch.cuda.Stream(), torch.cuda.Stream()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(3)]
    cycles = int(0.2 * CYCLES_PER_S)
    marks[0].record()
    for stream, mark in ((first, marks[1]), (second, marks[2])):
        with torch.cuda.stream(stream):
            torch.cuda._sleep(cycles)
            mark.record()
    torch.cuda.synchronize()
    assert abs(marks[1].elapsed_time(marks[2])) < 100
    with torch.cuda.stream(first):
        torch.cuda._sleep(cycles)
        marks[1].record()
    second.wait_stream(first)
    with torch.cuda.stream(second):
        torch.cuda._sleep(cycles)
        marks[2].record()
    torch.cuda.synchronize()
    assert marks[1].elapsed_time(marks[2]) == pytest.approx(200, rel=0.01)


def test_work_on_the_default_stream_waits_for_blocking_streams_only():
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
    side = torch.cuda.Stream()  # PyTorch's streams do not block
    with torch.cuda.stream(side):
        torch.cuda._sleep(int(0.2 * CYCLES_PER_S))
        marks[1].record()
    torch.ones(1, device="cuda")
    marks[0].record()
    torch.cuda.synchronize()
    assert marks[0].elapsed_time(marks[1]) > 100


@pytest.mark.parametrize("devices", [2])
def test_several_devices(devices):
    code = "import torch; x = torch.arange(9, device='cuda:1'); y = torch.arange(9).to('cuda:1')\n"
    code += "print(torch.cuda.device_count(), x.device, y.cpu().tolist() == list(range(9)))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "FAKECUDA_DEVICES": str(devices)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["2", "cuda:1", "True"]


def test_processes_meet_in_collectives(tmp_path):
    """They end on all devices at once, and what is gathered is what each rank wrote."""
    script = os.path.join(os.path.dirname(__file__), "ddp.py")
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", script, "5"],
        env={**os.environ, "FAKECUDA_DEVICES": "2", "FAKECUDA_LOG": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == ["[[0, 7], [1, 7]]"] * 2
    ends = []
    for log in tmp_path.glob("*.tsv"):
        rows = [line.split("\t") for line in log.read_text().splitlines()]
        ends.append([int(row[2]) for row in rows if "ncclDevKernel_AllReduce" in row[-1]])
    first, second = filter(None, ends)
    assert first == second
    assert len(first) >= 5


def test_an_unknown_function_ends_the_process_and_is_named(tmp_path):
    code = "import torch; torch.fft.fft(torch.ones(8, device='cuda'))"
    called = tmp_path / "called"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "FAKECUDA_UNKNOWN": str(called)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode < 0
    assert "fakecuda: cufft" in done.stderr
    assert called.read_text().startswith("cufft")


@pytest.fixture
def step():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.randn(128, 64).cuda(), torch.randint(0, 8, (128,)).cuda()

    def take(net=model):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    take.model = model
    return take


def test_a_step_in_eager_mode(step, tmp_path):
    for _ in range(2):
        step()
    rows = recorded(tmp_path, lambda: step().item())
    check(rows)
    names = " ".join(row["name"] for row in rows["kernel"])
    assert "gemm" in names
    assert "multi_tensor_apply_kernel" in names
    assert [row["name"] for row in rows["gpu_memcpy"]] == ["Memcpy DtoH (Device -> Pinned)"] * 3
    assert {"grid", "registers per thread"} <= rows["kernel"][0]["args"].keys()


def test_a_convolution(tmp_path):
    model = torch.nn.Conv2d(3, 8, 3).cuda()
    x = torch.randn(4, 3, 32, 32, device="cuda")
    rows = recorded(tmp_path, lambda: model(x).sum().backward())
    check(rows)
    assert any("cudnn" in row["name"] for row in rows["kernel"])


def test_waits_are_recorded(step, tmp_path):
    options = torch._C._profiler._ExperimentalConfig(enable_cuda_sync_events=True)
    side = torch.cuda.Stream()

    def waiting():
        step()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # Kineto writes the wait of a stream only if a kernel follows
            torch.zeros(10, device="cuda").add_(1)
        side.synchronize()

    rows = recorded(tmp_path, waiting, experimental_config=options)
    check(rows)
    assert {"Stream Sync", "Stream Wait Event"} <= {row["name"] for row in rows["cuda_sync"]}


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_a_compiled_step(step, tmp_path, mode):
    torch._dynamo.reset()
    net = torch.compile(step.model, mode=mode)
    for _ in range(5):
        step(net)
    rows = recorded(tmp_path, lambda: step(net))
    check(rows)
    assert any(row["name"].startswith("triton_") for row in rows["kernel"])
    launched = {row["name"].partition("_v")[0] for row in rows["cuda_runtime"] + rows["cuda_driver"]}
    assert ("cudaGraphLaunch" if mode == "reduce-overhead" else "cuLaunchKernel") in launched
