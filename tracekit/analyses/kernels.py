"""Which kernels and copies does the GPU spend its time in, and how idle is it?"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from tracekit.analyses import Answer, Status, analysis, share_of_step, table
from tracekit.analyses.event_rows import CostliestLines, EventRows, line_columns, numbered, text
from tracekit.base.intervals import Ints, Union
from tracekit.base.units import count, duration, many, percent
from tracekit.engine.buckets import ON_THE_GPU
from tracekit.profile import Profile
from tracekit.profile.grouping import Grouping, Names
from tracekit.profile.where import LINE_COLUMNS
from tracekit.trace import Trace
from tracekit.trace.roles import COPY, KERNEL, SET
from tracekit.trace.schema import LABEL, column
from tracekit.vocabulary.kernel_class import kernel_class
from tracekit.vocabulary.kernel_names import kernel_in_prose

SUMMARY = pa.schema(
    [
        column("name", LABEL, "name as written", role="kernel"),
        column("class", LABEL, "kind of work, inferred from the name"),
        column("per_step", pa.float64(), "instances per counted step; null where none is linked to a launch call"),
        column("step_ns", pa.float64(), "time per counted step", "ns"),
        column("mean_ns", pa.float64(), "mean duration in counted steps; of all, where it runs in none", "ns"),
        column(
            "share", pa.float64(), "share of a step's kernel and copy time; of all, where no steps are known", "share"
        ),
        column("count", pa.int64(), "instances in the whole trace", role="detail"),
        column("total_ns", pa.int64(), "time in the whole trace", "ns", role="detail"),
        *LINE_COLUMNS,
    ]
)
ROWS = pa.schema(
    [
        column("event", pa.int64(), "row of the events table", role="plumbing"),
        column("step", pa.int64(), "the N of the step that launched it; null for none", role="identity"),
        column("name", LABEL, "name as written"),
        column("kind", LABEL, "kernel, memcpy or memset"),
        column("class", LABEL, "kind of work, inferred from the name"),
        column("start_ns", pa.int64(), "start", "ns"),
        column("dur_ns", pa.int64(), "duration", "ns"),
        column("device", LABEL, "device it ran on"),
        column("stream", LABEL, "stream it ran on"),
        column("bytes", pa.int64(), "bytes moved", "B"),
        column("launch", pa.int64(), "row of the runtime call that submitted it; null where unknown", role="plumbing"),
        column("latency_ns", pa.int64(), "from that call's start to the start on the GPU", "ns"),
        column("operator", LABEL, "operator that made the call", role="name"),
        *LINE_COLUMNS,
    ]
)
_KINDS = pa.array([{KERNEL: "kernel", COPY: "memcpy", SET: "memset"}[kind] for kind in range(SET + 1)])


def _activities(trace: Trace) -> Iterator[tuple[Ints, Ints, Ints]]:
    """GPU activities in order of their starts, some at a time; their calls, and the indices of those calls' steps."""
    for part in trace.parts():
        gpu = part.rows(part.roles.gpu)
        if len(gpu):
            launch = trace.links.launch(gpu)
            yield gpu, launch, np.where(launch >= 0, trace.steps.of(trace.ts_ns[launch]), -1)


@analysis("kernels", rank=20)
def answer(profile: Profile) -> Answer:
    """One row per name; behind it one per activity."""
    trace = profile.trace
    groups, lines = Grouping(profile, ["dur_ns", "tied", "doubtful"]), CostliestLines(profile)
    for gpu, launch, step in _activities(trace):
        tied, doubtful = (mask.astype(np.int64) for mask in (launch >= 0, trace.unknown.gpu.covers(trace.ts_ns[gpu])))
        group = groups.add(trace.name_codes[gpu], step, trace.dur_ns[gpu], tied, doubtful)
        lines.add(gpu, group, trace.dur_ns[gpu])
    columns: Names = {"name": lambda code: trace.names[code], "class": lambda code: kernel_class(trace.names[code])}
    grouped = groups.sorted(columns, **lines.columns(len(groups.keys)))
    unknown = grouped["tied"] == 0  # the step of what nothing in the trace launched is unknown
    total, per_step = grouped["dur_ns"], grouped["dur_ns_per_step"]
    weights = total if unknown.all() else np.where(unknown, 0.0, per_step)
    summary = table(
        SUMMARY,
        grouped
        | {
            "per_step": pa.array(grouped["per_step"], mask=unknown),
            "step_ns": pa.array(per_step, mask=unknown),
            "mean_ns": grouped["dur_ns_mean"],
            "share": weights / (float(weights.sum()) or 1.0),
            "total_ns": pa.array(total, mask=grouped["doubtful"] > 0),
        },
    )
    launched = trace.census.any(lambda roles: roles.launch)
    status: Status = "answered" if len(summary) else "unanswered" if launched else "absent"
    sentence, rows = _sentence(profile, summary), EventRows(ROWS, lambda: _rows(profile))
    worth = share_of_step(profile, *ON_THE_GPU)
    return Answer("kernels", "Kernels and copies", sentence, summary, rows, worth=worth, status=status)


def _rows(profile: Profile) -> Iterator[pa.Table]:
    """One row per event."""
    trace = profile.trace
    classes = pa.array([kernel_class(name) for name in trace.names], pa.string())
    for gpu, launch, step in _activities(trace):
        events, linked = trace.events.take(gpu), launch >= 0
        tracks = trace.tracks.take(events["track"])
        yield table(
            ROWS,
            {
                "event": gpu,
                "step": numbered(trace, step),
                "name": text(trace, gpu),
                "kind": _KINDS.take(pa.array(trace.events_at(gpu).roles.kind)),
                "class": classes.take(pa.array(trace.name_codes[gpu])),
                "start_ns": trace.ts_ns[gpu],
                "dur_ns": trace.dur_ns[gpu],
                "device": tracks["pid"],
                "stream": tracks["tid"],
                "bytes": events["bytes"],
                "launch": pa.array(launch, mask=~linked),
                "latency_ns": pa.array(trace.ts_ns[gpu] - trace.ts_ns[launch], mask=~linked),
                "operator": text(trace, trace.operators.of(launch)),
                **line_columns(profile, gpu),
            },
        )


def _sentence(profile: Profile, summary: pa.Table) -> str:
    trace = profile.trace
    if trace.device != "gpu":
        return (
            "The trace holds no GPU activity although work was launched: was the GPU side recorded?"
            if trace.census.any(lambda roles: roles.launch)
            else "The trace holds no GPU activity."
        )
    if not len(summary):
        return "No GPU activity of the trace can be placed in time."
    first = summary.slice(0, 1).to_pylist()[0]
    costliest = kernel_in_prose(first["name"])
    activity_count = trace.census.count(lambda roles: roles.gpu)
    per_step = float(np.nansum(summary["per_step"].to_numpy()))
    number = f"{'1 kernel or copy' if per_step == 1 else f'{count(per_step)} kernels and copies'} a step"
    of_unknown_steps = summary["per_step"].null_count == len(summary)
    if of_unknown_steps:
        no_launch = "no launch call of the training process submits any"
        why = "the host and the GPU have two clocks" if trace.impossible.two_clocks else no_launch
        activities = many(activity_count, "kernel or copy", "kernels and copies")
        number = f"{activities} of unknown steps ({why})"
    if activity_count == 1 and first["total_ns"] is not None:
        unknown = f", of an unknown step ({why})" if of_unknown_steps else ""
        return f"There is only one{unknown}: {costliest}, which takes {duration(first['total_ns'])}."
    names = many(len(summary), "distinct name")
    # Where it is unknown how long activities last, so is from when to when the GPU worked.
    lengths_unknown = any(breach.is_grave and {"gpu work", "steps"} <= {*breach.touches} for breach in profile.health)
    idle = "" if lengths_unknown else f"; {_idle_sentence(trace)}"
    cost = (
        f"{duration(first['total_ns'])}, {percent(first['share'])} of all GPU time"
        if first["step_ns"] is None
        else f"{duration(first['step_ns'])} a step, {percent(first['share'])} of its GPU time"
    )
    return f"{number}, with {names}{idle}. The costliest is {costliest}: {cost}."


def _idle_sentence(trace: Trace) -> str:
    """How idle each device is between its first and its last activity, and for how long that is unknown."""
    idle, unknown_ns, no_record = _idle(trace), 0, trace.unknown.gpu
    if len(no_record.starts):
        activities = trace.events_at(trace.where(lambda part: part.roles.gpu))
        nobody_knows = no_record.minus(Union.of(activities.ts_ns, activities.end_ns))
        unknown_ns = nobody_knows.clip(int(activities.ts_ns.min()), int(activities.end_ns.max())).total()
    if len(idle) == 1:
        ((span, idle_ns),) = idle.values()
        idle_ns -= unknown_ns
        unknown = f", and for {duration(unknown_ns, like=span)} it is unknown whether it is" if unknown_ns else ""
        idles = f"idle for {duration(idle_ns, like=span)} ({percent(idle_ns / span)})" if idle_ns else "never idle"
        return f"in the {duration(span)} from the first to the last, the GPU is {idles}{unknown}"
    if unknown_ns:
        return f"for how long its {len(idle)} devices are idle is unknown"
    shares = sorted(idle_ns / span if span else 0.0 for span, idle_ns in idle.values())
    return f"from the first to the last its {len(idle)} devices are idle {percent(shares[0])} to {percent(shares[-1])}"


def _idle(trace: Trace) -> dict[str, tuple[int, int]]:
    """For each device, the time from its first activity to its last, and how much of that it is idle."""
    devices, device_of = np.unique(np.array(trace.tracks["pid"].to_pylist(), object), return_inverse=True)
    begun: dict[str, int] = {}
    reach: dict[str, int] = {}
    busy: dict[str, int] = {}
    for part in trace.parts():
        gpu = np.flatnonzero(part.roles.gpu)
        numbers = device_of[part.track[gpu]]
        by_device = np.argsort(numbers, kind="stable")
        found, firsts = np.unique(numbers[by_device], return_index=True)
        for number, rows in zip(found.tolist(), np.split(gpu[by_device], firsts[1:]), strict=False):
            device = devices[number]
            starts, ends = part.ts_ns[rows], part.end_ns[rows]
            begun.setdefault(device, int(starts[0]))
            reached = np.maximum.accumulate(np.concatenate(([max(reach.get(device, 0), begun[device])], ends)))
            busy[device] = busy.get(device, 0) + int(np.maximum(ends - np.maximum(starts, reached[:-1]), 0).sum())
            reach[device] = int(reached[-1])
    return {
        device: (reach[device] - begun[device], reach[device] - begun[device] - busy[device])
        for device in sorted(begun)
    }
