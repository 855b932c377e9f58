"""What is a run held to? A budget: limits by variant and metric, written by hand in TOML. Or an earlier run: is the run
as good as that one, variant by variant, and did both run the same thing?
"""

import math
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import NormalDist

from msgspec import Struct
from msgspec.structs import replace

from tracekit.base.units import duration, percent
from tracekit.errors.asking import BudgetError
from tracekit.errors.reading import NoSuchFileError, UnreadableFileError
from tracekit.gate.metrics import METRICS, NS_PER_MS, ONE_PASS, Reading
from tracekit.gate.rows import Demand, Row, judged, unanswered
from tracekit.profile import Member, Subject, Untraced
from tracekit.report.comparability import different_things
from tracekit.run.contrast import contrast_of_captures, fastest_logs, prior_of_captures
from tracekit.run.pace import comparable, drift
from tracekit.statistics.uncertainty import LARGEST_LOG, SURE, TOLERANCE, margin, margin_of_passes

_KEYS = ("allow_unanswered", "variant")  # of a budget
_COUNTS = ("recompiles", "graph_breaks", "syncs")
_MIN_DIFFERENCE_TO_REPORT = 0.005  # of the step time: less hardly shows in its figures
_FAR_APART = 2  # as large is the drift between captures, compared with that within one: 1.4 right after each other
_EXACT = ("recompiles", "graph_breaks")  # counts of the whole run; counts per step vary with the batches


class Budget(Struct, frozen=True):
    """Upper limits, by variant and metric."""

    limits: dict[str, dict[str, float]]
    allow_unanswered: frozenset[str] = frozenset()


def read_budget(path: Path) -> Budget:
    """Read a budget. Raises NoSuchFileError, UnreadableFileError or BudgetError."""
    try:
        with path.open("rb") as file:
            content = tomllib.load(file)
    except FileNotFoundError:
        raise NoSuchFileError(path) from None
    except OSError as error:
        raise UnreadableFileError(path, error.strerror or "failed") from None
    except (ValueError, RecursionError) as error:  # ValueError also of numbers with thousands of digits
        raise BudgetError(path, f"it is not TOML ({error})") from None
    for key in content:
        if key not in _KEYS:
            raise BudgetError(path, f"{key!r} is not a key of a budget: it has [variant.NAME] and allow_unanswered")
    variants = content.get("variant")
    if not isinstance(variants, dict) or not variants:
        raise BudgetError(path, "it limits nothing: write [variant.NAME] and below it, for example, wall_ms = 12.5")
    for variant, table in variants.items():
        if not isinstance(table, dict):
            raise BudgetError(path, f"variant.{variant} is not a table: write [variant.{variant}]")
        for metric, limit in table.items():
            _check_metric(path, metric)
            is_number = isinstance(limit, int | float) and not isinstance(limit, bool)
            if not is_number or not (0 <= limit <= sys.float_info.max or limit == math.inf):
                raise BudgetError(path, f"{metric} of {variant} is not a number of at least 0")
    limits = {name: {metric: float(limit) for metric, limit in table.items()} for name, table in variants.items()}
    allowed = content.get("allow_unanswered", [])
    if not isinstance(allowed, list) or not all(isinstance(name, str) for name in allowed):
        raise BudgetError(path, 'allow_unanswered is not a list of metrics: write allow_unanswered = ["syncs"]')
    for metric in allowed:
        _check_metric(path, metric)
    return Budget(limits, frozenset(allowed))


def _check_metric(path: Path, metric: str) -> None:
    if metric not in METRICS:
        raise BudgetError(path, f"{metric!r} is not a metric. Available: {', '.join(METRICS)}")


def within(subject: Subject, budget: Budget, demand: Demand | None = None) -> list[Row]:
    """A row for each limit of the budget, which may also allow metrics to stay unknown."""
    demand = demand or Demand()
    demand = replace(demand, allow=demand.allow | budget.allow_unanswered)
    members = {member.name: member for member in subject.known}
    rows = []
    for variant, limits in budget.limits.items():
        member = members.get(variant)
        for metric, limit in limits.items():
            if member is None:
                why = f"there is no such variant, only {', '.join(members)}"
                rows.append(unanswered(variant, metric, limit, why, demand))
            else:
                rows.append(judged(variant, metric, limit, METRICS[metric](member), demand, reference=limit))
    return rows


def against(new: Subject, old: Subject, metrics: Sequence[str] = (), demand: Demand | None = None) -> list[Row]:
    """A row for each variant of the earlier run and each metric.

    The limit is the earlier value plus the tolerance; for recompilations and graph breaks, it is the earlier number. By
    default, the metrics are the unprofiled step time, or else the wall time, and the counts that the earlier run has.
    """
    demand = demand or Demand()
    rows = []
    for before, after in pairs(new, old):
        measured = before.variant is not None and before.variant.measured is not None
        times = [] if isinstance(before, Untraced) and not measured else ["step_ms" if measured else "wall_ms"]
        counts = [name for name in _COUNTS if METRICS[name](before).value is not None] if not metrics else []
        for metric in metrics or (*times, *counts):
            earlier = METRICS[metric](before)
            if earlier.value is None:
                why = f"the earlier run cannot answer it: {earlier.why}"
                rows.append(unanswered(before.name, metric, None, why, demand))
                continue
            limit = earlier.value * (1 if metric in _EXACT else 1 + demand.tolerance)
            if after is None:
                rows.append(unanswered(before.name, metric, limit, "this variant no longer exists", demand))
                continue
            reading = _reading(metric, after, before, earlier)
            rows.append(judged(before.name, metric, limit, reading, demand, reference=earlier.value))
    return rows


def pairs(new: Subject, old: Subject) -> Iterator[tuple[Member, Member | None]]:
    """Each variant of the earlier run, and the same variant of the later one; None if it no longer exists."""
    members = {member.name: member for member in new.known}
    if len(members) == len(old.known) == 1:  # two bare traces: their names are those of their files
        members = {old.known[0].name: new.known[0]}
    for before in old.known:
        yield before, members.get(before.name)


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
    assert reading.value is not None
    compared = contrast_of_captures(measured_after, measured_before, SURE)
    if compared.interval is None:
        return Reading(reading.value, why=ONE_PASS, margin=None, certain=False)
    now, earlier = (member.run.environment if member.run is not None else {} for member in (after, before))
    threads, earlier_threads = now.get("threads"), earlier.get("threads")
    if threads != earlier_threads and "threads_chosen" in now | earlier:  # only one left a core to other work
        why = f"its steps ran with --threads {threads}, those of the earlier run with --threads {earlier_threads}"
        return Reading(reading.value, why=f"{why}: capture both alike", margin=None, certain=False)
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
    drift_within = max(drift(measured, measured) for measured in (measured_after, measured_before))
    far_apart = drifted >= TOLERANCE and between > _FAR_APART * drift_within
    step_text, ratio = duration(reading.value * NS_PER_MS), reading.value / (compared.ratio * base)
    remarks = []  # why the value is not the step time of the run, and what its machine may have done to it
    if compared.slower != 1:
        pace = f"{percent(abs(compared.slower - 1))} {'slower' if compared.slower > 1 else 'faster'}"
        remarks.append(f"judging by two yardsticks, its machine was {pace} for such steps")
    if drifted >= TOLERANCE:
        change = percent(drifted)
        remarks.append(f"a machine as unsteady as this one may change such steps by {change} in the time between")
    if abs(math.log(ratio)) >= _MIN_DIFFERENCE_TO_REPORT:
        remarks.append(f"captures are compared by their fastest turns; over all turns, a step takes {step_text}")
    factor = math.exp(min(log_margin, LARGEST_LOG))
    return Reading(compared.ratio * base, interval, factor=factor, remark="; ".join(remarks), far_apart=far_apart)


def differences(new: Subject, old: Subject) -> list[str]:
    """A sentence for each of recipe, parameters, data, device and threads in which a variant differs from the earlier
    one."""
    names_by_sentence: dict[str, list[str]] = {}
    for before, after in pairs(new, old):
        if after is None:
            continue
        changes = [*different_things(after, before)]
        threads, earlier_threads = (
            member.run.environment.get("threads") if member.run else None for member in (after, before)
        )
        if threads and earlier_threads and threads != earlier_threads:
            changes.append(("number of threads", str(threads), str(earlier_threads)))
        if all(aspect != "recipe" for aspect, _, _ in changes):  # parameters of two recipes cannot be compared
            params = [_params(after), _params(before)]
            differing = [key for key in params[0] | params[1] if params[0].get(key) != params[1].get(key)]
            if differing:
                now, earlier = (", ".join(f"{key}={values.get(key, 'none')}" for key in differing) for values in params)
                changes.append(("set of parameters", now, earlier))
        for aspect, now, earlier in changes:
            sentence = f"a different {aspect} than in the earlier run ({now}; {earlier})"
            names_by_sentence.setdefault(sentence, []).append(before.name)
    return [
        f"{', '.join(names)}: {text}: that alone may make it slower or faster"
        for text, names in names_by_sentence.items()
    ]


def _params(member: Member) -> dict[str, object]:
    """The parameters of its run together with its own."""
    run = member.run.params if member.run is not None else {}
    return {**run, **(member.variant.params if member.variant is not None else {})}
