"""Is a run as good as an earlier one, variant by variant, and did both run the same thing?"""

import math
from collections.abc import Iterator, Sequence
from statistics import NormalDist

from tracekit.base.units import duration, percent
from tracekit.gate.metrics import METRICS, NS_PER_MS, ONE_PASS, Reading
from tracekit.gate.rows import Demand, Row, judged, unanswered
from tracekit.profile import Member, Subject, Untraced
from tracekit.report.comparability import different_things
from tracekit.run.contrast import Contrast, contrast_of_captures, fastest_logs, prior_of_captures
from tracekit.run.pace import comparable, drift
from tracekit.statistics.uncertainty import LARGEST_LOG, SURE, TOLERANCE, margin, margin_of_passes

_COUNTS = ("recompiles", "graph_breaks", "syncs")
_MIN_DIFFERENCE_TO_REPORT = 0.005  # of the step time: less hardly shows in its figures
_FAR_APART = 2  # as large is the drift between captures, compared with that within one: 1.4 right after each other
_EXACT = ("recompiles", "graph_breaks")  # counts of the whole run; counts per step vary with the batches


def against(new: Subject, old: Subject, metrics: Sequence[str] = (), demand: Demand | None = None) -> list[Row]:
    """A row for each variant of the earlier run and each metric.

    The limit is the earlier value plus the tolerance; for recompilations and graph breaks, it is the earlier number. By
    default, the metrics are the unprofiled step time, or else the wall time, and the counts that the earlier run has.
    """
    return [
        _row(metric, before, after, demand or Demand())
        for before, after in pairs(new, old)
        for metric in metrics or _worth_checking(before)
    ]


def pairs(new: Subject, old: Subject) -> Iterator[tuple[Member, Member | None]]:
    """Each variant of the earlier run, and the same variant of the later one; None if it no longer exists."""
    members = {member.name: member for member in new.known}
    if len(members) == len(old.known) == 1:  # two bare traces: their names are those of their files
        members = {old.known[0].name: new.known[0]}
    for before in old.known:
        yield before, members.get(before.name)


def _row(metric: str, before: Member, after: Member | None, demand: Demand) -> Row:
    earlier = METRICS[metric](before)
    if earlier.value is None:
        return unanswered(before.name, metric, None, f"the earlier run cannot answer it: {earlier.why}", demand)
    limit = earlier.value * (1 if metric in _EXACT else 1 + demand.tolerance)
    if after is None:
        return unanswered(before.name, metric, limit, "this variant no longer exists", demand)
    reading = _reading(metric, after, before, earlier)
    return judged(before.name, metric, limit, reading, demand, reference=earlier.value)


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
    half = math.hypot(reading.interval[1] - reading.value, earlier.interval[1] - earlier.value)
    interval = (max(reading.value - half, 0.0), reading.value + half)
    if reading.margin is None or earlier.margin is None:
        return Reading(reading.value, interval, reading.why or earlier.why, margin=None)
    return Reading(reading.value, interval, margin=math.hypot(reading.margin, earlier.margin))


def _by_passes(after: Member, before: Member, reading: Reading) -> Reading:
    """The reading from the passes of both runs."""
    assert after.variant is not None
    assert before.variant is not None
    measured_after, measured_before = after.variant.measured, before.variant.measured
    assert measured_after is not None
    assert measured_before is not None
    compared = contrast_of_captures(measured_after, measured_before, SURE)
    if compared.interval is None:
        return Reading(reading.value, why=ONE_PASS, margin=None, certain=False)
    if why := _other_threads_chosen(after, before):
        return Reading(reading.value, why=why, margin=None, certain=False)
    base = measured_before.step_ns / NS_PER_MS
    interval = (compared.interval[0] * base, compared.interval[1] * base)

    def half_width(confidence: float) -> float:
        ends = contrast_of_captures(measured_after, measured_before, confidence).interval
        return math.inf if ends is None else math.log(ends[1] / ends[0]) / 2

    log_margin = margin(half_width)
    if measured_after.passes == measured_before.passes:
        # A run against itself: that its passes equal themselves says nothing about others.
        (logs,) = map(fastest_logs, comparable(measured_after))
        log_margin = margin_of_passes(
            logs, logs, prior_of_captures(measured_after), drift(measured_after, measured_after)
        )
    between = drift(measured_after, measured_before)
    drifted = math.expm1(between * NormalDist().inv_cdf((1 + SURE) / 2))
    within = max(drift(measured, measured) for measured in (measured_after, measured_before))
    far_apart = drifted >= TOLERANCE and between > _FAR_APART * within
    remark = "; ".join(_remarks(compared, drifted, base, reading.value))
    factor = math.exp(min(log_margin, LARGEST_LOG))
    return Reading(compared.ratio * base, interval, factor=factor, remark=remark, far_apart=far_apart)


def _remarks(compared: Contrast, drifted: float, base_ms: float, step_ms: float | None) -> Iterator[str]:
    """Why the value is not the step time of the run, and what its machine may have done to it."""
    if compared.slower != 1:
        slower = "slower" if compared.slower > 1 else "faster"
        yield f"judging by two yardsticks, its machine was {percent(abs(compared.slower - 1))} {slower} for such steps"
    if drifted >= TOLERANCE:
        yield f"a machine as unsteady as this one may change such steps by {percent(drifted)} in the time between"
    if step_ms is not None and abs(math.log(step_ms / (compared.ratio * base_ms))) >= _MIN_DIFFERENCE_TO_REPORT:
        step_text = duration(step_ms * NS_PER_MS)
        yield f"captures are compared by their fastest turns; over all turns, a step takes {step_text}"


def _other_threads_chosen(after: Member, before: Member) -> str:
    """Why their step times cannot be compared, if one capture left a core to other work and the other did not."""
    now, earlier = (member.run.environment if member.run is not None else {} for member in (after, before))
    if now.get("threads") == earlier.get("threads") or not {"threads_chosen"} & {*now, *earlier}:
        return ""
    ours, theirs = now.get("threads"), earlier.get("threads")
    return f"its steps ran with --threads {ours}, those of the earlier run with --threads {theirs}: capture both alike"


def differences(new: Subject, old: Subject) -> list[str]:
    """A sentence for each of recipe, parameters, data, device and threads in which a variant differs from the earlier
    one."""
    names_by_sentence: dict[str, list[str]] = {}
    for before, after in pairs(new, old):
        if after is not None:
            for aspect, now, earlier in _differing(after, before):
                names_by_sentence.setdefault(
                    f"a different {aspect} than in the earlier run ({now}; {earlier})", []
                ).append(before.name)
    return [
        f"{', '.join(names)}: {text}: that alone may make it slower or faster"
        for text, names in names_by_sentence.items()
    ]


def _differing(after: Member, before: Member) -> Iterator[tuple[str, str, str]]:
    changes = [*different_things(after, before)]
    threads, earlier_threads = (
        member.run.environment.get("threads") if member.run else None for member in (after, before)
    )
    if threads and earlier_threads and threads != earlier_threads:
        changes.append(("number of threads", str(threads), str(earlier_threads)))
    yield from changes
    if any(aspect == "recipe" for aspect, _, _ in changes):
        return  # their parameters cannot be compared
    params_after, params_before = _params(after), _params(before)
    if differing := [
        key for key in {**params_after, **params_before} if params_after.get(key) != params_before.get(key)
    ]:
        now, earlier = (
            ", ".join(f"{key}={params.get(key, 'none')}" for key in differing)
            for params in (params_after, params_before)
        )
        yield "set of parameters", now, earlier


def _params(member: Member) -> dict[str, object]:
    """The parameters of its run together with its own."""
    run = member.run.params if member.run is not None else {}
    return {**run, **(member.variant.params if member.variant is not None else {})}
