"""What did a run measure of each variant? Everything that a notebook needs to rebuild the report's main table."""

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from tracekit.profile import Member, Missing, Profile
from tracekit.profile.device import device_name
from tracekit.profile.names import spelled
from tracekit.report.blocks import Table
from tracekit.report.model import Report
from tracekit.report.registry import of_run
from tracekit.report.section import Contents
from tracekit.report.warnings import remarks
from tracekit.run import Run, Variant
from tracekit.run_facts import break_even_steps, cold_cost_ns, loss_difference
from tracekit.study import Cell
from tracekit.trace.schema import column
from tracekit.unprofiled import step_interval

Of = Callable[[Report, Member], Any]


def _of_profile(read: Callable[[Report, Profile], Any]) -> Of:
    return lambda report, member: read(report, member) if isinstance(member, Profile) else None


def _of_known(read: Callable[[Report, Member], Any]) -> Of:
    return lambda report, member: read(report, member) if isinstance(member, Profile) or member.is_measured else None


def _of_variant(read: Callable[[Variant], Any]) -> Of:
    return lambda report, member: read(member.variant) if member.variant is not None else None


def _of_run(read: Callable[[Run], Any]) -> Of:
    return lambda report, member: read(member.run) if member.run is not None else None


def _of_cell(read: Callable[[Cell], Any]) -> Of:
    return lambda report, member: read(member.cell) if isinstance(member, Missing) and member.cell else None


def _of_run_or_cell(read: Callable[[Run | Cell], Any]) -> Of:
    """What a failed cell of a study has no run for, its plan knows."""

    def read_either(_: Report, member: Member) -> Any:
        cell = member.cell if isinstance(member, Missing) else None
        known = member.run or cell
        return read(known) if known is not None else None

    return read_either


def _params(member: Member) -> str | None:
    if member.run is not None and member.variant is not None:
        return _plain({**member.run.params, **member.variant.params})
    return _plain(member.cell.params) if isinstance(member, Missing) and member.cell is not None else None


def _measured(name: str) -> Of:
    return _of_variant(lambda variant: getattr(variant.measured, name) if variant.measured is not None else None)


def _interval(end: int) -> Of:
    def read(variant: Variant) -> float | None:
        interval = step_interval(variant.measured) if variant.measured is not None else None
        return interval[end] if interval is not None else None

    return _of_variant(read)


def _mean_ns(view: str) -> Of:
    def read(_: Report, profile: Profile) -> float | None:
        mean = profile.means[view]
        return mean.step_ns if mean is not None else None

    return _of_profile(read)


def _finite(value: float | None) -> float | None:
    return value if value not in (None, float("inf")) else None


def _outcome(_: Report, member: Member) -> str:
    if isinstance(member, Missing):
        return member.outcome
    return member.variant.outcome if member.variant is not None else "ok"


def _reason(_: Report, member: Member) -> str | None:
    if isinstance(member, Missing):
        return member.reason
    return member.variant.error if member.variant is not None else None


def _metric(at: int) -> Of:
    return _of_variant(lambda variant: next((item[at] for item in variant.metrics.items()), None))


def _throughput(variant: Variant) -> float | None:
    return 1e9 / variant.measured.step_ns if variant.measured is not None else None


def _plain(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


_TEXT, _WHOLE, _REAL = pa.string(), pa.int64(), pa.float64()
# Each column with the function that fills it; a new column is one entry.
COLUMNS: tuple[tuple[pa.Field, Of], ...] = (
    (column("variant", _TEXT, "name of the variant", role="name"), lambda report, member: member.name),
    (column("run", _TEXT, "name of its run", role="detail"), lambda report, member: member.run_name or None),
    (column("outcome", _TEXT, "ok, oom, timeout, crash, error, skipped or interrupted"), _outcome),
    (column("reason", _TEXT, "why it is not ok"), _reason),
    (
        column("baseline", _TEXT, "what it is set against", role="detail"),
        _of_known(lambda report, member: report.base_of(member).name),
    ),
    (column("device_name", _TEXT, "what it ran on"), _of_known(lambda report, member: device_name(member))),
    (column("step_ns", _REAL, "a step, unprofiled", "ns"), _measured("step_ns")),
    (column("step_low_ns", _REAL, "lower end of its confidence interval; null for a single pass", "ns"), _interval(0)),
    (column("step_high_ns", _REAL, "upper end of its confidence interval", "ns"), _interval(1)),
    (
        column("passes", _WHOLE, "unprofiled passes that it is taken from"),
        _of_variant(lambda v: len(v.measured.counted) or 1 if v.measured is not None else None),
    ),
    (column("spread_ns", _REAL, "between the quartiles of the unprofiled steps", "ns"), _measured("spread_ns")),
    (column("steps", _WHOLE, "unprofiled steps timed"), _measured("steps")),
    (column("throughput", _REAL, "unprofiled steps in a second"), _of_variant(_throughput)),
    (column("wall_ns", _REAL, "wall time of a counted step of the trace", "ns"), _mean_ns("wall")),
    (column("host_ns", _REAL, "host time of a counted step of the trace", "ns"), _mean_ns("host")),
    (
        column("profiled_step_ns", _REAL, "a step under the profiler, by the run's own clock", "ns"),
        _of_variant(lambda v: v.profiled.step_ns if v.profiled is not None else None),
    ),
    (column("infer_ns", _REAL, "one inference, unprofiled", "ns"), _measured("infer_ns")),
    (
        column("first_step_ns", _REAL, "the first step, unprofiled, compilation included", "ns"),
        _of_variant(lambda v: next(iter(v.measured.first_steps_ns), None) if v.measured is not None else None),
    ),
    (column("compile_ns", _REAL, "inside compilations, unprofiled", "ns"), _measured("compile_ns")),
    (column("compiles", _WHOLE, "compilations, unprofiled"), _measured("compiles")),
    (column("compiles_timed", _WHOLE, "of these, while steps were timed"), _measured("compiles_timed")),
    (
        column("cold_cost_ns", _REAL, "how much longer the first steps took than as many steady ones", "ns"),
        _of_variant(cold_cost_ns),
    ),
    (
        column("pay_back_steps", _REAL, "steps until the time saved makes up for compiling; null where it never does"),
        _of_known(lambda report, member: _finite(break_even_steps(member, report.base_of(member)))),
    ),
    (
        column("peak_allocated_bytes", _WHOLE, "GPU memory allocated at the peak", "B"),
        _of_variant(lambda v: v.memory.peak_allocated_bytes),
    ),
    (
        column("peak_reserved_bytes", _WHOLE, "GPU memory reserved at the peak", "B"),
        _of_variant(lambda v: v.memory.peak_reserved_bytes),
    ),
    (
        column("host_peak_rss_bytes", _WHOLE, "host memory resident at the peak", "B"),
        _of_variant(lambda v: v.memory.host_peak_rss_bytes),
    ),
    (
        column("loss_difference", _REAL, "largest relative difference of the check losses to the baseline's"),
        _of_known(lambda report, member: _finite(loss_difference(member, report.base_of(member)))),
    ),
    (column("metric", _TEXT, "the recipe's metric"), _metric(0)),
    (column("metric_value", _REAL, "its value after the check steps"), _metric(1)),
    (column("compile", pa.bool_(), "whether torch.compile was asked for"), _of_variant(lambda v: v.requested.compile)),
    (column("mode", _TEXT, "the mode that was asked for"), _of_variant(lambda v: v.requested.mode)),
    (column("effective_mode", _TEXT, "the mode that was in effect"), _of_variant(lambda v: v.effective.mode)),
    (column("backend", _TEXT, "compiler", role="detail"), _of_variant(lambda v: v.requested.backend)),
    (column("dynamic", pa.bool_(), "dynamic shapes", role="detail"), _of_variant(lambda v: v.requested.dynamic)),
    (column("fullgraph", pa.bool_(), "one graph or none", role="detail"), _of_variant(lambda v: v.requested.fullgraph)),
    (
        column("effective_notes", _TEXT, "how the effective mode differs", role="detail"),
        _of_variant(lambda v: " ".join(v.effective.notes) or None),
    ),
    (
        column("remarks", _TEXT, "what is worth knowing of it, but no reason for doubt", role="detail"),
        lambda report, member: " ".join(remarks(member)) or None,
    ),
    (column("losses", pa.list_(_REAL), "of the check steps", role="plumbing"), _of_variant(lambda v: list(v.losses))),
    (
        column("metrics", _TEXT, "all of the recipe's metrics, JSON", role="plumbing"),
        _of_variant(lambda v: _plain(v.metrics)),
    ),
    (column("recipe", _TEXT, "what was run", role="detail"), _of_run_or_cell(lambda each: each.recipe)),
    (column("cell", _TEXT, "folder of the cell, in a study", role="detail"), _of_cell(lambda cell: cell.folder)),
    (
        column("interpreter", _TEXT, "Python that ran it, as the sweep file calls it", role="detail"),
        _of_cell(lambda cell: cell.interpreter or None),
    ),
    (
        column("workload", _TEXT, "what a step is: training or inference", role="detail"),
        _of_variant(lambda variant: variant.workload),
    ),
    (column("data", _TEXT, "what it trained on", role="detail"), _of_run(lambda run: run.data)),
    (column("device", _TEXT, "cpu or cuda", role="detail"), _of_run(lambda run: run.device)),
    (column("created", _TEXT, "when the run was captured", role="detail"), _of_run(lambda run: run.created)),
    (
        column("seed", _WHOLE, "of every random number generator", role="detail"),
        _of_run_or_cell(lambda each: each.seed),
    ),
    (
        column("params", _TEXT, "parameters, those of the variant included, JSON", role="plumbing"),
        lambda report, member: _params(member),
    ),
    (
        column("environment", _TEXT, "what the numbers depend on, JSON", role="plumbing"),
        _of_run(lambda r: _plain(r.environment)),
    ),
    (
        column("trace", _TEXT, "the trace that all figures come from", role="detail"),
        _of_profile(lambda report, profile: spelled(profile.trace.path)),
    ),
)
VARIANTS = pa.schema([field for field, _ in COLUMNS])


@of_run("variants", "Everything measured", rank=40, stage="end", studies=True)
def variants(report: Report) -> Contents:
    """One row per variant, those that failed included."""
    return Contents((Table("variants", table(report), layout="records", detail=True),))


def table(report: Report) -> pa.Table:
    """The table of variants."""
    members = report.subject.members
    arrays = [
        pa.array([_cast(read(report, each), field.type) for each in members], field.type) for field, read in COLUMNS
    ]
    return pa.Table.from_arrays(arrays, schema=VARIANTS)


def _cast(value: Any, kind: pa.DataType) -> Any:
    return float(value) if value is not None and kind == _REAL else value
