"""What the capture does on a GPU, tested on one that torch only believes to exist."""

import json
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
import warm

from tests.capture.capturing import read_trace
from tests.capture.pretended_gpu import gpu
from tracekit.capture.child.traces import COLD, DETAIL, _profiler
from tracekit.capture.job import Job, PassResult
from tracekit.run import Requested

ROOT = Path(__file__).parents[2]
# Tensors stay on the CPU, whatever the device.
RECIPE = """
import torch
def setup(ctx):
    weight = torch.zeros(3, requires_grad=True)
    def step():
        loss = (weight - 1).square().sum()
        loss.backward()
        return loss.detach()
    return step
"""


def perform(folder, stage, device="cuda", text=RECIPE, kind=None, **more):
    recipe = folder / "recipe.py"
    recipe.write_text(text)
    job = folder / "job.json"
    job.write_bytes(
        msgspec.json.encode(Job(stage=stage, program=str(recipe), device=device, folder=str(folder), **more))
    )
    done = warm.run(["-m", "tests.capture.pretended_gpu", str(job), *([kind] if kind else [])], cwd=ROOT)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    return SimpleNamespace(result=msgspec.convert(said["result"], PassResult), calls=said["calls"], log=done.stderr)


def spans(path, name):
    events = read_trace(path).keys["traceEvents"]
    return [(each["ts"], each["ts"] + each["dur"]) for each in events if each.get("ph") == "X" and each["name"] == name]


def test_the_captures_own_wait_stands_in_the_last_step_under_a_name_of_its_own(tmp_path):
    done = perform(tmp_path, "profile", steps=3, warmup=1)
    assert done.result.outcome == "ok", done.result.traceback
    for window in ("cold", "steady", "detail"):
        trace = tmp_path / f"{window}.json.gz"
        last = max(read_trace(trace).steps)
        ((begin, end),) = spans(trace, "tracekit.synchronize")
        ((first, final),) = spans(trace, f"ProfilerStep#{last}")
        assert first < begin < end < final


def test_on_a_cpu_there_is_nothing_to_wait_for(tmp_path):
    perform(tmp_path, "profile", device="cpu", steps=3, warmup=1)
    assert spans(tmp_path / "steady.json.gz", "tracekit.synchronize") == []


def test_one_window_can_be_taken_alone_at_its_own_steps(tmp_path):
    done = perform(tmp_path, "profile", steps=3, warmup=5, windows=("detail",))
    assert (done.result.traces.cold, done.result.traces.steady) == (None, None)
    assert min(read_trace(tmp_path / "detail.json.gz").steps) == 9  # 3 cold ones, 5 to settle, and one to warm up


@pytest.mark.parametrize(
    ("window", "mode", "device", "activities"),
    [
        (COLD, "max-autotune", "cuda", 1),  # hundreds of launches for every configuration that is tried
        (COLD, "default", "cuda", 2),
        (DETAIL, "max-autotune", "cuda", 2),
        (DETAIL, "default", "cpu", 1),
    ],
)
def test_a_cold_trace_leaves_autotuning_out(window, mode, device, activities):
    job = Job(stage="profile", program="", device=device, requested=Requested(compile=True, mode=mode))
    with gpu():
        profiler = _profiler(window, 0, 2, job, print)
    assert len(profiler.activities) == activities
    assert profiler.experimental_config is None  # no rows of cuda_sync: nothing reads them, and some never resolve


def test_memory_is_counted_once_autotuning_has_let_go_of_it_and_events_are_made_before_the_clock_runs(tmp_path):
    done = perform(tmp_path, "measure", steps=3, warmup=3)
    assert done.result.outcome == "ok", done.result.traceback
    calls = done.calls
    forgotten = calls.index("reset_peak_memory_stats")
    assert calls.index("empty_cache") < forgotten < calls.index("record") < calls.index("max_memory_allocated")
    timed = done.result.measured.steps
    # Each event is recorded twice: once to create it, and once where it belongs; a wait separates the two.
    records = [at for at, call in enumerate(calls) if call == "record"]
    assert len(records) == 2 * (timed + 1)
    assert "synchronize" in calls[records[timed] : records[timed + 1]]
    memory = done.result.memory
    # Beside the 3000 bytes that it reserves, 1000 are in use on the device.
    assert (memory.device_peak_bytes, memory.device_total_bytes) == (5000, 10_000)
    assert (memory.peak_allocated_bytes, memory.peak_reserved_bytes, memory.above_start_bytes) == (1000, 4000, 100)
    assert (memory.allocated_in_step_bytes, memory.split_peak_bytes, memory.alloc_retries) == (0, 70, 0)


def test_a_gpu_is_given_half_a_second_to_clock_up(tmp_path):
    measured = perform(tmp_path, "measure", steps=3, warmup=3).result.measured
    assert measured.warmup_steps > 100  # steps of a fraction of a millisecond: no number of them would be enough
    assert perform(tmp_path, "measure", device="cpu", steps=3, warmup=3).result.measured.warmup_steps < 20
