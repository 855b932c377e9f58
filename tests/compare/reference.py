"""What a file itself says of its time, read by nothing but Python's own parser and counted in whole nanoseconds.

It shares no code with tracekit or any other tool: it is what all of them are held against.
"""

import gc
import gzip
import json
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

_GPU = {"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"}  # in 2021, capitalised and without “gpu_”
_HOST_STEP = {"user_annotation", "operator", "cpu_op"}
Span = tuple[int, int]


@dataclass(frozen=True)
class Reference:
    """One file, in ns on its own clock."""

    gpu: list[Span]  # when at least one kernel, copy or memory set runs; disjoint and in order
    recording: Span  # from the first step to the end of the last one and of its GPU work; without steps, everything

    def busy_ns(self, windows: list[Span]) -> int:
        """How long the GPU works in the union of some windows."""
        return total_ns(_intersection(self.gpu, union(windows)))


def read(path: Path) -> Reference:
    """Read one trace."""
    gc.disable()  # looking for garbage among all these values would take a third of the time
    try:
        with gzip.open(path, "rt", encoding="utf-8", errors="replace") as file:
            events = json.load(file, parse_float=Decimal, strict=False)["traceEvents"]
    finally:
        gc.enable()
    gpu, steps, everything = [], [], []
    for event in events:
        if event.get("ph") != "X" or "dur" not in event:
            continue
        start = _ns(event["ts"])
        span = (start, start + _ns(event["dur"]))
        category = str(event.get("cat", "")).lower()
        if category in _GPU:
            gpu.append(span)
        elif category in _HOST_STEP and str(event.get("name")).startswith("ProfilerStep#"):
            steps.append(span)
        if category != "trace":  # the frame around the whole recording
            everything.append(span)
    first = min(steps or everything)[0]
    last = max(end for _, end in (steps + gpu if steps else everything))
    return Reference(union(gpu), (first, last))


def union(spans: list[Span]) -> list[Span]:
    """The same time as disjoint spans in order."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def total_ns(spans: list[Span]) -> int:
    """How long they last together."""
    return sum(end - start for start, end in spans)


def uncovered_ns(span: Span, windows: list[Span]) -> int:
    """How much of a span is in none of the windows."""
    return total_ns([span]) - total_ns(_intersection([span], union(windows)))


def _intersection(one: list[Span], other: list[Span]) -> list[Span]:
    both = []
    rest = iter(other)
    window = next(rest, None)
    for start, end in one:
        while window is not None and window[1] <= start:
            window = next(rest, None)
        while window is not None and window[0] < end:
            both.append((max(start, window[0]), min(end, window[1])))
            if window[1] > end:
                break
            window = next(rest, None)
    return both


def _ns(microseconds: int | str | Decimal) -> int:
    return int((Decimal(microseconds) * 1000).to_integral_value())
