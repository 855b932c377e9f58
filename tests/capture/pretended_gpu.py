"""`python -m tests.capture.pretended_gpu JOB.json [KIND]`: one pass in a process where torch believes that it has a
GPU, or an accelerator of that kind, mps or xpu.

Tensors stay where they are, so the recipe must not use `ctx.device`. The calls of `torch.cuda` by the capture itself
are recorded in order, and their results can be set, so that requests to a GPU can be tested without one.
"""

import json
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import msgspec

CALLS: list[str] = []


class Event:
    """A CUDA event on the host's clock."""

    def __init__(self, enable_timing=False):
        self.timed, self.at_ns = enable_timing, 0

    def record(self, stream=None):
        CALLS.append("record")
        self.at_ns = time.perf_counter_ns()

    def elapsed_time(self, other):
        return (other.at_ns - self.at_ns) / 1e6


def noting(name, answer=None):
    def call(*_, **__):
        CALLS.append(name)
        return answer

    return call


@contextmanager
def gpu(**answers):
    """While active, `torch.cuda` responds as if there were a GPU; arguments replace functions of the same name."""
    import torch

    plain = {
        "synchronize": None,
        "empty_cache": None,
        "reset_peak_memory_stats": None,
        "max_memory_allocated": 1000,
        "max_memory_reserved": 4000,
        "memory_stats": {
            "allocated_bytes.all.allocated": 0,
            "allocation.all.allocated": 0,
            "inactive_split_bytes.all.peak": 70,
            "num_alloc_retries": 0,
        },
        "memory_allocated": 900,
        "memory_reserved": 3000,
        "mem_get_info": (6000, 10_000),
        "current_stream": None,
        "is_available": True,
        "device_count": 1,
        "current_device": 0,
        "get_device_name": "Emulated",
        "get_device_properties": SimpleNamespace(name="Emulated", uuid="0000", major=9, minor=0),
    }
    with ExitStack() as stack:
        for name, answer in {**plain, **answers}.items():
            stack.enter_context(mock.patch.object(torch.cuda, name, noting(name, answer)))
        stack.enter_context(mock.patch.object(torch.cuda, "Event", Event))
        stack.enter_context(recordable())
        yield CALLS


@contextmanager
def recordable():
    """While active, the profiler believes that it can record a GPU. Otherwise it tries to by other means, fails at the
    first operator, and takes seven seconds to print where."""
    import torch

    every = {torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA}
    with mock.patch.object(torch.autograd.profiler, "_supported_activities", return_value=every):
        yield


@contextmanager
def another(kind):
    """While active, torch finds an accelerator that no capture can measure, with nothing on it yet."""
    import torch

    memory = {"mps": "current_allocated_memory", "xpu": "memory_allocated"}[kind]
    with ExitStack() as stack:
        for holder, name, answer in (
            (torch.accelerator, "is_available", True),
            (torch.accelerator, "current_accelerator", torch.device(kind)),
            (getattr(torch, kind), "is_available", True),
            (torch.backends.mps, "is_available", kind == "mps"),
            (getattr(torch, kind), memory, 0),
        ):
            stack.enter_context(mock.patch.object(holder, name, noting(name, answer), create=True))
        yield CALLS


def main(path, kind=None):
    from tracekit.capture.child.worker import perform
    from tracekit.capture.job import Job

    job = msgspec.json.decode(Path(path).read_bytes(), type=Job)
    with another(kind) if kind else gpu():
        result = perform(job)
    print(json.dumps({"result": msgspec.to_builtins(result), "calls": CALLS}))


if __name__ == "__main__":
    main(*sys.argv[1:])
