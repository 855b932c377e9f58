"""What does submitting work to the GPU cost the host, and how long does the work then take to start?"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracekit.analyses import Answer, Status, analysis, per_step, share_of_step, table
from tracekit.intervals import Ints
from tracekit.profile import Profile
from tracekit.trace.enclosing import labels, operators
from tracekit.trace.health import calls_untold
from tracekit.trace.roles import GRAPH_LAUNCH, bare
from tracekit.trace.schema import LABEL, column
from tracekit.units import count, duration

SUMMARY = pa.schema(
    [
        column("call", LABEL, "runtime call", role="name"),
        column("operator", LABEL, "operator that made it", role="name"),
        column("per_step", pa.float64(), "calls per counted step"),
        column("step_ns", pa.float64(), "host time inside the call, per counted step", "ns"),
        column("mean_ns", pa.float64(), "host time of one call", "ns"),
        column("activities", pa.float64(), "kernels and copies one call submits"),
        column("latency_ns", pa.float64(), "median from the call's start to the start on the GPU", "ns"),
        column("count", pa.int64(), "calls in the whole trace"),
    ]
)
ROWS = pa.schema(
    [
        column("event", pa.int64(), "row of the events table", role="plumbing"),
        column("step", pa.int64(), "the N of the step in whose time it starts; null for none", role="identity"),
        column("call", LABEL, "runtime call, without version suffix", role="name"),
        column("operator", LABEL, "operator that made it", role="name"),
        column("thread", LABEL, "thread it was made on"),
        column("start_ns", pa.int64(), "start", "ns"),
        column("dur_ns", pa.int64(), "host time inside the call", "ns"),
        column("graph", pa.bool_(), "whether it replays a CUDA graph"),
        column("activities", pa.int64(), "GPU activities it submitted, as far as the trace shows"),
        column("activity", pa.int64(), "row of the first of them; null for none", role="plumbing"),
        column("latency_ns", pa.int64(), "from its start to the start of that activity", "ns"),
    ]
)


@analysis("launches", rank=30)
def answer(profile: Profile) -> Answer:
    """One row per call and operator; behind it one per call."""
    rows, step = _rows(profile)
    summary = _summary(profile, rows, step)
    status: Status = "answered" if len(rows) else "unanswered" if calls_untold(profile.trace) else "absent"
    worth = share_of_step(profile, "kernel_launch")
    return Answer("launches", "Launches", _sentence(profile, summary), summary, rows, worth=worth, status=status)


def _rows(profile: Profile) -> tuple[pa.Table, Ints]:
    """One row per event, and the place of its step among the steps, −1 for none."""
    trace = profile.trace
    calls = np.flatnonzero(trace.roles.launch & trace.threads.process)
    calls = calls[np.lexsort((calls, trace.ts_ns[calls]))]
    step = trace.steps.of(trace.ts_ns[calls])
    numbers = np.array([*trace.steps.number, -1], np.int64)
    first = trace.links.activity[calls]
    rows = table(
        ROWS,
        {
            "event": calls,
            "step": pa.array(numbers[step], mask=step < 0),
            "call": [bare(name or "") for name in labels(trace, calls)],
            "operator": labels(trace, operators(trace, calls)),
            "thread": trace.tracks["tid"].take(pa.array(trace.track[calls])).combine_chunks(),
            "start_ns": trace.ts_ns[calls],
            "dur_ns": trace.end_ns[calls] - trace.ts_ns[calls],
            "graph": trace.roles.named(GRAPH_LAUNCH, runtime=True)[calls],
            "activities": trace.links.activities[calls],
            "activity": pa.array(first, mask=first < 0),
            "latency_ns": pa.array(trace.ts_ns[first] - trace.ts_ns[calls], mask=first < 0),
        },
    )
    return rows, step


def _summary(profile: Profile, rows: pa.Table, step: Ints) -> pa.Table:
    grouped = per_step(
        profile, rows, step, by=["call", "operator"], sums=["dur_ns", "activities"], lists=("latency_ns",)
    )
    times = grouped["count"].cast(pa.float64())
    known = [[value for value in values if value is not None] for values in grouped["latency_ns_list"].to_pylist()]
    return table(
        SUMMARY,
        {
            "call": grouped["call"],
            "operator": grouped["operator"],
            "per_step": grouped["per_step"],
            "step_ns": grouped["dur_ns_per_step"],
            "mean_ns": pc.divide(grouped["dur_ns"].cast(pa.float64()), times),
            "activities": pc.divide(grouped["activities"].cast(pa.float64()), times),
            "latency_ns": [float(np.median(values)) if values else None for values in known],
            "count": grouped["count"],
        },
    )


def _sentence(profile: Profile, summary: pa.Table) -> str:
    if untold := calls_untold(profile.trace):
        return f"Cannot be answered: {untold}."
    if not len(summary):
        return "The host launches no GPU work in this trace."
    per_step = float(summary["per_step"].to_numpy().sum())
    cost = float(summary["step_ns"].to_numpy().sum())
    trace = profile.trace
    shown = trace.links.activity >= 0
    text = f"{count(per_step)} launch calls a step keep the host for {duration(cost)}"
    if not shown.any():
        return f"{text}; what they submitted is not in the trace."
    latency = float(np.median(trace.ts_ns[trace.links.activity[shown]] - trace.ts_ns[shown]))
    text += f"; half of the work starts within {duration(latency)} of its call"
    replayed = int((trace.roles.named(GRAPH_LAUNCH, runtime=True) & shown).sum())
    return f"{text}; {count(replayed)} calls of the trace replay a CUDA graph." if replayed else f"{text}."
