"""What does submitting work to the GPU cost the host, and how long does the work then take to start?"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from tracekit.analyses import Answer, Status, analysis, share_of_step, table
from tracekit.analyses.event_rows import CallKeys, CostliestLines, EventRows, call_columns, call_schema, line_columns
from tracekit.base.intervals import NO_INTS, Ints
from tracekit.base.units import count, duration, many
from tracekit.profile import Profile
from tracekit.profile.grouping import Grouping, Samples
from tracekit.profile.recording_words import median
from tracekit.profile.where import LINE_COLUMNS
from tracekit.trace import Trace
from tracekit.trace.facts.laws.sides import why_calls_unknown
from tracekit.trace.schema import LABEL, column

SUMMARY = pa.schema(
    [
        column("call", LABEL, "runtime call", role="name"),
        column("operator", LABEL, "operator that made it", role="name"),
        column("per_step", pa.float64(), "calls per counted step"),
        column("step_ns", pa.float64(), "host time inside the call, per counted step", "ns"),
        column("mean_ns", pa.float64(), "host time of one call in counted steps; of all, where none has it", "ns"),
        column("activities", pa.float64(), "kernels and copies submitted per call"),
        column("latency_ns", pa.float64(), "median from the call's start to the start on the GPU", "ns"),
        column("count", pa.int64(), "calls in the whole trace", role="detail"),
        *LINE_COLUMNS,
    ]
)
_MIN_CALLS_TO_REPORT = 0.5  # calls a step: fewer are not told
ROWS = call_schema(
    column("thread", LABEL, "thread it was made on"),
    column("graph", pa.bool_(), "whether it replays a CUDA graph"),
    column("activities", pa.int64(), "GPU activities it submitted, as far as the trace shows"),
    column("activity", pa.int64(), "row of the first of them; null for none", role="plumbing"),
    column("latency_ns", pa.int64(), "from its start to the start of that activity", "ns"),
    *LINE_COLUMNS,
)


def _calls(trace: Trace) -> Iterator[tuple[Ints, Ints]]:
    """Launch calls in order of their starts, some at a time, and the indices of their steps."""
    for part in trace.parts():
        calls = part.rows(part.roles.launch & part.process)
        if len(calls):
            yield calls, trace.steps.of(trace.ts_ns[calls])


@analysis("launches", rank=30)
def answer(profile: Profile) -> Answer:
    """One row per call and operator; behind it one per call."""
    trace = profile.trace
    groups, latencies, lines = Grouping(profile, ["dur_ns", "activities"]), Samples(), CostliestLines(profile)
    keys = CallKeys(trace)
    for calls, step in _calls(trace):
        first, activities = trace.links.submitted(calls)
        group = groups.add(keys.of(calls), step, trace.dur_ns[calls], activities)
        lines.add(calls, group, trace.dur_ns[calls])
        has_work = first >= 0
        latencies.add(group[has_work], trace.ts_ns[first[has_work]] - trace.ts_ns[calls[has_work]])
    number = len(groups.keys)
    grouped = groups.sorted(keys.columns, latency_ns=latencies.medians(number), **lines.columns(number))
    summary = table(
        SUMMARY,
        grouped
        | {
            "step_ns": grouped["dur_ns_per_step"],
            "mean_ns": grouped["dur_ns_mean"],
            "activities": grouped["activities"] / grouped["count"],
        },
    )
    rows = EventRows(ROWS, lambda: _rows(profile))
    status: Status = "answered" if len(summary) else "unanswered" if why_calls_unknown(trace) else "absent"
    worth = share_of_step(profile, "kernel_launch")
    return Answer("launches", "Launches", _sentence(profile, summary), summary, rows, worth=worth, status=status)


def _rows(profile: Profile) -> Iterator[pa.Table]:
    """One row per event."""
    trace = profile.trace
    for calls, _ in _calls(trace):
        first, activities = trace.links.submitted(calls)
        yield table(
            ROWS,
            {
                **call_columns(trace, calls),
                "thread": trace.tracks["tid"].take(pa.array(trace.track[calls])),
                "graph": trace.events_at(calls).roles.graph_launch,
                "activities": activities,
                "activity": pa.array(first, mask=first < 0),
                "latency_ns": pa.array(trace.ts_ns[first] - trace.ts_ns[calls], mask=first < 0),
                **line_columns(profile, calls),
            },
        )


def _sentence(profile: Profile, summary: pa.Table) -> str:
    trace = profile.trace
    if why_unknown := why_calls_unknown(trace):
        return f"Cannot be answered: {why_unknown}."
    if not len(summary):
        return "The host launches no GPU work in this trace."
    per_step = float(summary["per_step"].to_numpy().sum())
    cost = float(summary["step_ns"].to_numpy().sum())
    calls, occupy = f"{many(per_step, 'launch call')} a step", "occupies" if per_step == 1 else "occupy"
    # From each call that submitted work to the start of that work, and how many of the calls replay a CUDA graph.
    pieces, replayed = [NO_INTS], 0
    for part in trace.parts():
        rows = part.rows(part.roles.runtime & part.process)
        first = trace.links.submitted(rows)[0]
        rows, first = rows[first >= 0], first[first >= 0]
        pieces.append(trace.ts_ns[first] - trace.ts_ns[rows])
        replayed += int(trace.events_at(rows).roles.graph_launch.sum())
    latencies = np.concatenate(pieces)
    if not len(latencies):
        is_there = trace.impossible.two_clocks
        lacking = "when the GPU did the work is unknown" if is_there else "what they submitted is not in the trace"
        return f"{calls} {occupy} the host for {duration(cost)}; {lacking}."
    without_work = sum(
        int((profile.in_counted(step) & (trace.links.submitted(rows)[1] == 0)).sum()) for rows, step in _calls(trace)
    )
    idle = without_work / profile.counted_steps
    of_them = f" ({count(idle)} of them without work in the trace)" if idle >= _MIN_CALLS_TO_REPORT else ""
    sentence = f"{calls}{of_them} {occupy} the host for {duration(cost)}"
    sentence += f"; half of the work starts within {median(trace, latencies)} of its call"
    return f"{sentence}; {count(replayed)} calls of the trace replay a CUDA graph." if replayed else f"{sentence}."
