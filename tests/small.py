"""Traces small enough to check by eye, written as Kineto writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Event = dict[str, Any]


def event(cat: str, name: str, start: float, end: float, tid: object = 1, pid: object = 1, **args: object) -> Event:
    """A duration event; times in µs."""
    made: Event = {
        "ph": "X",
        "cat": cat,
        "name": name,
        "pid": pid,
        "tid": tid,
        "ts": start,
        "dur": round(end - start, 3),
    }
    return made | ({"args": args} if args else {})


def step(number: int, start: float, end: float) -> Event:
    return event("user_annotation", f"ProfilerStep#{number}", start, end)


def op(name: str, start: float, end: float) -> Event:
    return event("cpu_op", name, start, end)


def launch(start: float, end: float, correlation: int, name: str = "cudaLaunchKernel") -> Event:
    return event("cuda_runtime", name, start, end, correlation=correlation)


def kernel(name: str, start: float, end: float, correlation: int, cat: str = "kernel") -> Event:
    return event(cat, name, start, end, tid=7, pid=0, correlation=correlation, stream=7)


# Operators before the first step: with them, a recording of one short step is large enough for a verdict.
BEFORE = tuple(op("aten::empty", -100.0 + k, -99.5 + k) for k in range(20))


def write(path: Path, *events: Event) -> Path:
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path


def training(path: Path, steps: int = 4, python: float = 20, kernel_us: float = 30, name: str = "gemm") -> Path:
    """Steps of a little over 100 µs: an operator launches one kernel, then the host waits for it."""
    events: list[Event] = []
    for k in range(steps):
        t = 1000.0 * k
        length = 60 + python + kernel_us + k % 3
        events += [
            step(k, t, t + length),
            op("aten::mm", t + python, t + python + 40),
            launch(t + python + 10, t + python + 20, k + 1),
            kernel(name, t + python + 25, t + python + 25 + kernel_us, k + 1),
            launch(t + python + 45, t + python + 30 + kernel_us, 0, "cudaDeviceSynchronize"),
        ]
    return write(path, *events)
