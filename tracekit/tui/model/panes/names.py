"""Kernels and operators, joined over the variants: how much of a step each name takes, with additive differences."""

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa

from tracekit.base.intervals import Bools, Ints, Rows
from tracekit.base.names import sanitize, short
from tracekit.base.units import duration
from tracekit.engine.buckets import BUCKETS, ON_THE_GPU
from tracekit.faces.shared.cells import DELTA
from tracekit.findings.culprits import NOTHING
from tracekit.lines.owners import PHASES, OwnerNumbers, Owners
from tracekit.profile import Profile
from tracekit.trace.steps import in_steps
from tracekit.tui.model.bucket_table import deltas, joined
from tracekit.tui.model.content import Content, Pane, Prose, prose, words
from tracekit.tui.model.opened import OpenReport, steps_of
from tracekit.tui.model.selection import NO_LINE, Kind, Selection
from tracekit.tui.model.sheet import Sheet
from tracekit.tui.model.work import Work
from tracekit.vocabulary.kernel_names import short_kernel

OWNING: tuple[Kind, ...] = ("line", "module", "phase", "library")
_NARROWING: tuple[Kind, ...] = ("steps", "bucket", "operator", "window", *OWNING)
_CRUMB = 32
_NAME_WIDTH = 12  # characters of a variant's name in a title


def kernels(opened: OpenReport, selection: Selection) -> Content:
    """Kernels and copies by name."""
    profiles = [profile for profile in opened.profiles_of(selection) if profile.trace.device == "gpu"]
    if not profiles:
        return Content((prose("No variant has GPU activity: the operators show what takes the time."),))
    if any(selection.of(kind) is not None for kind in _NARROWING):
        tables = {profile.name: _by_kernel(opened, profile, selection) for profile in profiles}
    else:
        tables = opened.tables("kernels", profiles)
    sheet = _sheet("kernels", "GPU time", tables, opened, _narrowing_to(selection, "kernel", "instances"))
    return Content((sheet, *words(opened, selection, "joined_kernels"), *words(opened, selection, "kernels")))


def operators(opened: OpenReport, selection: Selection) -> Content:
    """Operators by the GPU time that they launch, or by their own computing; for a host bucket, what is to blame."""
    profiles, bucket = opened.profiles_of(selection), selection.of("bucket")
    if bucket is not None and bucket not in ON_THE_GPU:
        tables = {
            profile.name: _by_event(profile, opened.behind(profile, selection), selection) for profile in profiles
        }
        subject = f"{BUCKETS[bucket].label}, by what is to blame for it,"
        return Content(
            (_sheet("operators", subject, tables, opened, _narrowing_to(selection, "operator", "instances")),)
        )
    if any(profile.trace.device == "gpu" for profile in profiles):
        gpu_profiles = [profile for profile in profiles if profile.trace.device == "gpu"]
        tables = {profile.name: _by_operator(opened, profile, selection) for profile in gpu_profiles}
        subject = "GPU time, by the operator that launched it,"
        return Content((_sheet("operators", subject, tables, opened, _narrowing_to(selection, "operator", "kernels")),))
    if any(selection.of(kind) is not None for kind in _NARROWING if kind != "operator"):
        tables = {profile.name: _by_event(profile, opened.work(profile), selection) for profile in profiles}
    else:
        tables = opened.tables("operators", profiles)
    sheet = _sheet("operators", "CPU compute", tables, opened, _narrowing_to(selection, "operator", "instances"))
    return Content((sheet, *words(opened, selection, "operators")))


def work_chosen(profile: Profile, work: Work, selection: Selection, steps: Bools) -> Bools:
    """The rows of the work that are in these steps and belong to the selected bucket, operator and line."""
    is_selected = in_steps(steps, work.step)
    if (window := selection.of("window")) is not None:
        is_selected = _in_window(profile, work, window)
    bucket, operator = selection.of("bucket"), selection.of("operator")
    if bucket in ON_THE_GPU:
        is_selected = is_selected & work.kinds(bucket)
    if operator is not None and profile.trace.device == "gpu" and (bucket is None or bucket in ON_THE_GPU):
        is_selected = is_selected & (work.operator == name_code(profile, operator))
    return is_selected & of_owner(profile, work.event, selection)


def _in_window(profile: Profile, work: Work, window: tuple[str, int, int]) -> Bools:
    """The rows that start in the selected stretch of time of one variant."""
    name, start, end = window
    event_ns = profile.trace.ts_ns[np.maximum(work.event, 0)] if len(profile.trace.ts_ns) else work.event
    in_window: Bools = (event_ns >= start) & (event_ns < end) & (work.event >= 0) & (profile.name == name)
    return in_window


def _spread(selection: Selection, steps: Bools) -> int:
    """The number of steps by which sums are divided: a stretch of time counts as one."""
    return 1 if selection.of("window") is not None else int(steps.sum())


def name_code(profile: Profile, name: str) -> int:
    """The number of a name in a trace; −2, which no event has, if the trace has no such name."""
    names = profile.trace.names
    return names.index(name) if name in names else -2


def of_owner(profile: Profile, events: Ints | Rows, selection: Selection) -> Bools:
    """The events that belong to the selected line, module, phase and library; −1, which is none, belongs to none."""
    if all(selection.of(kind) is None for kind in OWNING):
        return np.ones(len(events), bool)
    ownership = profile.ownership
    numbers = ownership.of_events(np.asarray(events, np.int64))
    belongs: Bools = owned_by(ownership.owners, selection)[numbers]
    return belongs


def owned_by(owners: Owners, selection: Selection) -> Bools:
    """Which of the owners are of the selected line, module, phase and library."""
    line, chain = selection.of("line"), selection.of("module")
    phase, library = selection.of("phase"), selection.of("library")

    def fits(row: OwnerNumbers) -> bool:
        group, module = owners.groups[row.group], owners.modules[row.module]
        return (
            (
                line is None
                or (
                    any((user_line.file, user_line.line) == line for user_line in group)
                    if line != NO_LINE
                    else not group
                )
            )
            and (chain is None or (module[: len(chain)] == chain if chain else not module))
            and (phase is None or PHASES[row.phase] == phase)
            and (library is None or owners.libraries[row.library] == library)
        )

    return np.array([fits(row) for row in owners.rows], bool)


def _by_kernel(opened: OpenReport, profile: Profile, selection: Selection) -> pa.Table:
    work, steps = opened.work(profile), steps_of(profile, selection)
    return work.by_name(work.name, work_chosen(profile, work, selection, steps), _spread(selection, steps), "kernel")


def _by_operator(opened: OpenReport, profile: Profile, selection: Selection) -> pa.Table:
    work, steps = opened.work(profile), steps_of(profile, selection)
    is_selected = work_chosen(profile, work, selection.without("operator"), steps)
    return work.by_name(work.operator, is_selected, _spread(selection, steps))


def _by_event(profile: Profile, work: Work, selection: Selection) -> pa.Table:
    steps = steps_of(profile, selection)
    is_selected = work_chosen(profile, work, selection.without("operator"), steps)
    return work.by_name(work.name, is_selected, _spread(selection, steps))


def _sheet(
    name: str, subject: str, tables: Mapping[str, pa.Table], opened: OpenReport, to: Callable[[str], Selection]
) -> Sheet | Prose:
    if not tables:
        return prose("The selection contains none of it.")
    of_no_step = all(len(table) and table["step_ns"].null_count == len(table) for table in tables.values())
    value, number = ("total_ns", "count") if of_no_step else ("step_ns", "per_step")
    table = joined(tables, ("name", "class"), value, number, opened.report.baselines)
    changes = deltas(table)
    sort = (changes[0], True) if len(changes) == 1 else (table.column_names[2], True)
    names = table["name"].to_pylist()
    return Sheet(
        name,
        table,
        _total(subject, table, [*tables]),
        lambda row: None if names[row] == NOTHING else to(names[row]),
        sort,
        variants=(*tables,),
    )


def _total(subject: str, table: pa.Table, variants: list[str]) -> str:
    """`GPU time of 174 names: eager 46.9 ms, compiled 85.7 ms (Δ +38.8 ms)`."""
    totals = []
    for name, short_name in zip(variants, short(variants, _NAME_WIDTH), strict=True):
        total = float(np.nansum(table[f"{name}_ns"].to_numpy()))
        change, delta = f"{DELTA} {name}_ns", ""
        if change in table.column_names:
            difference = float(np.nansum(table[change].to_numpy()))
            delta = f" ({DELTA} {duration(difference, signed=True, like=total)})"
        totals.append(f"{short_name} {duration(total)}{delta}" if len(variants) > 1 else duration(total))
    names = "1 name" if table.num_rows == 1 else f"{table.num_rows:,} names"
    return f"{subject} of {names}: {', '.join(totals)}"


def _narrowing_to(selection: Selection, kind: Kind, pane: str) -> Callable[[str], Selection]:
    shorten = short_kernel if kind == "kernel" else str
    return lambda name: selection.narrowed(kind, name, sanitize(shorten(name), _CRUMB), pane)


KERNELS = Pane(
    "kernels",
    "Kernels",
    "How much of a step each kernel and copy takes in every variant; the differences add up to the total difference. "
    "Enter shows its instances.",
    kernels,
    lambda opened: any(profile.trace.device == "gpu" for profile in opened.report.profiles),
    chapters=frozenset({"kernels", "joined_kernels"}),
    key="K",
)
OPERATORS = Pane(
    "operators",
    "Operators",
    "GPU time by the operator that launched it; without a GPU, the CPU time of each operator. If a bucket of the host "
    "is selected, the events to blame for it, which add up to the bucket. Enter shows what is behind a name.",
    operators,
    chapters=frozenset({"operators"}),
    key="O",
)
