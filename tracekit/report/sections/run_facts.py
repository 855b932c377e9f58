"""What did a run measure of its variants beside their traces?"""

from dataclasses import dataclass

import pyarrow as pa

from tracekit.profile import Member
from tracekit.report.blocks import Table
from tracekit.report.model import Report
from tracekit.report.registry import of_run
from tracekit.report.section import Contents
from tracekit.run import loss_tolerance
from tracekit.run_facts import (
    break_even_steps,
    break_even_within_noise,
    cold_cost_ns,
    contrast_of,
    inflation_of,
    loss_difference,
    records_graphs,
    tolerance_of,
)
from tracekit.trace.schema import column
from tracekit.units import count, duration, rate, ratio, size
from tracekit.unprofiled import compared, step_interval

_TELLING_PASSES = 3  # from two passes an interval is some thirty times as wide as their difference


@of_run("run_facts", "The run", rank=40, stage="lead")
def run_facts(report: Report) -> Contents | None:
    """A line per fact, a column per variant; each is set against its own baseline."""
    values: dict[str, dict[str, str]] = {}
    for base, group in report.groups:
        for fact in facts(group, base):
            values.setdefault(fact.label, {}).update(fact.values)
    if not values:
        return None
    names = [member.name for member in report.members]
    schema = pa.schema(
        [column("", pa.string(), "what was measured"), *(column(n, pa.string(), "", role="figure") for n in names)]
    )
    rows = [{"": label, **{name: of.get(name) for name in names}} for label, of in values.items()]
    return Contents((Table("run_facts", pa.Table.from_pylist(rows, schema=schema), exported=False),))


@dataclass(frozen=True)
class Fact:
    """One line about every variant. `values` has the text by variant, without those of which nothing is known."""

    label: str
    values: dict[str, str]
    meaning: str


def facts(members: list[Member], baseline: Member) -> list[Fact]:
    """The lines that a run adds to the report; none for bare traces."""
    if not any(member.variant for member in members):
        return []
    lines = (
        (
            "step, unprofiled",
            _step_time,
            "middle of its passes' medians, 95 % interval; of one pass the median, half the spread between quartiles",
        ),
        ("throughput", _throughput, "steps in a second at the unprofiled step time"),
        ("against the baseline", lambda p: _against(p, baseline), "ratio of the unprofiled step times, 95 % interval"),
        ("step, profiled", _profiled, "mean of the trace, and how much slower than unprofiled"),
        ("first step", _first, "unprofiled, compilation included"),
        ("compiling cost", _cold_cost, "what the first steps took beyond as many steady ones"),
        ("steps to break even", lambda p: _pay_back(p, baseline), "until the faster steps have made up for compiling"),
        ("mode", _mode, "requested, and effective where it differs"),
        ("peak GPU memory", _memory, "allocated (reserved) in the unprofiled pass, once it had settled"),
        ("GPU under load", _gpu, "clock and power right after the timed steps, of the highest allowed"),
        ("peak host memory", _host_memory, "resident set of the unprofiled pass"),
        (
            "loss against the baseline",
            lambda p: _losses(p, baseline),
            "largest relative difference over the check steps; rounding explains 1e-4, or thrice what it does to eager",
        ),
        ("metric", _metric, "the recipe's own, after the check steps"),
    )
    every = [
        Fact(label, {p.name: text for p in members if (text := tell(p)) is not None}, meaning)
        for label, tell, meaning in lines
    ]
    return [fact for fact in every if fact.values]


def _step_time(member: Member) -> str | None:
    measured = member.variant.measured if member.variant else None
    if measured is None:
        return None
    step = duration(measured.step_ns)
    interval = step_interval(measured)
    if interval and len(measured.counted) >= _TELLING_PASSES:
        low, high = (duration(end, like=measured.step_ns) for end in interval)
        return f"{step} ({low} … {high})"
    return f"{step} ± {duration(measured.spread_ns / 2)}" if measured.steps > 1 else step  # a single step has none


def _throughput(member: Member) -> str | None:
    measured = member.variant.measured if member.variant else None
    return f"{rate(1e9 / measured.step_ns)} steps/s" if measured is not None and measured.step_ns else None


def _against(member: Member, baseline: Member) -> str | None:
    compared_with = contrast_of(member, baseline)
    return compared(compared_with) if compared_with is not None else None


def _profiled(member: Member) -> str | None:
    mean, inflation = member.means["wall"], inflation_of(member)
    if mean is None:
        return None
    return f"{duration(mean.step_ns)} ({ratio(inflation)})" if inflation is not None else duration(mean.step_ns)


def _first(member: Member) -> str | None:
    measured = member.variant.measured if member.variant else None
    return duration(measured.first_steps_ns[0]) if measured and measured.first_steps_ns else None


def _cold_cost(member: Member) -> str | None:
    cost = cold_cost_ns(member.variant)
    compiled = member.variant is not None and member.variant.requested.compile
    return duration(cost) if cost is not None and compiled else None


def _pay_back(member: Member, baseline: Member) -> str | None:
    if break_even_within_noise(member, baseline):
        return "cannot be said: within noise"
    steps = break_even_steps(member, baseline)
    if steps is None:
        return None
    return "never: its steps are no faster" if steps == float("inf") else count(round(steps))


def _mode(member: Member) -> str | None:
    if member.variant is None:
        return None
    requested, got = member.variant.requested, member.variant.effective.mode
    if not requested.compile:
        return "eager"
    text = f"{requested.mode or 'default'}{'' if requested.dynamic is None else f', dynamic={requested.dynamic}'}"
    return text if got in (None, requested.mode or "default") else f"{text} → {got}"


def _memory(member: Member) -> str | None:
    memory = member.variant.memory if member.variant else None
    if memory is None or memory.peak_allocated_bytes is None:
        return None
    if records_graphs(member.variant):
        return f"{size(memory.peak_reserved_bytes)} reserved, its CUDA graphs' own among it"
    return f"{size(memory.peak_allocated_bytes)} ({size(memory.peak_reserved_bytes)})"


def _gpu(member: Member) -> str | None:
    state = member.variant.gpu if member.variant else {}
    pairs = (("clocks.sm", "clocks.max.sm"), ("power.draw", "power.limit"))
    parts = [f"{state[is_]} of {state[most]}" for is_, most in pairs if is_ in state and most in state]
    return ", ".join(parts) or None


def _host_memory(member: Member) -> str | None:
    memory = member.variant.memory if member.variant else None
    return size(memory.host_peak_rss_bytes) if memory and memory.host_peak_rss_bytes else None


def _losses(member: Member, baseline: Member) -> str | None:
    off = loss_difference(member, baseline)
    if off is None:
        return None
    tolerance = tolerance_of(member, baseline)
    if off > tolerance:
        return f"differs by {off:.1e}, more than the {tolerance:.0e} of rounding"
    if off > loss_tolerance():
        return f"the same but for rounding ({off:.1e} of up to {tolerance:.0e})"
    return f"the same (within {off:.0e})" if off else "the same"


def _metric(member: Member) -> str | None:
    metrics = member.variant.metrics if member.variant else {}
    return ", ".join(f"{key} {value:.3f}" for key, value in metrics.items() if value is not None) or None
