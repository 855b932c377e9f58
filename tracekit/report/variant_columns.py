"""How a column of the table `variants` is filled: by functions of the report and one of its members."""

import json
from collections.abc import Callable
from typing import Any

from tracekit.profile import Member, Profile, Untraced, has_figures
from tracekit.report.model import Report
from tracekit.run import Run, Variant
from tracekit.run_facts import SPREAD_EPOCHS
from tracekit.study import Cell
from tracekit.unprofiled import step_interval

ColumnReader = Callable[[Report, Member], Any]  # None is null


def from_profile(read: Callable[[Report, Profile], Any]) -> ColumnReader:
    """A column that is null for a member without a trace."""
    return lambda report, member: read(report, member) if isinstance(member, Profile) else None


def from_known(read: Callable[[Report, Member], Any]) -> ColumnReader:
    """A column that is null for a member without any measurement or trace."""
    return lambda report, member: read(report, member) if has_figures(member) else None


def from_variant(read: Callable[[Variant], Any]) -> ColumnReader:
    """A column that is null for a bare trace."""
    return lambda report, member: read(member.variant) if member.variant is not None else None


def from_run(read: Callable[[Run], Any]) -> ColumnReader:
    """A column that is null for a bare trace."""
    return lambda report, member: read(member.run) if member.run is not None else None


def from_cell(read: Callable[[Cell], Any]) -> ColumnReader:
    """A column that is null for everything but a failed cell of a study."""
    return lambda report, member: read(member.cell) if isinstance(member, Untraced) and member.cell else None


def from_run_or_cell(read: Callable[[Run | Cell], Any]) -> ColumnReader:
    """A column that a failed cell of a study, which has no run, takes from its plan."""

    def read_either(_: Report, member: Member) -> Any:
        cell = member.cell if isinstance(member, Untraced) else None
        run_or_cell = member.run or cell
        return read(run_or_cell) if run_or_cell is not None else None

    return read_either


def workload(_: Report, member: Member) -> str | None:
    """What a step is; known for a failed cell of a study, too."""
    if member.variant is not None:
        return member.variant.workload
    return member.cell.workload if isinstance(member, Untraced) and member.cell is not None else None


def params(member: Member) -> str | None:
    """The parameters of the run with those of the variant, as JSON."""
    if member.run is not None and member.variant is not None:
        return as_json({**member.run.params, **member.variant.params})
    return as_json(member.cell.params) if isinstance(member, Untraced) and member.cell is not None else None


def measured(name: str) -> ColumnReader:
    """A figure of the unprofiled passes."""
    return from_variant(lambda variant: getattr(variant.measured, name) if variant.measured is not None else None)


def epochs(member: Member) -> int:
    """The number of epochs over which the cost of compiling is spread: those trained, or else a usual number."""
    return (member.run.epochs if member.run is not None else 0) or SPREAD_EPOCHS


def memory(name: str) -> ColumnReader:
    """A figure of the memory."""
    return from_variant(lambda variant: getattr(variant.memory, name))


def interval(end: int) -> ColumnReader:
    """One end of the confidence interval of a step: 0 is the lower one, 1 the upper one."""

    def read(variant: Variant) -> float | None:
        ends = step_interval(variant.measured) if variant.measured is not None else None
        return ends[end] if ends is not None else None

    return from_variant(read)


def mean_ns(view: str) -> ColumnReader:
    """The mean of the counted steps of the trace: `wall` or `host`."""

    def read(_: Report, profile: Profile) -> float | None:
        mean = profile.means[view]
        return mean.step_ns if mean is not None else None

    return from_profile(read)


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


def metric(index: int) -> ColumnReader:
    """The recipe's first metric: 0 is its name, 1 its value."""
    return from_variant(lambda variant: next((item[index] for item in variant.metrics.items()), None))


def throughput(variant: Variant) -> float | None:
    """Unprofiled steps in a second."""
    return 1e9 / variant.measured.step_ns if variant.measured is not None else None


def as_json(value: Any) -> str:
    """The value as JSON; equal values give equal text."""
    return json.dumps(value, sort_keys=True)
