"""What do samplers, neighbour searches and collates of graphs take that run in the loop itself, and which lines call
them?

What workers of a loader build is in their processes: it costs a step nothing until the loop waits for it.
"""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from tracekit.analyses import Answer, Status, analysis
from tracekit.base.names import sanitize
from tracekit.base.units import duration, many, percent
from tracekit.lines.owners import short
from tracekit.profile import Profile
from tracekit.profile.graph_building import GraphBuilder, per_step_ns, time_of_all
from tracekit.profile.where import LINE_COLUMNS, line_cells
from tracekit.trace.schema import LABEL, column

SUMMARY = pa.schema(
    [
        column("builder", LABEL, "the functions or operators that build a graph", role="name"),
        *LINE_COLUMNS,
        column("per_step", pa.float64(), "calls per step, as recorded"),
        column("step_ns", pa.float64(), "what it takes of a counted step", "ns"),
        column("share", pa.float64(), "share of the step", "share"),
        column(
            "host_ns", pa.float64(), "time of the main thread in it per counted step, also while the GPU works", "ns"
        ),
        column("gpu_ns", pa.float64(), "time of the GPU's work that it submits, per counted step", "ns"),
    ]
)
# Where functions of Python cannot be seen, as an end of what is said.
UNSEEN = (
    "without Python stacks only operators of pyg-lib, torch-cluster and torch-sparse are seen, and spans named “graph "
    "building”"
)
_MOST_NAMED = 2


@analysis("graph_building", rank=17)
def answer(profile: Profile) -> Answer:
    """One row per line that calls for it, the costliest first."""
    builders, title = profile.graph_builders, "Graph building in the loop"
    has_stacks = profile.ownership.recording is not None
    mean = profile.mean
    if not builders or mean is None:
        status: Status = "absent" if mean is not None else "unanswered"
        sentence = "No function or operator that builds a graph was recorded in a step."
        if mean is None:
            sentence = "Cannot be answered, because no step could be timed."
        elif not has_stacks:
            sentence = f"Nothing that builds a graph was recorded in a step; {UNSEEN}."
        return Answer("graph_building", title, sentence, SUMMARY.empty_table(), worth=0.0, status=status)
    rows = [_row(profile, builder, mean.step_ns) for builder in builders]
    taken_ns = per_step_ns(profile, time_of_all(builders))
    return Answer(
        "graph_building",
        title,
        _sentence(builders, rows, taken_ns, mean.step_ns)
        + ("" if has_stacks else f" {UNSEEN[:1].upper()}{UNSEEN[1:]}."),
        pa.Table.from_pylist(rows, schema=SUMMARY),
        worth=taken_ns / mean.step_ns,
    )


def _row(profile: Profile, builder: GraphBuilder, whole_ns: float) -> dict[str, Any]:
    trace = profile.trace
    step_ns = per_step_ns(profile, builder.wall)
    work_ns = int(trace.dur_ns[builder.work[profile.begins_in_counted(builder.work)]].sum()) if len(builder.work) else 0
    return {
        "builder": builder.name,
        **dict(zip(LINE_COLUMNS.names, line_cells(builder.lines), strict=True)),
        "per_step": builder.calls / builder.recorded_steps,
        "step_ns": step_ns,
        "share": step_ns / whole_ns,
        "host_ns": per_step_ns(profile, builder.host),
        "gpu_ns": work_ns / profile.counted_steps,
    }


def _sentence(builders: Sequence[GraphBuilder], rows: list[dict[str, Any]], taken_ns: float, whole_ns: float) -> str:
    """What all of it takes, and the costliest lines."""
    named = []
    for builder, row in zip(builders[:_MOST_NAMED], rows, strict=False):
        at = f" at {sanitize(short(builder.lines))}" if builder.lines else ""
        named.append(f"{sanitize(builder.name)}{at} ({duration(row['step_ns'])})")
    more = f", and {many(len(rows) - len(named), 'more line')}" if len(rows) > len(named) else ""
    host_ns, gpu_ns = sum(row["host_ns"] for row in rows), sum(row["gpu_ns"] for row in rows)
    sides = f"{duration(host_ns)} of the host's time" + (f" and {duration(gpu_ns)} of the GPU's" if gpu_ns else "")
    return (
        f"Building graphs takes {duration(taken_ns)} of a step, {percent(taken_ns / whole_ns)} ({sides}): "
        f"{', '.join(named)}{more}."
    )
