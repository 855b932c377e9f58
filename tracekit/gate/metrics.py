"""The metrics that can be limited, and their readings: a value and its interval, or why it cannot be answered."""

import math
import statistics
from collections.abc import Callable

import numpy as np
from msgspec import Struct

from tracekit.analyses import summary
from tracekit.engine.buckets import HOST, WALL
from tracekit.profile import Member, Untraced
from tracekit.run import Ledger
from tracekit.run.contrast import cold_cost_ns, prior_of_passes, step_interval
from tracekit.statistics.uncertainty import (
    LARGEST_LOG,
    SURE,
    Interval,
    half_width_of_mean,
    half_width_of_typical,
    interval_of_median,
    margin,
)

NS_PER_MS = 1e6
ONE_PASS = "one pass does not show how much passes differ"
FEW_PASSES = "its passes differ so much that more are needed"


class Reading(Struct, frozen=True):
    """A metric of a variant, in the metric's own unit, or None and the reason if it cannot be answered.

    A value is certain to be seen beyond a limit if it is above `factor × limit + margin`; a margin of None is unknown,
    and `why` says why.
    """

    value: float | None
    interval: Interval | None = None  # None: it is exact or, if the margin is None, nothing is known of its certainty
    why: str = ""
    factor: float = 1.0
    margin: float | None = 0.0
    remark: str = ""  # on the value
    certain: bool = True  # False: however high it is, it is not beyond a limit for certain
    far_apart: bool = False  # the captures are, on an unsteady machine: more passes alone would not show more

    def visible(self, limit: float) -> float | None:
        """The smallest value that would be seen to exceed the limit; None if that is unknown."""
        return None if self.margin is None else self.factor * limit + self.margin


Read = Callable[[Member], Reading]


def _step(member: Member) -> Reading:
    """The unprofiled step time, which is the one to quote."""
    measured = member.variant.measured if member.variant is not None else None
    if measured is None:
        return Reading(None, why="its unprofiled step time was not measured")
    step_ms = measured.step_ns / NS_PER_MS
    interval = step_interval(measured, SURE)
    if interval is None:
        low, high = interval_of_median(measured.step_all_ns)
        low, high = min(low, measured.step_ns), max(high, measured.step_ns)  # if steps are not alike, it is their mean
        another_pass = math.exp(min(half_width_of_mean([0.0], SURE, prior_of_passes(measured)), LARGEST_LOG))
        ends = low / another_pass / NS_PER_MS, high * another_pass / NS_PER_MS
        return Reading(step_ms, ends, ONE_PASS if len(measured.counted_passes) < 2 else FEW_PASSES, margin=None)
    logs = [math.log(measured_pass.step_ns) for measured_pass in measured.counted_passes]
    prior = prior_of_passes(measured)
    factor = math.exp(min(margin(lambda confidence: half_width_of_typical(logs, confidence, prior)), LARGEST_LOG))
    return Reading(step_ms, (interval[0] / NS_PER_MS, interval[1] / NS_PER_MS), factor=factor)


def _of_view(name: str, key: str | None) -> Read:
    """The time of a step in that view, or of one of its buckets, under the profiler."""

    def read(member: Member) -> Reading:
        if isinstance(member, Untraced):
            return Reading(None, why=f"it has no trace ({member.outcome})")
        view, answered = member.views[name], member.answered[name]
        if not answered.any():
            return Reading(None, why=member.why_unanswered(name))
        steps_ns = view.totals[answered]
        steps_ns = steps_ns.sum(axis=1) if key is None else steps_ns[:, view.keys.index(key)]
        steps_ms = (steps_ns / NS_PER_MS).tolist()
        mean = statistics.fmean(steps_ms)
        measured = member.variant.measured if member.variant is not None else None
        logs = []  # of the times of a step in each pass
        if measured is not None:
            times = [measured_pass.step_ns for measured_pass in measured.counted_passes] or [measured.step_ns]
            logs = [math.log(step_ns) for step_ns in times]

        def half_width(confidence: float) -> float:
            """How much steps vary, and how far another pass may be from the mean of those measured."""
            of_steps = half_width_of_mean(steps_ms, confidence) if len(steps_ms) > 1 else 0.0
            if measured is None:
                return of_steps
            of_pass = half_width_of_mean(logs, confidence, prior_of_passes(measured)) * math.sqrt(len(logs) + 1)
            return math.hypot(of_steps, mean * of_pass)

        interval = (max(mean - half_width(SURE), 0.0), mean + half_width(SURE))
        if len(logs) < 2:
            why = ONE_PASS if logs else "one trace does not show how much runs differ"
            return Reading(mean, interval, why, margin=None)
        return Reading(mean, interval, margin=margin(half_width))

    return read


def _of_ledger(count: Callable[[Ledger], float]) -> Read:
    """A count of what the compiler did."""

    def read(member: Member) -> Reading:
        if member.variant is None:
            return Reading(None, why="a bare trace does not say what was compiled: only a capture's run does")
        return Reading(count(member.variant.ledger))

    return read


def _per_step(analysis: str) -> Read:
    """Calls per counted step, as in the report's section of that name."""

    def read(member: Member) -> Reading:
        if isinstance(member, Untraced):
            return Reading(None, why=f"it has no trace ({member.outcome})")
        answer = summary(member, analysis)
        if answer.status == "unanswered":
            return Reading(None, why=answer.sentence)
        return Reading(float(np.nansum(np.array(answer.table["per_step"].to_pylist(), float))))

    return read


def _compile_cost(member: Member) -> Reading:
    cost = cold_cost_ns(member.variant)
    if cost is None:
        return Reading(None, why="its compile cost was not measured")
    return Reading(cost / 1e9, why="it was measured once, which does not show how much it varies", margin=None)


def _memory(member: Member) -> Reading:
    peak = member.variant.memory.peak_allocated_bytes if member.variant is not None else None
    return Reading(None, why="its GPU memory was not measured") if peak is None else Reading(peak / 2**20)


METRICS: dict[str, Read] = {
    "step_ms": _step,
    "wall_ms": _of_view("wall", None),
    "host_ms": _of_view("host", None),
    **{f"{key}_ms": _of_view("wall", key) for key in WALL},
    **{f"host_{key}_ms": _of_view("host", key) for key in HOST},
    "recompiles": _of_ledger(lambda ledger: ledger.recompiles),
    "graph_breaks": _of_ledger(lambda ledger: ledger.break_places),
    "fallbacks": _of_ledger(lambda ledger: len(ledger.limits) + len(ledger.skips)),
    "syncs": _per_step("syncs"),
    "launches": _per_step("launches"),
    "compile_cost_s": _compile_cost,
    "peak_allocated_mib": _memory,
}
