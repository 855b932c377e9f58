"""All that was recorded about each variant, as tables for programs: what a run measured, which is all that a notebook
needs to rebuild the report's main table, its columns filled by functions of the report and one of its members; and what
the compiler did, entry by entry.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec
import pyarrow as pa

from tracekit.profile import Member, Profile, Untraced, has_figures
from tracekit.profile.names import path_as_text
from tracekit.profile.run_facts import (
    SPREAD_EPOCHS,
    break_even_steps,
    epoch_ns,
    epoch_with_compiling_ns,
    loss_difference,
)
from tracekit.profile.subject import device_name
from tracekit.report.blocks import Table
from tracekit.report.model import Report
from tracekit.report.notes import remarks
from tracekit.report.section import Contents, of_run
from tracekit.run import Ledger, Run, Variant
from tracekit.run.contrast import cold_cost_ns, processor_ns, step_interval
from tracekit.study import Cell
from tracekit.trace.schema import Role, column

ColumnReader = Callable[[Report, Member], Any]  # None is null
_Part = TypeVar("_Part")
_Reading = Callable[[Callable[[_Part], Any]], ColumnReader]
_TEXT, _INTEGER, _REAL = pa.string(), pa.int64(), pa.float64()
_MEMORY: tuple[tuple[str, str, str, Role], ...] = (  # name, meaning, unit and role
    ("peak_allocated_bytes", "GPU memory allocated at the peak", "B", ""),
    ("peak_reserved_bytes", "GPU memory reserved at the peak", "B", ""),
    ("host_peak_rss_bytes", "host memory resident at the peak", "B", ""),
    (
        "above_start_bytes",
        "how much more is held at the peak of the timed steps than before the first: on the GPU, else on the host",
        "B",
        "",
    ),
    ("start_allocated_bytes", "GPU memory allocated before the first step", "B", "detail"),
    ("split_peak_bytes", "GPU memory in unused parts of split blocks, at the peak", "B", "detail"),
    ("allocated_in_step_bytes", "GPU memory allocated per step, including what is released again", "B", "detail"),
    ("allocations_in_step", "allocations on the GPU per step", "", "detail"),
    ("alloc_retries", "how often the allocator had to empty its cache", "", "detail"),
    ("start_rss_bytes", "host memory resident before the first step", "B", "detail"),
    ("step_peak_rss_bytes", "host memory resident at the peak of the timed steps", "B", "detail"),
)
LEDGER = pa.schema(
    [
        column("variant", pa.string(), "name of the variant", role="name"),
        column(
            "entry", pa.string(), "compile, break (of a graph), limit (of recompilations) or skip (of a CUDA graph)"
        ),
        column("id", pa.string(), "frame/attempt of the compilation, or of the one that a break or a skip belongs to"),
        column("kind", pa.string(), "first, recompile, backward, cudagraph or autotune"),
        column("span", pa.string(), "the compiler's name for it"),
        column("name", pa.string(), "the function that a limit is about"),
        column("code", pa.string(), "the user's function that is compiled: file:line name", role="place"),
        column("file", pa.string(), "file of a break, a limit or a skip", role="source"),
        column("line", pa.int64(), "line number in the file", role="identity"),
        column("reason", pa.string(), "reason, in the compiler's own words", role="reason"),
        column("guard", pa.string(), "the guard that failed", role="reason"),
        column("start_ns", pa.int64(), "start, unix time", "ns"),
        column("dur_ns", pa.int64(), "duration", "ns"),
        column("guard_ns", pa.int64(), "one evaluation of its guards, as Dynamo timed it", "ns"),
        column("step", pa.int64(), "the N of ProfilerStep#N", role="identity"),
        column("pass", pa.string(), "window of the capture, or warmup: cold, warmup, steady or detail"),
        column("failed", pa.string(), "why it produced no code"),
    ]
)


def _reading(part: Callable[[Member], _Part | None]) -> _Reading[_Part]:
    """What makes columns that are read from this part of a member, and are null for a member without it."""

    def from_part(read: Callable[[_Part], Any]) -> ColumnReader:
        def read_column(_: Report, member: Member) -> Any:
            owner = part(member)
            return read(owner) if owner is not None else None

        return read_column

    return from_part


def _cell(member: Member) -> Cell | None:
    """The plan of a failed cell of a study, which has neither a run nor a variant; None for everything else."""
    return member.cell if isinstance(member, Untraced) else None


from_profile = _reading(lambda member: member if isinstance(member, Profile) else None)
from_variant = _reading(lambda member: member.variant)
from_measured = _reading(lambda member: member.variant.measured if member.variant is not None else None)
from_run = _reading(lambda member: member.run)
from_cell = _reading(_cell)
from_variant_or_cell: _Reading[Variant | Cell] = _reading(lambda member: member.variant or _cell(member))
from_run_or_cell: _Reading[Run | Cell] = _reading(lambda member: member.run or _cell(member))


def from_known(read: Callable[[Report, Member], Any]) -> ColumnReader:
    """A column that is null for a member without any measurement or trace."""
    return lambda report, member: read(report, member) if has_figures(member) else None


def params(member: Member) -> str | None:
    """The parameters of the run with those of the variant, as JSON."""
    if member.run is not None and member.variant is not None:
        return as_json({**member.run.params, **member.variant.params})
    cell = _cell(member)
    return as_json(cell.params) if cell is not None else None


def measured(name: str) -> ColumnReader:
    """A figure of the unprofiled passes."""
    return from_measured(lambda passes: getattr(passes, name))


def epochs(member: Member) -> int:
    """The number of epochs over which the cost of compiling is spread: those trained, or else a usual number."""
    return (member.run.epochs if member.run is not None else 0) or SPREAD_EPOCHS


def memory(name: str) -> ColumnReader:
    """A figure of the memory."""
    return from_variant(lambda variant: getattr(variant.memory, name))


def mean_ns(view: str) -> ColumnReader:
    """The mean of the counted steps of the trace: `wall` or `host`."""
    return _reading(lambda member: member.means[view])(lambda mean: mean.step_ns)


def finite(value: float | None) -> float | None:
    """The value; null where it is infinite."""
    return value if value not in (None, float("inf")) else None


def outcome(_: Report, member: Member) -> str:
    """How its capture ended; a bare trace is `ok`."""
    if isinstance(member, Untraced):
        return member.outcome
    return member.variant.outcome if member.variant is not None else "ok"


def reason(_: Report, member: Member) -> str | None:
    """Why it failed; null where it did not."""
    if isinstance(member, Untraced):
        return member.reason
    return member.variant.error if member.variant is not None else None


def as_json(value: Any) -> str:
    """The value as JSON; equal values give equal text."""
    return json.dumps(value, sort_keys=True)


# Each column with the function that fills it; a new column is one entry.
COLUMNS: tuple[tuple[pa.Field, ColumnReader], ...] = (
    (column("variant", _TEXT, "name of the variant", role="name"), lambda report, member: member.name),
    (column("run", _TEXT, "name of its run", role="detail"), lambda report, member: member.run_name or None),
    (column("outcome", _TEXT, "ok, oom, timeout, crash, error, skipped or interrupted"), outcome),
    (column("reason", _TEXT, "why the outcome is not ok"), reason),
    (
        column("baseline", _TEXT, "variant that it is compared with", role="detail"),
        from_known(lambda report, member: report.base_of(member).name),
    ),
    (column("device_name", _TEXT, "device that it ran on"), from_known(lambda report, member: device_name(member))),
    (column("step_ns", _REAL, "a step, unprofiled", "ns"), measured("step_ns")),
    (
        column("step_low_ns", _REAL, "lower end of its confidence interval; null for a single pass", "ns"),
        from_measured(lambda passes: (step_interval(passes) or (None,))[0]),
    ),
    (
        column("step_high_ns", _REAL, "upper end of its confidence interval", "ns"),
        from_measured(lambda passes: (step_interval(passes) or (None,))[-1]),
    ),
    (
        column("passes", _INTEGER, "unprofiled passes that it is computed from"),
        from_measured(lambda passes: len(passes.counted_passes) or 1),
    ),
    (column("spread_ns", _REAL, "interquartile range of the unprofiled steps", "ns"), measured("spread_ns")),
    (column("steps", _INTEGER, "unprofiled steps timed"), measured("steps")),
    (
        column("processor_ns", _REAL, "processor time of a step, all threads; null where no turns were taken", "ns"),
        from_measured(processor_ns),
    ),
    (
        column("throughput", _REAL, "unprofiled steps per second", title="throughput (steps/s)"),
        from_measured(lambda passes: 1e9 / passes.step_ns),
    ),
    (column("epoch_steps", _INTEGER, "steps per epoch; null where they cannot be counted"), measured("epoch_steps")),
    (column("epoch_ns", _REAL, "an epoch at the unprofiled step time", "ns"), from_variant(epoch_ns)),
    (
        column("epoch_with_compiling_ns", _REAL, "the same, with the slower start spread over `epochs`", "ns"),
        lambda report, member: epoch_with_compiling_ns(member.variant, epochs(member)),
    ),
    (
        column("epochs", _INTEGER, "epochs trained; 100 where none were", role="detail"),
        lambda report, member: (
            epochs(member) if epoch_with_compiling_ns(member.variant, epochs(member)) is not None else None
        ),
    ),
    (column("wall_ns", _REAL, "wall time of a counted step of the trace", "ns"), mean_ns("wall")),
    (column("host_ns", _REAL, "host time of a counted step of the trace", "ns"), mean_ns("host")),
    (
        column("profiled_step_ns", _REAL, "a step under the profiler, by the run's own clock", "ns"),
        from_variant(lambda v: v.profiled.step_ns if v.profiled is not None else None),
    ),
    (column("infer_ns", _REAL, "one inference, unprofiled", "ns"), measured("infer_ns")),
    (
        column("first_step_ns", _REAL, "the first step, unprofiled, compilation included", "ns"),
        from_measured(lambda passes: next(iter(passes.first_steps_ns), None)),
    ),
    (column("compile_ns", _REAL, "time inside compilations, unprofiled", "ns"), measured("compile_ns")),
    (column("compile_before_ns", _REAL, "of that, before the first step", "ns"), measured("compile_before_ns")),
    (column("compiles", _INTEGER, "compilations, unprofiled"), measured("compiles")),
    (column("compiles_timed", _INTEGER, "compilations while steps were timed, unprofiled"), measured("compiles_timed")),
    (
        column(
            "cold_cost_ns",
            _REAL,
            "what the slower start cost: compiling before the first step, and longer first steps",
            "ns",
        ),
        from_variant(cold_cost_ns),
    ),
    (
        column(
            "pay_back_steps",
            _REAL,
            "steps until the time saved makes up for compiling; null where it never does",
            title="steps to break even",
        ),
        from_known(lambda report, member: finite(break_even_steps(member, report.base_of(member)))),
    ),
    *((column(name, _INTEGER, meaning, unit, role=role), memory(name)) for name, meaning, unit, role in _MEMORY),
    (
        column("loss_difference", _REAL, "largest relative difference between its check losses and the baseline's"),
        from_known(lambda report, member: finite(loss_difference(member, report.base_of(member)))),
    ),
    (column("metric", _TEXT, "name of the recipe's metric"), from_variant(lambda v: next(iter(v.metrics), None))),
    (
        column("metric_value", _REAL, "its value after the check steps"),
        from_variant(lambda v: next(iter(v.metrics.values()), None)),
    ),
    (column("compile", pa.bool_(), "whether torch.compile was requested"), from_variant(lambda v: v.requested.compile)),
    (column("mode", _TEXT, "the mode that was requested"), from_variant(lambda v: v.requested.mode)),
    (column("effective_mode", _TEXT, "the mode that was in effect"), from_variant(lambda v: v.effective.mode)),
    (column("backend", _TEXT, "compiler", role="detail"), from_variant(lambda v: v.requested.backend)),
    (
        column("dynamic", pa.bool_(), "dynamic shapes, as requested; null for automatic", role="detail"),
        from_variant(lambda v: v.requested.dynamic),
    ),
    (
        column("fullgraph", pa.bool_(), "whether a single graph was required", role="detail"),
        from_variant(lambda v: v.requested.fullgraph),
    ),
    (
        column("effective_notes", _TEXT, "how the effective mode differs from the requested one", role="detail"),
        from_variant(lambda v: " ".join(v.effective.notes) or None),
    ),
    (
        column("remarks", _TEXT, "other remarks, which cast no doubt on the figures", role="detail"),
        lambda report, member: " ".join(remarks(member)) or None,
    ),
    (
        column("losses", pa.list_(_REAL), "losses of the check steps", role="plumbing"),
        from_variant(lambda v: list(v.losses)),
    ),
    (
        column("metrics", _TEXT, "all of the recipe's metrics, JSON", role="plumbing"),
        from_variant(lambda v: as_json(v.metrics)),
    ),
    (
        column("recipe", _TEXT, "recipe or script that was run", role="detail"),
        from_run_or_cell(lambda run_or_cell: run_or_cell.recipe),
    ),
    (column("cell", _TEXT, "folder of the cell, in a study", role="detail"), from_cell(lambda cell: cell.folder)),
    (
        column("interpreter", _TEXT, "Python that ran it, as named in the sweep file", role="detail"),
        from_cell(lambda cell: cell.interpreter or None),
    ),
    (
        column("framework", _TEXT, "framework, as labelled in the sweep file", role="detail"),
        from_cell(lambda cell: cell.labels.get("framework")),
    ),
    (
        column("workload", _TEXT, "what a step is: training or inference", role="detail"),
        from_variant_or_cell(lambda planned: planned.workload),
    ),
    (column("data", _TEXT, "data that it trained on", role="detail"), from_run(lambda run: run.data)),
    (column("device", _TEXT, "cpu or cuda", role="detail"), from_run(lambda run: run.device)),
    (column("created", _TEXT, "when the run was captured", role="detail"), from_run(lambda run: run.created)),
    (
        column("seed", _INTEGER, "seed of every random number generator", role="detail"),
        from_run_or_cell(lambda run_or_cell: run_or_cell.seed),
    ),
    (
        column("params", _TEXT, "parameters, those of the variant included, JSON", role="plumbing"),
        lambda report, member: params(member),
    ),
    (
        column("environment", _TEXT, "what the numbers depend on, JSON", role="plumbing"),
        from_run(lambda r: as_json(r.environment)),
    ),
    (
        column("trace", _TEXT, "the trace that all figures come from", role="place"),
        from_profile(lambda profile: path_as_text(profile.trace.path)),
    ),
)
VARIANTS = pa.schema([field for field, _ in COLUMNS])


@of_run("variants", "Everything measured", rank=40, stage="end", studies=True)
def variants(report: Report) -> Contents:
    """One row per variant, including those that failed; too many in a study to be read side by side."""
    if report.subject.study is not None:
        return Contents((), tables={"variants": lambda: table(report)})
    return Contents((Table("variants", table(report), layout="records", detail=True),))


def table(report: Report) -> pa.Table:
    """The table of variants."""
    arrays = []
    for field, read in COLUMNS:
        values = [read(report, member) for member in report.subject.members]
        if field.type == _REAL:
            values = [float(value) if value is not None else None for value in values]
        arrays.append(pa.array(values, field.type))
    return pa.Table.from_arrays(arrays, schema=VARIANTS)


@of_run("ledger", "The compiler's ledger", rank=90, stage="end")
def ledger(report: Report) -> Contents | None:
    """A row for each entry of each variant's ledger; people read the compilations and the graph breaks."""
    if not any(member.variant for member in report.members):
        return None
    return Contents((), tables={"ledger": lambda: _ledger_table(report)})


def _ledger_table(report: Report) -> pa.Table:
    rows = []
    for member in report.members:
        entries = member.variant.ledger if member.variant is not None else Ledger()
        by_kind: dict[str, Sequence[msgspec.Struct]] = {
            "compile": entries.compiles,
            "break": entries.breaks,
            "limit": entries.limits,
            "skip": entries.skips,
        }
        for kind, entry in ((kind, entry) for kind, of_kind in by_kind.items() for entry in of_kind):
            fields = msgspec.structs.asdict(entry)
            row = fields | {"variant": member.name, "entry": kind, "id": fields.get("id") or fields.get("compile")}
            row |= {"start_ns": fields.get("start_ns", fields.get("t_ns")), "pass": fields.get("during") or None}
            if "end_ns" in fields:
                row["dur_ns"] = fields["end_ns"] - fields["start_ns"]
            rows.append(row)
    return pa.Table.from_pylist(rows, schema=LEDGER)
