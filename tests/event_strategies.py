"""Single events as the profiler writes them, for property tests.

Times come from a coarse grid of few positions, so that events touch, coincide and nest by chance; a nanosecond or a
fraction of one is added here and there, and 30 µs is a frequent distance, because the contract depends on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any

from event_names import (
    ALLOCATIONS,
    ANNOTATIONS,
    AUTOGRAD,
    FRAMES,
    KERNELS,
    MAIN,
    OPERATORS,
    OTHER,
    OTHERS,
    SYNCS,
    THREADS,
)
from hypothesis import strategies as st

DELAYS = [0, 0, 1, 5_000, 10_000, 29_999, 30_000, 30_001, 45_000]


@dataclass(frozen=True)
class Clock:
    """How a trace writes its times: the offset, the spacing of the grid, and the number of digits."""

    base: Decimal  # µs
    grid: int  # ns
    fine: bool  # nanoseconds off the grid
    below: bool  # and digits below the nanosecond
    quoted: bool  # some times are in quotes

    def write(self, ns: int, below: Decimal = Decimal(0), *, base: bool = True) -> int | Decimal:
        """A time or a duration as the file has it, in µs."""
        value = max((Decimal(ns) + below) / 1000, Decimal(0)) + (self.base if base else 0)
        if self.fine and not below:
            return value.quantize(Decimal("0.001"))  # as Kineto writes it
        return value if self.fine or value != value.to_integral_value() else int(value)


@st.composite
def clocks(draw: st.DrawFn) -> Clock:
    base = draw(st.sampled_from(["0", "0", "0", "1623212756351000", "1790857026000123.456"]))
    fine = draw(st.booleans())
    return Clock(
        Decimal(base),
        draw(st.sampled_from([10_000, 10_000, 5_000, 1_000])),
        fine,
        fine and draw(st.booleans()),
        draw(st.integers(0, 7)) == 0,
    )


@st.composite
def moments(draw: st.DrawFn, clock: Clock) -> int:
    """A moment in ns, usually on the grid."""
    ns = draw(st.integers(0, 20)) * clock.grid
    if clock.fine:
        ns += draw(st.sampled_from([0, 0, 0, 0, 1, 2, 999, 30_000, 30_001]))
    return ns


@st.composite
def spans(draw: st.DrawFn, clock: Clock) -> tuple[int, int]:
    """Start and end in ns, sometimes equal."""
    start, other = draw(moments(clock)), draw(moments(clock))
    return min(start, other), max(start, other)


@st.composite
def events(
    draw: st.DrawFn,
    clock: Clock,
    cat: str | None,
    name: str,
    thread: tuple[Any, Any],
    span: tuple[int, int],
    correlation: int | None = None,
) -> dict[str, Any]:
    """One "X" event as a dict."""
    start, end = span
    below = st.just(Decimal(0))
    if clock.below:
        below = st.sampled_from([Decimal(x) for x in ("0", "0", "0.5", "0.49", "0.51", "0.25", "-0.5")])
    event: dict[str, Any] = {"ph": "X"}
    if cat is not None:
        event["cat"] = cat
    event |= {"name": name, "pid": thread[0], "tid": thread[1]}
    event["ts"] = clock.write(start, draw(below))
    length = clock.write(end - start, draw(below), base=False)
    if end == start and length <= 0:
        # A missing or negative duration counts as zero.
        odd = draw(st.sampled_from(["zero", "zero", "missing", "negative"]))
        if odd != "missing":
            event["dur"] = -5 if odd == "negative" else 0
    else:
        event["dur"] = length
    for key in ("ts", "dur"):  # some writers put times in quotes
        if clock.quoted and key in event and draw(st.booleans()):
            event[key] = draw(st.sampled_from([format(event[key], "f"), format(event[key], "f"), f"{event[key]}e0"]))
    if correlation is not None:
        event["args"] = {"correlation": correlation, "External id": 1}
    elif draw(st.booleans()):
        event["args"] = {"Ev Idx": 3}
    return event


@st.composite
def step_annotations(draw: st.DrawFn, clock: Clock) -> list[dict[str, Any]]:
    """`ProfilerStep#N`: none, a sequence (adjacent or with time in between), or arbitrary ones."""
    kind = draw(st.sampled_from(["none", "sequence", "sequence", "sequence", "any"]))
    annotations = []
    if kind == "sequence":
        cuts = sorted(draw(st.lists(moments(clock), min_size=2, max_size=5)))
        if draw(st.integers(0, 2)):  # most steps are about all there is
            cuts[0], cuts[-1] = min(cuts[0], clock.grid), max(cuts[-1], 20 * clock.grid)
        first = draw(st.integers(0, 9))
        for i, (start, end) in enumerate(pairwise(cuts)):
            rest = draw(st.sampled_from([0, 0, 0, clock.grid]))
            annotations.append((first + i, MAIN, (start, max(start, end - rest))))
    elif kind == "any":
        for _ in range(draw(st.integers(1, 3))):
            thread = draw(st.sampled_from([MAIN, MAIN, MAIN, AUTOGRAD, OTHER]))
            annotations.append((draw(st.integers(0, 3)), thread, draw(spans(clock))))
    cat = draw(st.sampled_from(["user_annotation", "user_annotation", "cpu_op", "Operator"]))
    written = [draw(events(clock, cat, f"ProfilerStep#{n}", thread, span)) for n, thread, span in annotations]
    if draw(st.integers(0, 9)) == 0:  # neither of them is a step
        cat, name = draw(st.sampled_from([("gpu_user_annotation", "ProfilerStep#7"), (cat, "ProfilerStep#a")]))
        written.append(draw(events(clock, cat, name, MAIN, draw(spans(clock)))))
    return written


@st.composite
def host_events(draw: st.DrawFn, clock: Clock, foreign: bool) -> dict[str, Any]:
    """Any event of a host thread that submits no work."""
    thread = OTHER if foreign and draw(st.integers(0, 4)) == 0 else draw(st.sampled_from(THREADS))
    cat, names = draw(
        st.sampled_from(
            [
                ("cpu_op", OPERATORS),
                ("cpu_op", OPERATORS),
                ("user_annotation", ANNOTATIONS),
                ("python_function", FRAMES),
                ("python_function", FRAMES),
                ("cuda_runtime", SYNCS),
                ("cuda_runtime", SYNCS),
                ("cuda_runtime", ALLOCATIONS),
                ("cuda_runtime", OTHERS),
                ("cuda_driver", ALLOCATIONS),
                ("cpu_op", ["cudaLaunchKernel", "cudaStreamSynchronize"]),  # an operator with that name
            ]
        )
    )
    correlation = draw(st.sampled_from([None, 0, -1, 4, 5, 6])) if cat.startswith("cuda") else None
    return draw(events(clock, cat, draw(st.sampled_from(names)), thread, draw(spans(clock)), correlation))


@st.composite
def activities(draw: st.DrawFn, clock: Clock, span: tuple[int, int], correlation: int | None) -> dict[str, Any]:
    """A GPU activity."""
    cat = draw(st.sampled_from(["kernel", "kernel", "kernel", "gpu_memcpy", "gpu_memset"]))
    name = draw(st.sampled_from(KERNELS))
    row = draw(st.sampled_from([(0, 7), (0, 7), (0, 20), (1, 7), (0, "stream 7")]))
    return draw(events(clock, cat, name, row, span, correlation))


@st.composite
def noise(draw: st.DrawFn, clock: Clock) -> dict[str, Any]:
    """Events that must be ignored: other phases, other categories, "X" without a `ts`."""
    event = draw(
        events(
            clock,
            draw(
                st.sampled_from(
                    ["kernel", "cuda_sync", "gpu_user_annotation", "Trace", "User", "cpu_instant_event", None]
                )
            ),
            draw(st.sampled_from(["gemm", "ProfilerStep#1", "cudaLaunchKernel", "PyTorch Profiler (0)"])),
            draw(st.sampled_from([MAIN, (0, 7), ("Spans", "PyTorch Profiler"), ("", "")])),
            draw(spans(clock)),
            draw(st.sampled_from([None, 4, 5])),
        )
    )
    if event.get("cat") == "kernel" or draw(st.booleans()):
        event["ph"] = draw(st.sampled_from(["i", "M", "s", "f", "B", "C", "X"]))
        if event["ph"] == "X":
            del event["ts"]
        else:
            event.pop("dur", None)
    return event
