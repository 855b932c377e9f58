"""Small traces as the profiler writes them, for property tests: lists of event dicts."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from event_names import (
    AUTOGRAD,
    COPIED,
    COPIES,
    FRAMES,
    KERNELS,
    LAUNCHES,
    MAIN,
    OLD,
    OPERATORS,
    OTHER,
    OTHERS,
    OVERHEAD,
    SECOND,
    SYNCS,
    THIRD,
)
from event_strategies import DELAYS, Clock, activities, clocks, events, host_events, noise, spans, step_annotations
from hypothesis import strategies as st


@st.composite
def submissions(draw: st.DrawFn, clock: Clock, correlation: int, *, foreign: bool) -> list[dict[str, Any]]:
    """A launch call, the work that it submits, and sometimes more calls with the same correlation."""
    thread = OTHER if foreign else draw(st.sampled_from([MAIN, MAIN, MAIN, AUTOGRAD, SECOND, THIRD]))
    copy = draw(st.integers(0, 3)) == 0
    cat = draw(st.sampled_from(["cuda_runtime", "cuda_runtime", "cuda_driver", "hip_runtime", "xpu_runtime"]))
    name = draw(st.sampled_from(COPIES if copy else LAUNCHES))
    start, end = draw(spans(clock))
    if draw(st.booleans()):  # most calls are short
        end = start + draw(st.sampled_from([0, clock.grid, clock.grid]))
    made = [draw(events(clock, cat, name, thread, (start, end), correlation))]
    if draw(st.integers(0, 5)) == 0:
        more = draw(st.sampled_from([*LAUNCHES, *OTHERS, *SYNCS]))
        span = draw(st.sampled_from([(start, end), draw(spans(clock))]))
        made.append(draw(events(clock, "cuda_runtime", more, thread, span, correlation)))
    at = end
    for _ in range(draw(st.sampled_from([0, 1, 1, 1, 1, 2, 3]))):
        at = draw(st.sampled_from([at, end, start])) + draw(st.sampled_from(DELAYS))
        length = draw(st.integers(0, 6)) * clock.grid
        activity = draw(activities(clock, (at, at + length), correlation))
        if copy and draw(st.booleans()):
            activity |= {"cat": "gpu_memcpy", "name": draw(st.sampled_from(COPIED))}
        made.append(activity)
        at += length
    return made


@st.composite
def backwards(draw: st.DrawFn, clock: Clock, correlation: int) -> list[dict[str, Any]]:
    """The main thread waits for the autograd engine, or is silent, while a helper runs the nodes."""
    thread = draw(st.sampled_from([AUTOGRAD, AUTOGRAD, SECOND, THIRD]))
    made = []
    if draw(st.booleans()):
        made.append(draw(events(clock, "python_function", FRAMES[2], MAIN, draw(spans(clock)))))
    for _ in range(draw(st.integers(1, 3))):
        name = "autograd::engine::evaluate_function: AddmmBackward0"
        start, end = draw(spans(clock))
        made.append(draw(events(clock, "cpu_op", name, thread, (start, end))))
        if draw(st.booleans()):
            at = draw(st.sampled_from([start, (start + end) // 2]))
            call = (at, at + clock.grid)
            made.append(draw(events(clock, "cuda_driver", "cuLaunchKernel", thread, call, correlation)))
            length = draw(st.integers(0, 6)) * clock.grid
            at += draw(st.sampled_from([clock.grid, *DELAYS]))
            made.append(draw(activities(clock, (at, at + length), correlation)))
    return made


@st.composite
def refills(draw: st.DrawFn, clock: Clock, correlation: int) -> list[dict[str, Any]]:
    """A sync that drains the queue, some host work, and the launch that ends the gap."""
    thread = draw(st.sampled_from([MAIN, MAIN, MAIN, AUTOGRAD]))
    grid, cells = clock.grid, st.integers(0, 3)
    start = draw(st.integers(0, 8)) * grid
    wait = start + draw(cells) * grid
    drained = wait + draw(cells) * grid
    back = drained + draw(cells) * grid
    again = back + draw(cells) * grid
    late = draw(st.sampled_from(DELAYS))
    name = draw(st.sampled_from(SYNCS))
    return [
        draw(events(clock, "cuda_runtime", "cudaLaunchKernel", MAIN, (start, start + grid), correlation)),
        draw(activities(clock, (start, drained), correlation)),
        draw(events(clock, "cuda_runtime", name, thread, (wait, back), None)),
        draw(events(clock, "cpu_op", draw(st.sampled_from(OPERATORS[:6])), thread, (back, again))),
        draw(events(clock, "cuda_runtime", "cudaLaunchKernel", thread, (again, again + grid), correlation + 1)),
        draw(activities(clock, (again + late, again + late + 3 * grid), correlation + 1)),
    ]


# µs before and after: on both sides of 1 ms before a call and of 60 s after it.
_LEADS = [1, 5, 10, 30, 999, 1_000, 1_010, 5_000]
_CLOCKS = [-3_000, -10, 59_999_990, 60_000_000, 60_000_010, 60_000_050]
_UNIX = 1_700_000_000_000_000  # µs since 1970, where the other clock began with the machine


@st.composite
def impossible(draw: st.DrawFn, clock: Clock, work: list[dict[str, Any]]) -> None:
    """Makes activities outlast others of their row, start before their calls, or have a clock of their own."""
    for event in work:
        if draw(st.integers(0, 2)) == 0:
            event["args"] = event.get("args", {}) | {"context": draw(st.sampled_from([1, 1, 1, "1", 2, None]))}
        damage = draw(st.sampled_from(["none"] * 5 + ["lasts", "lasts", "early", "no cat", "tid"]))
        if damage == "lasts":
            dur = event.get("dur", 0)
            event["dur"] = _moved(dur if Decimal(dur) > 0 else 0, draw(st.integers(0, 12)) * clock.grid // 1_000)
        elif damage == "early":
            event["ts"] = _moved(event["ts"], -draw(st.sampled_from(_LEADS)))
        elif damage == "no cat" and draw(st.integers(0, 3)) == 0:
            event |= {"cat": None, "pid": "CUDA functions"}
        elif damage == "tid":
            event["tid"] = draw(st.sampled_from([7, "7"]))
    if draw(st.integers(0, 4)) == 0:
        # Twice the time since 1970 is beyond what the reader takes for a time (2^61 ns).
        apart = draw(st.sampled_from([*_CLOCKS, *([] if clock.base else [_UNIX])]))
        for event in work:
            event["ts"] = _moved(event["ts"], 0 if draw(st.integers(0, 4)) == 0 else apart)


def _moved(time: Any, us: int) -> Any:
    """A time so many µs later, in quotes if it was."""
    return format(Decimal(time) + us, "f") if isinstance(time, str) else time + us


@st.composite
def kineto_traces(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A trace as Kineto writes it, in any schema since 2021."""
    clock = draw(clocks())
    foreign = draw(st.integers(0, 4)) == 0  # other processes in the file
    made = draw(step_annotations(clock))
    made += draw(st.lists(host_events(clock, foreign), max_size=12))
    work: list[dict[str, Any]] = []
    if draw(st.integers(0, 2)) == 0:
        work += draw(backwards(clock, 40))
    if draw(st.integers(0, 2)) == 0:
        work += draw(refills(clock, 50))
    for i in range(draw(st.sampled_from([0, 1, 2, 3, 4, 5, 6]))):
        other_launches = foreign and draw(st.integers(0, 9)) == 0
        # Correlations grow with time in real traces, but nothing may depend on it.
        correlation = draw(st.sampled_from([4 + i, 4 + i, 4 + i, 4 + i, 4 + i, 4, 0, -1]))
        work += draw(submissions(clock, correlation, foreign=other_launches))
    for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):  # work launched before the recording, or by no call
        correlation = draw(st.sampled_from([1, 2, 3, 4, 99, 0, -1, None]))
        work.append(draw(activities(clock, draw(spans(clock)), correlation)))
    gpu = draw(st.sampled_from(["yes"] * 12 + ["calls only", "neither", "neither", "rows only"]))
    on_gpu = ("kernel", "gpu_memcpy", "gpu_memset")
    if gpu == "neither":
        work = []
    elif gpu == "calls only":
        work = [e for e in work if e["cat"] not in on_gpu]
    elif gpu == "rows only":
        made, work = [], [e for e in work if e["cat"] in on_gpu]
    made += work
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        name = draw(st.sampled_from(OVERHEAD))
        made.append(draw(events(clock, "overhead", name, (-1, 0), draw(spans(clock)))))
    if draw(st.integers(0, 19)) == 0:
        cat = draw(st.sampled_from(["hpu_op", "mtia_ccp_events"]))
        made.append(draw(events(clock, cat, "hpu", (0, 7), draw(spans(clock)))))
    made += draw(st.lists(noise(clock), max_size=3))
    if draw(st.integers(0, 2)) == 0:
        draw(impossible(clock, [e for e in work if e["cat"] in on_gpu]))
    if draw(st.integers(0, 5)) == 0:  # of the host, only calls and annotations
        made = [e for e in made if e.get("cat") not in ("cpu_op", "python_function")]

    spelling = draw(st.sampled_from(["new"] * 6 + ["old", "upper"]))
    for event in made:
        if spelling == "old":
            event["cat"] = OLD.get(event.get("cat", ""), event.get("cat"))
        elif spelling == "upper" and event.get("cat"):
            event["cat"] = event["cat"].upper()
        if event.get("cat", "") is None:
            del event["cat"]
    if draw(st.integers(0, 9)) == 0:  # ids are compared as text
        for event in made:
            event["tid"] = str(event["tid"])
    return draw(st.permutations(made))


@st.composite
def old_traces(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A trace of 2019, without categories: the pid says what a row is."""
    clock = draw(clocks())
    noises = []
    for _ in range(draw(st.integers(1, 8))):
        pid = draw(st.sampled_from(["CPU functions", "CPU functions", "CUDA functions", "other"]))
        name = draw(st.sampled_from([*OPERATORS, *KERNELS, "ProfilerStep#1"]))
        tid = draw(st.sampled_from([0, 1, "stream 7"]))
        noises.append(draw(events(clock, None, name, (pid, tid), draw(spans(clock)))))
    return noises


def traces() -> st.SearchStrategy[list[dict[str, Any]]]:
    """Small traces of every kind, with their events in any order."""
    return st.one_of(*[kineto_traces()] * 9, old_traces())


def as_json(events: list[dict[str, Any]], *, bare: bool = False) -> bytes:
    """The trace as a file, with every decimal unchanged and a line per event; `bare` is a list at top level (2019)."""

    def write(value: object) -> str:
        if isinstance(value, Decimal):
            return format(value, "f")
        if isinstance(value, dict):
            return "{" + ", ".join(f"{json.dumps(k)}: {write(v)}" for k, v in value.items()) + "}"
        if isinstance(value, list | tuple):
            return "[" + ", ".join(map(write, value)) + "]"
        return json.dumps(value)

    rows = "[\n" + ",\n".join(map(write, events)) + "\n]"
    return (rows if bare else '{"schemaVersion": 1,\n"traceEvents": ' + rows + "}\n").encode()
