"""Where did the host wait for the GPU, and what did that cost?"""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracekit.analyses import Answer, analysis, per_step, table
from tracekit.engine.buckets import CODES
from tracekit.intervals import Ints, Union
from tracekit.profile import Profile
from tracekit.trace import Trace
from tracekit.trace.enclosing import enclosing, labels, operators, user_frames
from tracekit.trace.health import calls_untold
from tracekit.trace.roles import bare
from tracekit.trace.schema import LABEL, column
from tracekit.units import count, duration

SUMMARY = pa.schema(
    [
        column("call", LABEL, "runtime call; without a GPU the operator that would wait for one"),
        column("operator", LABEL, "operator that made it"),
        column("where", LABEL, "your line, where the trace has Python stacks"),
        column("per_step", pa.float64(), "calls per counted step"),
        column("wait_ns", pa.float64(), "host time inside the call, per counted step", "ns"),
        column("stall_ns", pa.float64(), "GPU idle time it is to blame for, per counted step", "ns"),
        column("count", pa.int64(), "calls in the whole trace"),
    ]
)
ROWS = pa.schema(
    [
        column("event", pa.int64(), "row of the events table"),
        column("step", pa.int64(), "the N of the step in whose time it starts; null for none"),
        column("call", LABEL, "runtime call, without version suffix"),
        column("operator", LABEL, "operator that made it"),
        column("where", LABEL, "the innermost Python frame of your own code; null without stacks"),
        column("start_ns", pa.int64(), "start", "ns"),
        column("dur_ns", pa.int64(), "host time inside the call", "ns"),
        column("tail_ns", pa.int64(), "GPU idle while it still waited or returned", "ns"),
        column("refill_ns", pa.int64(), "GPU idle while the host refilled the queue that it had drained", "ns"),
        column("stall_ns", pa.int64(), "both; null where the wall time cannot be answered", "ns"),
        column(
            "counted_ns", pa.int64(), "what of the stall lies in counted steps: the refill may be the next one's", "ns"
        ),
    ]
)
# Operators that read a value back: on a GPU each of them waits.
MARKERS = re.compile(
    r"aten::(?:_local_scalar_dense|is_nonzero|nonzero|_unique2|unique_consecutive|unique_dim|masked_select)"
)


@analysis("syncs", rank=40)
def answer(profile: Profile) -> Answer:
    """One row per call and place; behind it one per call."""
    rows, step = _rows(profile)
    summary = _summary(profile, rows, step)
    return Answer("syncs", "Syncs", _sentence(profile, summary) + _aside(profile.trace), summary, rows)


def _aside(trace: Trace) -> str:
    """What lies in the bucket of syncs, and is none of the training's."""
    own = np.flatnonzero(own_waits(trace))
    if not len(own):
        return ""
    waited = duration(int((trace.end_ns[own] - trace.ts_ns[own]).sum()))
    return f" The capture's own wait at its last step's end ({waited}) is left out."


def _rows(profile: Profile) -> tuple[pa.Table, Ints]:
    """One row per event, and the place of its step among the steps, −1 for none."""
    trace = profile.trace
    without_gpu = trace.device == "cpu" and not trace.roles.runtime.any()
    found = trace.roles.named(MARKERS) & ~_compiling(trace) if without_gpu else trace.links.sync
    calls = np.flatnonzero(found & trace.threads.process & ~own_waits(trace))
    calls = calls[np.lexsort((calls, trace.ts_ns[calls]))]
    step = trace.steps.of(trace.ts_ns[calls])
    numbers = np.array([*trace.steps.number, -1], np.int64)
    tail, refill, counted = _stalls(profile, calls)
    unknown = np.full(len(calls), profile.cost.wall_view is None or trace.device != "gpu")
    rows = table(
        ROWS,
        {
            "event": calls,
            "step": pa.array(numbers[step], mask=step < 0),
            "call": [bare(name or "") for name in labels(trace, calls)],
            "operator": labels(trace, operators(trace, calls)) if not without_gpu else [None] * len(calls),
            "where": labels(trace, user_frames(trace, calls)),
            "start_ns": trace.ts_ns[calls],
            "dur_ns": trace.end_ns[calls] - trace.ts_ns[calls],
            "tail_ns": pa.array(tail, mask=unknown),
            "refill_ns": pa.array(refill, mask=unknown),
            "stall_ns": pa.array(tail + refill, mask=unknown),
            "counted_ns": pa.array(counted, mask=unknown),
        },
    )
    return rows, step


def own_waits(trace: Trace) -> np.ndarray:
    """Syncs that the capture itself made, so that its last step ends when its work is done."""
    inside = np.zeros(len(trace.events), bool)
    if trace.roles.own_wait.any():
        syncs = np.flatnonzero(trace.links.sync)
        inside[syncs] = enclosing(trace, syncs, trace.roles.own_wait) >= 0
    return inside


def _compiling(trace: Trace) -> np.ndarray:
    """Events inside a compile span: what the compiler reads back is no sync of the user's."""
    inside = np.zeros(len(trace.events), bool)
    marked = np.flatnonzero(trace.roles.named(MARKERS))
    inside[marked] = enclosing(trace, marked, trace.roles.compile_span) >= 0
    return inside


def _stalls(profile: Profile, calls: Ints) -> tuple[Ints, Ints, Ints]:
    """GPU idle time that each call is to blame for: while it waited, after it, and what of both is in counted steps."""
    tail, refill, counted = (np.zeros(len(calls), np.int64) for _ in range(3))
    view, steps = profile.cost.wall_view, profile.trace.steps
    if view is None or not len(calls):
        return tail, refill, counted
    stalled = view.states.values == CODES["sync_stall"]
    blamed = view.events.values[stalled]
    lengths = np.diff(view.states.edges)[stalled]
    after = view.refill[stalled]
    order = np.argsort(calls)
    place = order[np.minimum(np.searchsorted(calls[order], blamed), len(calls) - 1)]
    real = calls[place] == blamed
    np.add.at(tail, place[real & ~after], lengths[real & ~after])
    np.add.at(refill, place[real & after], lengths[real & after])
    starts = view.states.edges[:-1][stalled]
    chosen = profile.answered["wall"]
    inside = Union.of(steps.begin[chosen], steps.done[chosen]).within(starts, starts + lengths)
    np.add.at(counted, place[real], inside[real])
    return tail, refill, counted


def _summary(profile: Profile, rows: pa.Table, step: Ints) -> pa.Table:
    grouped = per_step(profile, rows, step, by=["call", "operator", "where"], sums=["counted_ns", "dur_ns"])
    return table(
        SUMMARY,
        {
            **{name: grouped[name] for name in ("call", "operator", "where")},
            "per_step": grouped["per_step"],
            "wait_ns": grouped["dur_ns_per_step"],
            "stall_ns": pc.divide(grouped["counted_ns"].cast(pa.float64()), float(max(int(profile.counted.sum()), 1))),
            "count": grouped["count"],
        },
    )


def _sentence(profile: Profile, summary: pa.Table) -> str:
    trace = profile.trace
    if untold := calls_untold(trace):
        return f"Cannot be answered: {untold}."
    if trace.device == "cpu" and not trace.roles.runtime.any():
        found = float(summary["per_step"].to_numpy().sum())
        return (
            f"No GPU here; {count(found)} operators a step read a value back, and on a GPU each would wait."
            if found
            else "No GPU here, and no operator that would wait for one."
        )
    if not len(summary):
        return "The host never waits for the GPU."
    number, wait = (float(summary[name].to_numpy().sum()) for name in ("per_step", "wait_ns"))
    if not number:
        outside = int(summary["count"].to_numpy().sum())
        return f"No sync in the steps counted; {count(outside)} outside of them."
    text = f"{count(number)} syncs a step; the host waits {duration(wait)} in them"
    if summary["stall_ns"].null_count == len(summary):
        return f"{text}; what that cost the GPU cannot be answered."
    stall = float(np.nansum(summary["stall_ns"].to_numpy(zero_copy_only=False)))
    return f"{text}, and the GPU idles {duration(stall)} because of them."
