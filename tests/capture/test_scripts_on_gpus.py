"""Scripts on a machine with several GPUs, tested on ones that torch only believes to exist."""

import os

import pytest

from tests.capture.pretended_gpu import gpu
from tests.capture.test_emulated import perform
from tracekit.capture.child.timing import StepClock
from tracekit.capture.device import show_only

SCRIPT = """
import os, torch
print("VISIBLE", os.environ.get("CUDA_VISIBLE_DEVICES"))
weight = torch.nn.Parameter(torch.zeros(3))
optimizer = torch.optim.SGD([weight], lr=0.1)
for _ in range(9):
    optimizer.zero_grad()
    (weight - 1).square().sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("device", "visible", "left", "steered_to"),
    [
        ("cuda:1", None, "1", "cuda"),
        ("cuda:1", "4,GPU-beef", "GPU-beef", "cuda"),
        ("cuda", "4,5", "4,5", "cuda"),
        ("cpu", "4,5", "", "cpu"),
    ],
)
def test_a_script_is_left_only_the_gpu_that_is_wanted(monkeypatch, device, visible, left, steered_to):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible or "")  # so that it is put back
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert (show_only(device), os.environ.get("CUDA_VISIBLE_DEVICES")) == (steered_to, left)


def test_steps_of_a_script_that_ends_early_are_timed_by_the_gpu(tmp_path):
    done = perform(tmp_path, "measure", device="cuda:1", text=SCRIPT, is_script=True, steps=3, warmup=3)
    measured = done.result.measured
    assert (done.result.outcome, done.result.ended, measured.clock) == ("ok", 8, "cuda events")
    assert "record" in done.calls


def test_no_pace_is_told_of_steps_that_nobody_waited_for(tmp_path):
    for device, has_times in (("cuda", False), ("cpu", True)):
        result = perform(
            tmp_path, "profile", device, text=SCRIPT, is_script=True, steps=20, warmup=3, available=9
        ).result
        assert result.traces.steady, result.error
        assert (result.profiled is not None) == has_times


def test_ends_of_steps_on_a_gpu_are_read_once_it_has_come_to_them():
    with gpu() as calls:
        calls.clear()
        clock = StepClock("cuda")
        for _ in range(3):
            clock.step_ended()
        times = clock.steps_ns()
    assert len(times) == 2
    assert calls[-1] == "synchronize"
    assert calls.count("record") == 3


ASKS = """
import torch
assert not torch.accelerator.is_available() and not torch.backends.mps.is_available() and not torch.xpu.is_available()
"""
NEVER_ASKS = "import torch; torch.mps.current_allocated_memory = torch.xpu.memory_allocated = lambda: 64"


@pytest.mark.parametrize("kind", ["mps", "xpu"])
def test_a_script_that_asks_for_another_accelerator_is_told_that_there_is_none(tmp_path, kind):
    result = perform(
        tmp_path, "measure", "cpu", text=ASKS + SCRIPT, kind=kind, is_script=True, steps=3, warmup=3
    ).result
    assert (result.outcome, result.error, result.ended) == ("ok", None, 8)
    assert result.measured.clock == "perf_counter"


@pytest.mark.parametrize("kind", ["mps", "xpu"])
def test_one_that_trains_there_without_asking_is_refused(tmp_path, kind):
    """Otherwise it would be timed by a clock that does not wait for that device."""
    result = perform(tmp_path, "measure", "cpu", text=NEVER_ASKS + SCRIPT, kind=kind, is_script=True).result
    assert (result.outcome, result.measured) == ("error", None)
    assert result.error.endswith(
        f" trains on {kind}, but tracekit can capture only on CPUs and on NVIDIA and AMD GPUs. "
        "Make it train on the CPU, for example by an argument after --"
    )
