"""Where did the host wait for the GPU, and what did that cost?"""

import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from tracekit.analyses import Answer, Status, analysis, share_of_step, table
from tracekit.analyses.event_rows import SOME, CallKeys, EventRows, call_columns, call_schema
from tracekit.base.intervals import NO_INTS, Ints
from tracekit.base.units import count, duration, many
from tracekit.engine.wall import is_sync
from tracekit.profile import LEAST_SHARE, Profile
from tracekit.profile.grouping import Grouping
from tracekit.profile.where import LINE_COLUMNS, distinct_lines, line_table
from tracekit.trace import Trace
from tracekit.trace.facts.laws.sides import why_calls_unknown
from tracekit.trace.own_waits import own_waits
from tracekit.trace.roles import BACKWARD_NODE, DATALOAD
from tracekit.trace.rows import enclosing
from tracekit.trace.schema import LABEL, column

SUMMARY = pa.schema(
    [
        column("call", LABEL, "runtime call; without a GPU the operator that would wait for one", role="name"),
        column("operator", LABEL, "operator that made it", role="name"),
        *LINE_COLUMNS,
        column("per_step", pa.float64(), "calls per counted step"),
        column("stall_ns", pa.float64(), "GPU idle time that it causes, per counted step", "ns"),
        column("wait_ns", pa.float64(), "host time inside the call, per counted step", "ns"),
        column("count", pa.int64(), "calls in the whole trace", role="detail"),
    ]
)
ROWS = call_schema(
    *LINE_COLUMNS,
    column("tail_ns", pa.int64(), "GPU idle time while the call still waited or returned", "ns"),
    column("refill_ns", pa.int64(), "GPU idle time while the host refilled the queue that the call had drained", "ns"),
    column("stall_ns", pa.int64(), "sum of both; null where the wall time cannot be answered", "ns"),
    column(
        "counted_ns", pa.int64(), "the part of the stall in counted steps; the refill may belong to the next step", "ns"
    ),
)
# Operators that read a value back: on a GPU each of them waits.
MARKERS = re.compile(
    r"aten::(?:_local_scalar_dense|is_nonzero|nonzero|_unique2|unique_consecutive|unique_dim|masked_select)"
)
# Optimizers that read nothing but counters of theirs, which are on the CPU unless capturable=True, and then not read.
_COUNTS_ON_CPU = re.compile(r"Optimizer\.step#(?:Adam|AdamW|Adamax|Adagrad|NAdam|RAdam)\.step")
_FAR_LONGER, _LONG_NS = 10.0, 50_000  # launch calls that take so many times the median, and at least so long


@analysis("syncs", rank=40)
def answer(profile: Profile) -> Answer:
    """One row per call and place; behind it one per call."""
    syncs = _Syncs(profile)
    summary = syncs.summary()
    sentence = _sentence(profile, summary)
    is_absent = _no_gpu(profile.trace) and not len(summary)
    status: Status = "unanswered" if why_calls_unknown(profile.trace) else "absent" if is_absent else "answered"
    worth = share_of_step(profile, "sync_stall")
    return Answer("syncs", "Syncs", sentence, summary, EventRows(ROWS, syncs.rows), worth=worth, status=status)


class _Syncs:
    """The calls that wait; without a GPU the operators that would."""

    def __init__(self, profile: Profile) -> None:
        self._profile, self._trace = profile, profile.trace
        self._calls = _waiting(self._trace)
        self._lines = line_table(profile, self._calls)
        self._stalls = _stalls(profile, self._calls)
        self._unknown = "wall" in profile.attribution.cannot_answer or self._trace.device != "gpu"

    def rows(self) -> Iterator[pa.Table]:
        """One row per event."""
        for start in range(0, len(self._calls), SOME):
            chunk = slice(start, start + SOME)
            calls = self._calls[chunk]
            tail, refill, counted = (column[chunk] for column in self._stalls)
            unknown = np.full(len(calls), self._unknown)
            yield table(
                ROWS,
                {
                    **call_columns(self._trace, calls),
                    **{name: self._lines[name].combine_chunks()[chunk] for name in LINE_COLUMNS.names},
                    "tail_ns": pa.array(tail, mask=unknown),
                    "refill_ns": pa.array(refill, mask=unknown),
                    "stall_ns": pa.array(tail + refill, mask=unknown),
                    "counted_ns": pa.array(counted, mask=unknown),
                },
            )

    def summary(self) -> pa.Table:
        """One row per call, operator and line."""
        trace, profile = self._trace, self._profile
        call_keys, groups = CallKeys(trace), Grouping(profile, ["counted_ns", "dur_ns"])
        line_of, lines = distinct_lines(self._lines)
        for start in range(0, len(self._calls), SOME):
            chunk = slice(start, start + SOME)
            calls = self._calls[chunk]
            keys = call_keys.of(calls) * len(lines) + line_of[chunk]
            step = trace.steps.of(trace.ts_ns[calls])
            groups.add(keys, step, self._stalls[2][chunk], trace.dur_ns[calls])
        called = call_keys.columns
        grouped = groups.sorted(
            {
                "call": lambda key: called["call"](key // len(lines)),
                "operator": lambda key: called["operator"](key // len(lines)),
                "where": lambda key: lines[key % len(lines)]["where"],
            }
        )
        by_line = {line["where"]: line for line in lines}
        stall = grouped["counted_ns"] / profile.counted_steps
        return table(
            SUMMARY,
            grouped
            | {
                **{name: [by_line[place][name] for place in grouped["where"]] for name in LINE_COLUMNS.names},
                "wait_ns": grouped["dur_ns_per_step"],
                "stall_ns": [None] * len(stall) if self._unknown else stall,
            },
        )


def _no_gpu(trace: Trace) -> bool:
    return trace.device == "cpu" and not trace.census.any(lambda roles: roles.runtime)


def _waiting(trace: Trace) -> Ints:
    """The sync calls of the process that are not the recording's own; without a GPU the operators that read a value
    back."""
    if not _no_gpu(trace):
        parts = [part.rows(part.roles.runtime & part.process) for part in trace.parts()]
        calls = np.concatenate([rows[is_sync(trace, rows)] for rows in parts] or [NO_INTS])
        return np.setdiff1d(calls, own_waits(trace, calls), assume_unique=True)
    # Those of the compiler are no syncs of the user's code, and what a loader makes is on the CPU wherever training
    # runs.
    rows = trace.where(lambda part: part.roles.named(MARKERS) & part.process)
    rows = rows[enclosing(trace, rows, lambda part: part.roles.compile_span | part.roles.named(DATALOAD)) < 0]
    # So are an optimizer's own counters: read inside of its step, but not in the closure that this may call first,
    # whose backward is the last that runs before them.
    steps = enclosing(trace, rows, lambda part: part.roles.annotation & part.roles.named(_COUNTS_ON_CPU))
    is_counter = steps >= 0
    if is_counter.any():
        nodes = trace.where(lambda part: part.roles.named(BACKWARD_NODE))
        begins, ends = trace.ts_ns[rows[is_counter]], trace.events_at(steps[is_counter]).end_ns
        is_counter[is_counter] = np.searchsorted(trace.ts_ns[nodes], begins) == np.searchsorted(
            trace.ts_ns[nodes], ends
        )
    return rows[~is_counter]


def _stalls(profile: Profile, calls: Ints) -> tuple[Ints, Ints, Ints]:
    """GPU idle time that each call is to blame for: while it waited, after it, and the part of both in counted
    steps."""
    tail, refill, counted = (np.zeros(len(calls), np.int64) for _ in range(3))
    if "wall" in profile.attribution.cannot_answer or not len(calls):
        return tail, refill, counted
    event, after, step, lengths = (
        column.to_numpy(zero_copy_only=False) for column in profile.attribution.stalls.combine_chunks().itercolumns()
    )
    index = np.minimum(np.searchsorted(calls, event), len(calls) - 1)
    real = calls[index] == event
    in_counted = np.append(profile.answered["wall"], False)[step]
    for cost, mask in ((tail, real & ~after), (refill, real & after), (counted, real & in_counted)):
        np.add.at(cost, index[mask], lengths[mask])
    return tail, refill, counted


def _held_up(profile: Profile) -> float:
    """How much longer than usual the unusually long launch calls of a counted step take, ns; 0 where that is little."""
    trace = profile.trace
    calls = trace.where(lambda part: part.roles.launch & part.process)
    lasts = trace.dur_ns[calls[profile.begins_in_counted(calls)]]
    if not len(lasts):
        return 0.0
    usual = float(np.median(lasts))
    held_up = float((lasts[lasts > max(_FAR_LONGER * usual, _LONG_NS)] - usual).sum()) / profile.counted_steps
    return held_up if held_up >= LEAST_SHARE * sum(profile.parts.values()) else 0.0


def _sentence(profile: Profile, summary: pa.Table) -> str:
    trace = profile.trace
    if why_unknown := why_calls_unknown(trace):
        return f"Cannot be answered: {why_unknown}."
    if _no_gpu(trace):
        readers = float(summary["per_step"].to_numpy().sum())
        return (
            f"No work of a GPU was recorded, but {many(readers, 'operator')} a step "
            f"read{'s' if readers == 1 else ''} a value back; on a GPU each would wait."
            if readers
            else "No work of a GPU was recorded, and no operator would wait for it."
        )
    if not len(summary):
        if not (held_up := _held_up(profile)):
            return "The host never waits for the GPU."
        return (
            f"No sync; but launch calls that take far longer than usual hold up the host for {duration(held_up)} a "
            "step: they may wait for room in a full queue."
        )
    number, wait = (float(summary[name].to_numpy().sum()) for name in ("per_step", "wait_ns"))
    if not number:
        outside = int(summary["count"].to_numpy().sum())
        return f"No sync falls in a counted step; {count(outside)} {'falls' if outside == 1 else 'fall'} outside."
    syncs, waits = many(number, "sync"), f"the host waits {duration(wait)} in {'it' if number == 1 else 'them'}"
    if summary["stall_ns"].null_count == len(summary):
        return f"{syncs} a step; {waits}, and what that cost the GPU is unknown."
    stall = float(np.nansum(summary["stall_ns"].to_numpy(zero_copy_only=False)))
    if not stall:
        return f"The GPU never idles because of {syncs} a step; {waits}."
    return f"The GPU idles for {duration(stall)} a step because of {syncs}; {waits}."
