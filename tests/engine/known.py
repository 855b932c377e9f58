"""How traces that are small enough to check by eye are written, with their answers.

Times of events are in µs, of answers in ns. pid 1 is the process; tid 1 its main thread.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Event = dict[str, Any]


def x(cat: str | None, name: str, start: Any, end: Any, corr: int | None = None, tid: Any = 1) -> Event:
    """An event over [start, end)."""
    event = {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": start, "dur": end - start}
    return event | ({} if corr is None else {"args": {"correlation": corr}})


def step(n: int, start: int, end: int) -> Event:
    return x("user_annotation", f"ProfilerStep#{n}", start, end)


def note(name: str, start: int, end: int) -> Event:
    return x("user_annotation", name, start, end)


def op(name: str, start: Any, end: Any, tid: int = 1) -> Event:
    return x("cpu_op", name, start, end, tid=tid)


def frame(name: str, start: int, end: int) -> Event:
    return x("python_function", name, start, end)


def call(name: str, start: int, end: int, corr: int | None = None, tid: int = 1) -> Event:
    return x("cuda_runtime", name, start, end, corr, tid)


def launch(start: int, end: int, corr: int, tid: int = 1) -> Event:
    return call("cudaLaunchKernel", start, end, corr, tid)


def kernel(start: int, end: int, corr: int, name: str = "gemm") -> Event:
    return x("kernel", name, start, end, corr, tid=7) | {"pid": 0}


def copy(start: int, end: int, corr: int) -> Event:
    return x("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", start, end, corr, tid=7) | {"pid": 0}


def tool(name: str, start: int, end: int) -> Event:
    return x("overhead", name, start, end, tid=0) | {"pid": -1}


@dataclass(frozen=True)
class Known:
    """A trace small enough to check by eye, and its answer."""

    rule: str
    events: list[Event]
    # (step, begin, done, S, E, steady) of each step, in ns
    steps: list[tuple[int, int, int, int, int, bool]]
    # the buckets that are not zero; None where it cannot be answered
    wall: list[dict[str, int] | None]
    host: list[dict[str, int] | None]
    cannot: list[str] = field(default_factory=list)
    device: str = "gpu"
