"""Is a run as good as an earlier one, variant by variant?"""

import math
from collections.abc import Iterator, Sequence

from tracekit.gate.metrics import METRICS, NS_PER_MS, SURE, Reading
from tracekit.gate.rows import Row, judged, unanswered
from tracekit.profile import Member, Subject, Untraced
from tracekit.unprofiled import contrast

TOLERANCE = 0.03  # of the earlier value: less is not worth a failure
_COUNTS = ("recompiles", "graph_breaks", "syncs")
_EXACT = ("recompiles", "graph_breaks")  # counts of the whole run; counts per step vary with the batches


def against(
    new: Subject,
    old: Subject,
    metrics: Sequence[str] = (),
    tolerance: float = TOLERANCE,
    allow: frozenset[str] = frozenset(),
) -> list[Row]:
    """A row for each variant of the earlier run and each metric.

    The limit is the earlier value plus `tolerance`; for recompilations and graph breaks, it is the earlier number. By
    default, the metrics are the unprofiled step time, or else the wall time, and the counts that the earlier run has.
    """
    return list(_rows(new, old, metrics, tolerance, allow))


def pairs(new: Subject, old: Subject) -> Iterator[tuple[Member, Member | None]]:
    """Each variant of the earlier run, and the same variant of the later one; None if it no longer exists."""
    members = {member.name: member for member in new.known}
    if len(members) == len(old.known) == 1:  # two bare traces: their names are those of their files
        members = {old.known[0].name: new.known[0]}
    for before in old.known:
        yield before, members.get(before.name)


def _rows(new: Subject, old: Subject, metrics: Sequence[str], tolerance: float, allow: frozenset[str]) -> Iterator[Row]:
    for before, after in pairs(new, old):
        for metric in metrics or _worth_checking(before):
            earlier = METRICS[metric](before)
            if earlier.value is None:
                why = f"the earlier run cannot answer it: {earlier.why}"
                yield unanswered(before.name, metric, None, why, metric in allow)
                continue
            limit = earlier.value * (1 if metric in _EXACT else 1 + tolerance)
            if after is None:
                yield unanswered(before.name, metric, limit, "this variant no longer exists", metric in allow)
            else:
                yield judged(before.name, metric, limit, _reading(metric, after, before, earlier), metric in allow)


def _worth_checking(member: Member) -> list[str]:
    measured = member.variant is not None and member.variant.measured is not None
    step_time = [] if isinstance(member, Untraced) and not measured else ["step_ms" if measured else "wall_ms"]
    return [*step_time, *(name for name in _COUNTS if METRICS[name](member).value is not None)]


def _reading(metric: str, after: Member, before: Member, earlier: Reading) -> Reading:
    """The reading of the later run, whose interval covers the uncertainty of both runs."""
    reading = METRICS[metric](after)
    if reading.value is None or reading.interval is None or earlier.interval is None:
        return reading
    if metric == "step_ms":
        return _by_passes(after, before, reading)
    assert earlier.value is not None
    half = math.hypot(reading.value - reading.interval[0], earlier.interval[1] - earlier.value)
    return Reading(reading.value, (max(reading.value - half, 0.0), reading.value + half))


def _by_passes(after: Member, before: Member, reading: Reading) -> Reading:
    """The reading from the passes of both runs."""
    assert after.variant is not None
    assert before.variant is not None
    ours, theirs = after.variant.measured, before.variant.measured
    assert ours is not None
    assert theirs is not None
    interval = contrast(ours, theirs, SURE).interval
    if interval is None:
        return Reading(None, why="with a single step on either side, a difference cannot be distinguished from noise")
    base = theirs.step_ns / NS_PER_MS
    return Reading(reading.value, (interval[0] * base, interval[1] * base))
