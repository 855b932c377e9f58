"""What must a reader know besides the figures of the traces: what the run measured about its variants without one,
under which conditions they were captured, which files the numbers come from, and what limits them?
"""

import pyarrow as pa
from msgspec import Struct

from tracekit.base.units import count, duration, rate, ratio, size
from tracekit.profile import Member
from tracekit.profile.names import path_as_text
from tracekit.profile.run_facts import (
    SPREAD_EPOCHS,
    break_even_doubt,
    break_even_steps,
    contrast_of,
    epoch_ns,
    epoch_with_compiling_ns,
    gradients_differ,
    inflation_of,
    loss_difference,
    records_graphs,
    tolerance_of,
)
from tracekit.report.blocks import Notes, Sentences, Table
from tracekit.report.comparability import described
from tracekit.report.model import Report
from tracekit.report.notes import merged
from tracekit.report.section import Contents, of_run
from tracekit.run import divergence, loss_tolerance
from tracekit.run.contrast import compared, compiling_cost, otherwise, processor_ns, step_interval
from tracekit.trace.schema import column

CONDITIONS = pa.schema(
    [
        column("variant", pa.string(), "variant that it applies to; null for the whole run", role="name"),
        column("run", pa.string(), "the run; null for a bare trace", role="name"),
        column("condition", pa.string(), "name of the condition"),
        column("value", pa.string(), "its value", role="place"),
    ]
)
_SUMMARY_KEYS = ("recipe", "data", "parameters", "captured", "torch")  # characters of one value


@of_run("run_facts", "The run", rank=40, stage="lead")
def run_facts(report: Report) -> Contents | None:
    """A line per fact, a column per variant; each is compared with its own baseline."""
    values: dict[str, dict[str, str]] = {}
    for base, group in report.groups:
        for fact in facts(group, base):
            values.setdefault(fact.label, {}).update(fact.values)
    if not values:
        return None
    names = [member.name for member in report.members]
    schema = pa.schema(
        [
            column("", pa.string(), "what was measured"),
            *(column(n, pa.string(), "", role="figure", title=n) for n in names),
        ]
    )
    rows = [{"": label, **{name: fact_values.get(name) for name in names}} for label, fact_values in values.items()]
    return Contents((Table("run_facts", pa.Table.from_pylist(rows, schema=schema), exported=False),))


class Fact(Struct, frozen=True):
    """One line about every variant. `values` has the text by variant, without those of which nothing is known."""

    label: str
    values: dict[str, str]


def facts(members: list[Member], baseline: Member) -> list[Fact]:
    """The lines that a run adds to the report; none for bare traces."""
    if not any(member.variant for member in members):
        return []
    lines = (
        ("step, unprofiled", _step_time),
        ("processor time of a step", _processor_time),
        ("epoch", _epoch),
        ("epoch, with compiling", _epoch_with_compiling),
        ("throughput", _throughput),
        ("against the baseline", lambda p: _against(p, baseline)),
        ("by its own processor time", lambda p: _by_thread(p, baseline)),
        ("step, profiled", _profiled),
        ("first step", _first),
        ("compiling cost", _cold_cost),
        ("steps to break even", lambda p: _pay_back(p, baseline)),
        ("mode", _mode),
        ("peak GPU memory", _memory),
        ("GPU under load", _gpu),
        ("peak host memory", _host_memory),
        ("memory above start", _above_start),
        ("loss against the baseline", lambda p: _losses(p, baseline)),
        ("gradients against the baseline", lambda p: _gradients(p, baseline)),
        ("metric", _metric),
    )
    all_facts = [Fact(label, {p.name: text for p in members if (text := tell(p)) is not None}) for label, tell in lines]
    return [fact for fact in all_facts if fact.values]


def _step_time(member: Member) -> str | None:
    """The middle of its passes with a 95 % interval; for a single pass, its step ± half the interquartile range."""
    measured = member.variant.measured if member.variant else None
    if measured is None:
        return None
    step = duration(measured.step_ns)
    interval = step_interval(measured)
    if interval is not None:
        low, high = (duration(end, like=measured.step_ns) for end in interval)
        return f"{step} ({low} … {high})"
    return f"{step} ± {duration(measured.spread_ns / 2)}" if measured.steps > 1 else step  # a single step has none


def _processor_time(member: Member) -> str | None:
    """That of all threads together, in turns: other work on the machine hardly changes it."""
    worked_ns = processor_ns(member.variant.measured) if member.variant and member.variant.measured else None
    return duration(worked_ns) if worked_ns is not None else None


def _epoch(member: Member) -> str | None:
    """As many steps as there are batches, at the unprofiled step time."""
    epoch = epoch_ns(member.variant)
    steps = member.variant.measured.epoch_steps if member.variant and member.variant.measured else None
    return f"{duration(epoch)} ({count(steps)} steps)" if epoch is not None and steps and steps > 1 else None


def _epoch_with_compiling(member: Member) -> str | None:
    """The slower start spread over the epochs that are trained, or else over 100."""
    epochs = (member.run.epochs if member.run is not None else 0) or SPREAD_EPOCHS
    spread = epoch_with_compiling_ns(member.variant, epochs)
    if spread is None or member.variant is None or not member.variant.requested.compile:
        return None
    return f"{duration(spread)} over {count(epochs)}"


def _throughput(member: Member) -> str | None:
    """Steps in a second at the unprofiled step time."""
    measured = member.variant.measured if member.variant else None
    return f"{rate(1e9 / measured.step_ns)} steps/s" if measured is not None and measured.step_ns else None


def _against(member: Member, baseline: Member) -> str | None:
    """The ratio of the unprofiled step times, with a 95 % interval."""
    compared_with = contrast_of(member, baseline)
    return compared(compared_with) if compared_with is not None else None


def _by_thread(member: Member, baseline: Member) -> str | None:
    """The same by the processor time of the thread that drives the steps, only where it disagrees."""
    ours, theirs = (side.variant.measured if side.variant else None for side in (member, baseline))
    if contrast_of(member, baseline) is None or ours is None or theirs is None:
        return None
    by_thread = otherwise(ours, theirs)
    return f"{compared(by_thread)}; the rest is waiting" if by_thread is not None else None


def _profiled(member: Member) -> str | None:
    """The mean of the trace, and how much slower than unprofiled."""
    mean, inflation = member.means["wall"], inflation_of(member)
    if mean is None:
        return None
    return f"{duration(mean.step_ns)} ({ratio(inflation)})" if inflation is not None else duration(mean.step_ns)


def _first(member: Member) -> str | None:
    """The first step, unprofiled, compilation included."""
    measured = member.variant.measured if member.variant else None
    return duration(measured.first_steps_ns[0]) if measured and measured.first_steps_ns else None


def _cold_cost(member: Member) -> str | None:
    """Compiling before the first step, and how much longer the first steps took than as many steady ones."""
    compiled = member.variant is not None and member.variant.requested.compile
    return compiling_cost(member.variant) if compiled else None


def _pay_back(member: Member, baseline: Member) -> str | None:
    """The number of steps until the faster steps have made up for compiling."""
    if doubt := break_even_doubt(member, baseline):
        return f"unknown: {doubt}"
    steps = break_even_steps(member, baseline)
    if steps is None:
        return None
    return "never: its steps are no faster" if steps == float("inf") else count(round(steps))


def _mode(member: Member) -> str | None:
    """The mode as requested, and as it took effect if that differs."""
    if member.variant is None:
        return None
    requested, got = member.variant.requested, member.variant.effective.mode
    if not requested.compile:
        return "eager"
    text = f"{requested.mode or 'default'}{'' if requested.dynamic is None else f', dynamic={requested.dynamic}'}"
    return text if got in (None, requested.mode or "default") else f"{text} → {got}"


def _memory(member: Member) -> str | None:
    """Allocated (reserved) in the unprofiled pass, once it had settled."""
    memory = member.variant.memory if member.variant else None
    if memory is None or memory.peak_allocated_bytes is None:
        return None
    if records_graphs(member.variant):
        return f"{size(memory.peak_reserved_bytes)} reserved, including the memory of its CUDA graphs"
    return f"{size(memory.peak_allocated_bytes)} ({size(memory.peak_reserved_bytes)})"


def _gpu(member: Member) -> str | None:
    """Clock and power right after the timed steps, and the highest allowed."""
    state = member.variant.gpu if member.variant else {}
    pairs = (("clocks.sm", "clocks.max.sm"), ("power.draw", "power.limit"))
    parts = [f"{state[current]} of {state[limit]}" for current, limit in pairs if current in state and limit in state]
    return ", ".join(parts) or None


def _host_memory(member: Member) -> str | None:
    """The resident set of the unprofiled pass."""
    memory = member.variant.memory if member.variant else None
    return size(memory.host_peak_rss_bytes) if memory and memory.host_peak_rss_bytes else None


def _above_start(member: Member) -> str | None:
    """The peak of the timed steps less what was held before the first."""
    above_start_bytes = member.variant.memory.above_start_bytes if member.variant else None
    return size(above_start_bytes) if above_start_bytes is not None else None


def _losses(member: Member, baseline: Member) -> str | None:
    """The largest relative difference over the check steps, compared with what rounding explains."""
    difference = loss_difference(member, baseline)
    if difference is None:
        return None
    tolerance = tolerance_of(member, baseline)
    if difference > tolerance:
        return f"differs by {difference:.1e}, more than rounding explains ({tolerance:.0e})"
    if difference > loss_tolerance():
        return f"the same except for rounding ({difference:.1e}, tolerance {tolerance:.0e})"
    return f"the same (within {difference:.0e})" if difference else "the same"


def _gradients(member: Member, baseline: Member) -> str | None:
    """Whether their norms differ by more than rounding explains."""
    ours, theirs = member.variant, baseline.variant
    if member is baseline or ours is None or theirs is None or divergence(theirs.gradients, ours.gradients) is None:
        return None
    return gradients_differ(member, baseline).replace("the norms of its gradients", "norms differ") or "the same norms"


def _metric(member: Member) -> str | None:
    """The recipe's own metrics after the check steps."""
    metrics = member.variant.metrics if member.variant else {}
    return ", ".join(f"{key} {value:.3f}" for key, value in metrics.items() if value is not None) or None


@of_run("conditions", "Conditions", rank=30, stage="end")
def conditions(report: Report) -> Contents | None:
    """A line for each run, and everything as a table, with the trace of each variant."""
    of_runs = {name: described(run) for name, run in report.subject.runs.items()}
    rows: list[dict[str, str | None]] = [
        {"run": name, "condition": label, "value": value}
        for name, labelled in of_runs.items()
        for label, value in labelled
    ]
    rows += [
        {
            "variant": profile.name,
            "run": profile.run_name or None,
            "condition": "trace",
            "value": path_as_text(profile.trace.path),
        }
        for profile in report.profiles
    ]
    table = Table("conditions", pa.Table.from_pylist(rows, schema=CONDITIONS), detail=True)
    lines = tuple(_line(name if len(of_runs) > 1 else "", labelled) for name, labelled in of_runs.items())
    return Contents((Sentences(lines, "quiet"), table) if lines else (table,))


def _line(name: str, labelled: list[tuple[str, str]]) -> str:
    short = {key: value[:16].replace("T", " ") if key == "captured" else value for key, value in labelled}
    summary = "; ".join(f"{key} {value}" for key, value in short.items() if key in _SUMMARY_KEYS)
    return f"{name}: {summary}" if name else summary


@of_run("notes", "What to know", rank=10, stage="end")
def notes(report: Report) -> Contents | None:
    """Every note once."""
    once = merged(report.notes, [member.name for member in report.members])
    return Contents((Notes(tuple(once)),)) if once else None
