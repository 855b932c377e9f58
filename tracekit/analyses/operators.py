"""Which operators compute on the CPU, and for how long?"""

import numpy as np
import pyarrow as pa

from tracekit.analyses import Answer, Status, analysis, share_of_step, table
from tracekit.base.units import count, duration, many, percent
from tracekit.profile import Profile
from tracekit.profile.grouping import mean_of_one
from tracekit.trace import Trace
from tracekit.trace.facts.coverage import device_side_missing
from tracekit.trace.schema import LABEL, column
from tracekit.vocabulary.kernel_class import kernel_class

SUMMARY = pa.schema(
    [
        column("name", LABEL, "operator", role="name"),
        column("class", LABEL, "kind of work, inferred from the operator"),
        column("per_step", pa.float64(), "calls per counted step"),
        column("step_ns", pa.float64(), "self CPU time, without operators inside it, per counted step", "ns"),
        column("share", pa.float64(), "share of the step", "share"),
        column("mean_ns", pa.float64(), "self CPU time of one call in counted steps; of all, where none has it", "ns"),
        column("count", pa.int64(), "calls in the whole trace", role="detail"),
        column("total_ns", pa.int64(), "self CPU time in all steps", "ns", role="detail"),
    ]
)


@analysis("operators", rank=25)
def answer(profile: Profile) -> Answer:
    """One row per operator of a trace without a GPU; together they are the bucket `cpu_compute`."""
    trace, worth = profile.trace, share_of_step(profile, "cpu_compute")
    if trace.device != "cpu":
        on_a_gpu = "The work runs on a GPU: the kernels show what takes the time."
        return Answer("operators", "Operators", on_a_gpu, SUMMARY.empty_table(), worth=worth, status="absent")
    pieces = profile.attribution.pieces
    is_computing = pieces.of("cpu_compute") & (pieces.event >= 0)
    spent_ns = np.zeros((len(trace.names), 2), np.int64)  # in all steps, and in counted ones
    names, dur = trace.name_codes[pieces.event[is_computing]], pieces.dur[is_computing]
    counted = profile.counted[pieces.step[is_computing]]
    np.add.at(spent_ns[:, 0], names, dur)
    np.add.at(spent_ns[:, 1], names[counted], dur[counted])
    number = np.zeros((len(trace.names), 2), np.int64)
    for part in trace.parts():
        is_work = part.process & ~part.roles.annotation
        codes = part.name_codes[is_work]
        np.add.at(number[:, 0], codes, 1)
        np.add.at(number[:, 1], codes[profile.in_counted(trace.steps.of(part.ts_ns[is_work]))], 1)
    rows = np.flatnonzero(spent_ns[:, 0])
    rows = rows[np.lexsort((rows, -spent_ns[rows, 0], -spent_ns[rows, 1]))]
    steps, texts = profile.counted_steps, [trace.names[row] for row in rows.tolist()]
    length = profile.mean.step_ns if profile.mean is not None else 0.0
    summary = table(
        SUMMARY,
        {
            "name": texts,
            "class": [kernel_class(text, text) for text in texts],
            "per_step": number[rows, 1] / steps,
            "step_ns": spent_ns[rows, 1] / steps,
            "share": spent_ns[rows, 1] / steps / length if length else np.zeros(len(rows)),
            "mean_ns": mean_of_one(spent_ns[rows, 0], number[rows, 0], spent_ns[rows, 1], number[rows, 1]),
            "count": number[rows, 0],
            "total_ns": spent_ns[rows, 0],
        },
    )
    status: Status = "answered" if len(summary) else "absent"
    return Answer("operators", "Operators", _sentence(trace, summary), summary, worth=worth, status=status)


def _sentence(trace: Trace, summary: pa.Table) -> str:
    if not len(summary):
        return "No operator computes in this trace."
    first = summary.slice(0, 1).to_pylist()[0]
    per_step = float(summary["per_step"].to_numpy().sum())
    names = many(len(summary), "distinct name")
    missing = device_side_missing(trace) is not None
    of_the_host = " These are times of the host: what the operators submitted to the device was not recorded."
    return (
        f"{count(round(per_step, 1))} operators a step, with {names}. The costliest is {first['name']}: "
        f"{duration(first['step_ns'])}, {percent(first['share'])} of a step.{of_the_host if missing else ''}"
    )
