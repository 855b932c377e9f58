"""What must a reader know besides the figures of the traces: what the run measured about its variants without one,
under which conditions they were captured, which files the numbers come from, and what limits them?
"""

from collections.abc import Iterator

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
from tracekit.run import Measured, Variant, divergence, loss_tolerance
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
            *(column(name, pa.string(), "", role="figure", title=name) for name in names),
        ]
    )
    rows = [{"": label, **{name: fact_values.get(name) for name in names}} for label, fact_values in values.items()]
    return Contents((Table.of("run_facts", rows, schema, exported=False),))


class Fact(Struct, frozen=True):
    """One line about every variant. `values` has the text by variant, without those of which nothing is known."""

    label: str
    values: dict[str, str]


def facts(members: list[Member], baseline: Member) -> list[Fact]:
    """The lines that a run adds to the report; none for bare traces."""
    if not any(member.variant for member in members):
        return []
    values: dict[str, dict[str, str]] = {}
    for member in members:
        for label, text in _facts_of(member, baseline):
            of_members = values.setdefault(label, {})
            if text is not None:
                of_members[member.name] = text
    return [Fact(label, of_members) for label, of_members in values.items() if of_members]


def _facts_of(member: Member, baseline: Member) -> Iterator[tuple[str, str | None]]:
    """Every line about one variant: its label, and its text, None where nothing is known."""
    variant = member.variant
    measured = variant.measured if variant is not None else None
    memory = variant.memory if variant is not None else None
    is_compiled = variant is not None and variant.requested.compile
    yield "step, unprofiled", _step_time(measured) if measured is not None else None
    # That of all threads together, in turns: other work on the machine hardly changes it.
    worked_ns = processor_ns(measured) if measured is not None else None
    yield "processor time of a step", duration(worked_ns) if worked_ns is not None else None
    # As many steps as there are batches, at the unprofiled step time.
    epoch, steps = epoch_ns(variant), measured.epoch_steps if measured is not None else None
    yield "epoch", f"{duration(epoch)} ({count(steps)} steps)" if epoch is not None and steps and steps > 1 else None
    # The slower start spread over the epochs that are trained, or else over 100.
    epochs = (member.run.epochs if member.run is not None else 0) or SPREAD_EPOCHS
    spread = epoch_with_compiling_ns(variant, epochs) if is_compiled else None
    yield "epoch, with compiling", f"{duration(spread)} over {count(epochs)}" if spread is not None else None
    step_ns = measured.step_ns if measured is not None else None
    yield "throughput", f"{rate(1e9 / step_ns)} steps/s" if step_ns else None
    contrast = contrast_of(member, baseline)
    yield "against the baseline", compared(contrast) if contrast is not None else None
    yield "by its own processor time", _by_thread(member, baseline)
    mean, inflation = member.means["wall"], inflation_of(member)
    slower = f" ({ratio(inflation)})" if inflation is not None else ""
    yield "step, profiled", f"{duration(mean.step_ns)}{slower}" if mean is not None else None
    first_ns = next(iter(measured.first_steps_ns), None) if measured is not None else None
    yield "first step", duration(first_ns) if first_ns is not None else None
    # Compiling before the first step, and how much longer the first steps took than as many steady ones.
    yield "compiling cost", compiling_cost(variant) if is_compiled else None
    yield "steps to break even", _pay_back(member, baseline)
    yield "mode", _mode(variant) if variant is not None else None
    yield "peak GPU memory", _memory(variant) if variant is not None else None
    # Clock and power right after the timed steps, and the highest allowed.
    state = variant.gpu if variant is not None else {}
    pairs = (("clocks.sm", "clocks.max.sm"), ("power.draw", "power.limit"))
    parts = [f"{state[current]} of {state[limit]}" for current, limit in pairs if current in state and limit in state]
    yield "GPU under load", ", ".join(parts) or None
    yield "peak host memory", size(memory.host_peak_rss_bytes) if memory and memory.host_peak_rss_bytes else None
    # The peak of the timed steps less what was held before the first.
    above_start_bytes = memory.above_start_bytes if memory is not None else None
    yield "memory above start", size(above_start_bytes) if above_start_bytes is not None else None
    yield "loss against the baseline", _losses(member, baseline)
    yield "gradients against the baseline", _gradients(member, baseline)
    # The recipe's own metrics after the check steps.
    metrics = variant.metrics if variant is not None else {}
    texts = [f"{key} {value:.3f}" for key, value in metrics.items() if value is not None]
    yield "metric", ", ".join(texts) or None


def _step_time(measured: Measured) -> str:
    """The middle of its passes with a 95 % interval; for a single pass, its step ± half the interquartile range."""
    step = duration(measured.step_ns)
    interval = step_interval(measured)
    if interval is not None:
        low, high = (duration(end, like=measured.step_ns) for end in interval)
        return f"{step} ({low} … {high})"
    return f"{step} ± {duration(measured.spread_ns / 2)}" if measured.steps > 1 else step  # a single step has none


def _by_thread(member: Member, baseline: Member) -> str | None:
    """The ratio by the processor time of the thread that drives the steps, only where it disagrees."""
    ours, theirs = (side.variant.measured if side.variant else None for side in (member, baseline))
    if contrast_of(member, baseline) is None or ours is None or theirs is None:
        return None
    by_thread = otherwise(ours, theirs)
    return f"{compared(by_thread)}; the rest is waiting" if by_thread is not None else None


def _pay_back(member: Member, baseline: Member) -> str | None:
    """The number of steps until the faster steps have made up for compiling."""
    if doubt := break_even_doubt(member, baseline):
        return f"unknown: {doubt}"
    steps = break_even_steps(member, baseline)
    if steps is None:
        return None
    return "never: its steps are no faster" if steps == float("inf") else count(round(steps))


def _mode(variant: Variant) -> str:
    """The mode as requested, and as it took effect if that differs."""
    requested, got = variant.requested, variant.effective.mode
    if not requested.compile:
        return "eager"
    text = f"{requested.mode or 'default'}{'' if requested.dynamic is None else f', dynamic={requested.dynamic}'}"
    return text if got in (None, requested.mode or "default") else f"{text} → {got}"


def _memory(variant: Variant) -> str | None:
    """Allocated (reserved) in the unprofiled pass, once it had settled."""
    memory = variant.memory
    if memory.peak_allocated_bytes is None:
        return None
    if records_graphs(variant):
        return f"{size(memory.peak_reserved_bytes)} reserved, including the memory of its CUDA graphs"
    return f"{size(memory.peak_allocated_bytes)} ({size(memory.peak_reserved_bytes)})"


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
    table = Table.of("conditions", rows, CONDITIONS, detail=True)
    lines = []
    for name, labelled in of_runs.items():
        short = {label: value[:16].replace("T", " ") if label == "captured" else value for label, value in labelled}
        summary = "; ".join(f"{label} {value}" for label, value in short.items() if label in _SUMMARY_KEYS)
        lines.append(f"{name}: {summary}" if name and len(of_runs) > 1 else summary)
    return Contents((Sentences(tuple(lines), "quiet"), table) if lines else (table,))


@of_run("notes", "What to know", rank=10, stage="end")
def notes(report: Report) -> Contents | None:
    """Every note once."""
    once = merged(report.notes, [member.name for member in report.members])
    return Contents((Notes(tuple(once)),)) if once else None
