"""Which kernels and copies does the GPU spend its time in, and how idle is it?"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracekit.analyses import Answer, analysis, per_step, table
from tracekit.analyses.kernel_class import kernel_class
from tracekit.intervals import Bools, Ints, Union
from tracekit.profile import Profile
from tracekit.trace.enclosing import labels, operators
from tracekit.trace.roles import COPY, KERNEL, SET
from tracekit.trace.schema import LABEL, column
from tracekit.units import count, duration, exact, percent

SUMMARY = pa.schema(
    [
        column("name", LABEL, "name as written"),
        column("class", LABEL, "what kind of work, told by the name: a guess"),
        column("per_step", pa.float64(), "how often, per counted step; null where none of it is tied to a launch call"),
        column("step_ns", pa.float64(), "time per counted step", "ns"),
        column("mean_ns", pa.float64(), "mean duration", "ns"),
        column("share", pa.float64(), "part of all kernel and copy time", "share"),
        column("count", pa.int64(), "how often in the whole trace"),
        column("total_ns", pa.int64(), "time in the whole trace", "ns"),
    ]
)
ROWS = pa.schema(
    [
        column("event", pa.int64(), "row of the events table"),
        column("step", pa.int64(), "the N of the step that launched it; null for none"),
        column("name", LABEL, "name as written"),
        column("kind", LABEL, "kernel, memcpy or memset"),
        column("class", LABEL, "what kind of work, told by the name: a guess"),
        column("start_ns", pa.int64(), "start", "ns"),
        column("dur_ns", pa.int64(), "duration", "ns"),
        column("device", LABEL, "device it ran on"),
        column("stream", LABEL, "stream it ran on"),
        column("bytes", pa.int64(), "bytes moved", "B"),
        column("launch", pa.int64(), "row of the runtime call that submitted it; null where unknown"),
        column("latency_ns", pa.int64(), "from that call's start to the start on the GPU", "ns"),
        column("operator", LABEL, "operator that made the call"),
    ]
)
_KIND = {KERNEL: "kernel", COPY: "memcpy", SET: "memset"}


@analysis("kernels", rank=20)
def answer(profile: Profile) -> Answer:
    """One row per name; behind it one per activity."""
    rows, step = _rows(profile)
    summary = _summary(profile, rows, step)
    return Answer("kernels", "Kernels and copies", _sentence(profile, summary), summary, rows)


def _rows(profile: Profile) -> tuple[pa.Table, Ints]:
    """One row per event, and the place of its step among the steps, −1 for none."""
    trace = profile.trace
    gpu = np.flatnonzero(trace.roles.gpu)
    gpu = gpu[np.lexsort((gpu, trace.ts_ns[gpu]))]
    launch = trace.links.launch[gpu]
    linked = launch >= 0
    step = np.where(linked, trace.steps.of(trace.ts_ns[launch]), -1)
    numbers = np.array([*trace.steps.number, -1], np.int64)
    distinct, place = np.unique(launch, return_inverse=True)
    operator = np.array([*labels(trace, operators(trace, distinct)), None], object)[place]
    classes = np.array([kernel_class(name) for name in trace.names], object)
    events = trace.events.take(gpu)
    tracks = trace.tracks.take(events["track"])
    rows = table(
        ROWS,
        {
            "event": gpu,
            "step": pa.array(numbers[step], mask=step < 0),
            "name": events["name"].combine_chunks().cast(pa.string()),
            "kind": [_KIND[kind] for kind in trace.roles.kind[gpu].tolist()],
            "class": classes[trace.name_codes[gpu]] if len(gpu) else [],
            "start_ns": trace.ts_ns[gpu],
            "dur_ns": trace.end_ns[gpu] - trace.ts_ns[gpu],
            "device": tracks["pid"].combine_chunks(),
            "stream": tracks["tid"].combine_chunks(),
            "bytes": events["bytes"].combine_chunks(),
            "launch": pa.array(launch, mask=~linked),
            "latency_ns": pa.array(trace.ts_ns[gpu] - trace.ts_ns[launch], mask=~linked),
            "operator": pa.array(operator, pa.string(), mask=~linked),
        },
    )
    return rows, step


def _summary(profile: Profile, rows: pa.Table, step: Ints) -> pa.Table:
    rows = rows.append_column("tied", pc.is_valid(rows["launch"]).cast(pa.int64()))
    grouped = per_step(profile, rows, step, by=["name", "class"], sums=["dur_ns", "tied"])
    tied = pc.greater(grouped["tied"], 0)  # of what nothing launched in the trace, nobody knows the step
    return table(
        SUMMARY,
        {
            "name": grouped["name"],
            "class": grouped["class"],
            "per_step": pc.if_else(tied, grouped["per_step"], None),
            "step_ns": pc.if_else(tied, grouped["dur_ns_per_step"], None),
            "mean_ns": pc.divide(grouped["dur_ns"].cast(pa.float64()), grouped["count"].cast(pa.float64())),
            "share": pc.divide(
                grouped["dur_ns"].cast(pa.float64()), float(max(pc.sum(rows["dur_ns"]).as_py() or 0, 1))
            ),
            "count": grouped["count"],
            "total_ns": grouped["dur_ns"],
        },
    )


def _sentence(profile: Profile, summary: pa.Table) -> str:
    trace = profile.trace
    gpu = trace.roles.gpu
    if not gpu.any():
        return (
            "The trace holds no GPU activity although work was launched: was the GPU side recorded?"
            if trace.roles.launch.any()
            else "The trace holds no GPU activity."
        )
    busy = Union.of(trace.ts_ns[gpu], trace.end_ns[gpu])
    span = int(trace.end_ns[gpu].max() - trace.ts_ns[gpu].min())
    first = summary.slice(0, 1).to_pylist()[0]
    known = summary["per_step"].null_count < len(summary)
    number = f"{count(pc.sum(summary['per_step']).as_py())} kernels and copies a step" if known else _of_no_step(gpu)
    most = f"{duration(first['step_ns'])} a step" if first["step_ns"] is not None else duration(first["total_ns"])
    idle = span - busy.total()
    return (
        f"{number} of {count(len(summary))} names; from the first to the last the GPU is idle {exact(idle)} of "
        f"{duration(span)} ({percent(idle / span if span else 0)}). The most time goes to {first['name']}: {most}, "
        f"{percent(first['share'])}."
    )


def _of_no_step(gpu: Bools) -> str:
    return (
        f"{count(int(gpu.sum()))} kernels and copies, of which steps cannot be answered (none has a launch call here),"
    )
