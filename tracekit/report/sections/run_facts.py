"""What must a reader know besides the figures of the traces? First of all, which variants failed or compute something
else, and which laws a trace breaks so badly that its figures must not be believed; then what the run measured without
traces, under which conditions, which files the numbers come from, and what limits them.
"""

from collections.abc import Iterator

import pyarrow as pa
from msgspec import Struct

from tracekit.base.names import sanitize
from tracekit.base.units import count, duration, many, rate, ratio, size
from tracekit.findings.compiler_advice import against_failure
from tracekit.profile import Member, Profile
from tracekit.profile.names import path_as_text
from tracekit.profile.run_facts import (
    SPREAD_EPOCHS,
    break_even_doubt,
    break_even_steps,
    contrast_of,
    differs,
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
from tracekit.run import Variant, divergence, loss_tolerance
from tracekit.run.contrast import compared, compiling_cost, otherwise, processor_ns, step_interval
from tracekit.study.failures import ENDINGS
from tracekit.trace.facts import SEVERITIES, Severity
from tracekit.trace.schema import column

CONDITIONS = pa.schema(
    [
        column("variant", pa.string(), "variant that it applies to; null for the whole run", role="name"),
        column("run", pa.string(), "the run; null for a bare trace", role="name"),
        column("condition", pa.string(), "name of the condition"),
        column("value", pa.string(), "its value", role="place"),
    ]
)
_SUMMARY_KEYS = ("recipe", "data", "parameters", "captured", "torch")
_MAX_LINES = 2  # about laws that are broken
_MAX_REASON = 160  # characters of an error
_FAILURES = ("error", "crash", "oom", "timeout")
_PREFIX: dict[Severity, str] = {"refusal": "Unknown", "doubt": "In doubt"}


@of_run("doubts", "Doubts", rank=-1, stage="lead")
def doubts(report: Report) -> Contents | None:
    """What to know before any figure is read, one line each."""
    lines = doubt_lines(report)
    return Contents((Sentences(tuple(lines), "lead"),)) if lines else None


def doubt_lines(report: Report) -> list[str]:
    """Variants that failed, variants whose losses differ from their baseline's, and what is wrong with traces."""
    if report.subject.study is not None:  # its cells have sections of their own
        return _of_laws(report.profiles)
    different = [
        f"In doubt, {sanitize(member.name)}: {differing}. It may not compute the same."
        for member in report.members
        if (differing := differs(member, report.base_of(member)))
    ]
    failed = []
    for member in report.subject.members:
        if member.variant is not None and member.variant.outcome in _FAILURES:
            reason = sanitize(member.variant.error or "", _MAX_REASON).rstrip(".")
            sentence = f"{sanitize(member.name)} {ENDINGS[member.variant.outcome]}{f': {reason}' if reason else ''}."
            failed.append(f"{sentence} {against_failure(member.variant.error or '') or ''}".strip())
    return [*failed, *different, *_of_laws(report.profiles)]


def _of_laws(profiles: list[Profile]) -> list[str]:
    """A sentence for each of the gravest breaches of these variants' traces; the last also counts the others."""
    names: dict[tuple[Severity, str], list[str]] = {}
    for profile in profiles:
        for breach in profile.health:
            if breach.is_grave:
                names.setdefault((breach.severity, breach.message), []).append(profile.name)
    lines = []
    for severity, message in sorted(names, key=lambda key: SEVERITIES.index(key[0])):
        variants = names[severity, message]
        prefix = _PREFIX[severity] + ("" if len(variants) == len(profiles) else f", {', '.join(variants)}")
        lines.append(f"{sanitize(prefix)}: {sanitize(message)}")
    if (more_lines := len(lines) - _MAX_LINES) > 0:
        lines[_MAX_LINES - 1] += (
            f" ({many(more_lines, 'more law')} {'is' if more_lines == 1 else 'are'} broken: see the notes.)"
        )
    return lines[:_MAX_LINES]


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
    for member in sorted(members, key=lambda member: member.variant is None):  # those with every line first
        state = _state(member.variant) if member.variant is not None else ()
        for label, text in (*_times(member, baseline), *state, *_results(member, baseline)):
            of_members = values.setdefault(label, {})
            if text is not None:
                of_members[member.name] = text
    return [Fact(label, of_members) for label, of_members in values.items() if of_members]


def _times(member: Member, baseline: Member) -> Iterator[tuple[str, str | None]]:
    """The lines about a variant's times: the label of each, and its text, None where nothing is known."""
    variant = member.variant
    measured = variant.measured if variant is not None else None
    is_compiled = variant is not None and variant.requested.compile
    step = None
    if measured is not None:
        step, interval = duration(measured.step_ns), step_interval(measured)
        if interval is not None:  # at 95 %, around the middle of the passes
            step += f" ({' … '.join(duration(end, like=measured.step_ns) for end in interval)})"
        elif measured.steps > 1:  # for a single pass, half the interquartile range
            step += f" ± {duration(measured.spread_ns / 2)}"
    yield "step, unprofiled", step
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
    # The ratio by the processor time of the thread that drives the steps, only where it disagrees.
    base_measured = baseline.variant.measured if baseline.variant is not None else None
    by_thread = None
    if contrast is not None and measured is not None and base_measured is not None:
        by_thread = otherwise(measured, base_measured)
    yield "by its own processor time", f"{compared(by_thread)}; the rest is waiting" if by_thread is not None else None
    mean, inflation = member.means["wall"], inflation_of(member)
    slower = f" ({ratio(inflation)})" if inflation is not None else ""
    yield "step, profiled", f"{duration(mean.step_ns)}{slower}" if mean is not None else None
    first_ns = next(iter(measured.first_steps_ns), None) if measured is not None else None
    yield "first step", duration(first_ns) if first_ns is not None else None
    # Compiling before the first step, and how much longer the first steps took than as many steady ones.
    yield "compiling cost", compiling_cost(variant) if is_compiled else None
    pays_off = None
    if doubt := break_even_doubt(member, baseline):
        pays_off = f"unknown: {doubt}"
    elif (break_even := break_even_steps(member, baseline)) is not None:
        pays_off = "never: its steps are no faster" if break_even == float("inf") else count(round(break_even))
    yield "steps to break even", pays_off


def _state(variant: Variant) -> Iterator[tuple[str, str | None]]:
    """The same about its mode, its memory and its GPU."""
    requested, memory = variant.requested, variant.memory
    mode, mode_in_effect = requested.mode or "default", variant.effective.mode
    dynamic = "" if requested.dynamic is None else f", dynamic={requested.dynamic}"
    in_effect = "" if mode_in_effect in (None, mode) else f" → {mode_in_effect}"
    yield "mode", f"{mode}{dynamic}{in_effect}" if requested.compile else "eager"
    # Allocated (reserved) in the unprofiled pass, once it had settled.
    peak = f"{size(memory.peak_allocated_bytes)} ({size(memory.peak_reserved_bytes)})"
    if records_graphs(variant):
        peak = f"{size(memory.peak_reserved_bytes)} reserved, including the memory of its CUDA graphs"
    yield "peak GPU memory", peak if memory.peak_allocated_bytes is not None else None
    # Clock and power right after the timed steps, and the highest allowed.
    state = variant.gpu
    pairs = (("clocks.sm", "clocks.max.sm"), ("power.draw", "power.limit"))
    parts = [f"{state[current]} of {state[limit]}" for current, limit in pairs if current in state and limit in state]
    yield "GPU under load", ", ".join(parts) or None
    yield "peak host memory", size(memory.host_peak_rss_bytes) if memory.host_peak_rss_bytes else None
    # The peak of the timed steps less what was held before the first.
    above_start_bytes = memory.above_start_bytes
    yield "memory above start", size(above_start_bytes) if above_start_bytes is not None else None


def _results(member: Member, baseline: Member) -> Iterator[tuple[str, str | None]]:
    """The same about what it computes."""
    # The largest relative difference over the check steps, compared with what rounding explains.
    losses, difference = None, loss_difference(member, baseline)
    if difference is not None:
        tolerance = tolerance_of(member, baseline)
        losses = f"the same (within {difference:.0e})" if difference else "the same"
        if difference > tolerance:
            losses = f"differs by {difference:.1e}, more than rounding explains ({tolerance:.0e})"
        elif difference > loss_tolerance():
            losses = f"the same except for rounding ({difference:.1e}, tolerance {tolerance:.0e})"
    yield "loss against the baseline", losses
    # Whether their norms differ by more than rounding explains.
    norms, variant, base_variant = None, member.variant, baseline.variant
    pair = (base_variant.gradients, variant.gradients) if base_variant is not None and variant is not None else None
    if member is not baseline and pair is not None and divergence(*pair) is not None:
        norms = gradients_differ(member, baseline).replace("the norms of its gradients", "norms differ")
        norms = norms or "the same norms"
    yield "gradients against the baseline", norms
    # The recipe's own metrics after the check steps.
    metrics = variant.metrics if variant is not None else {}
    yield "metric", ", ".join(f"{key} {value:.3f}" for key, value in metrics.items() if value is not None) or None


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
