"""Kernels and operators, joined over the variants: how much of a step each name takes, with additive differences."""

from collections.abc import Mapping

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
from tracekit.trace.schema import Role
from tracekit.trace.steps import in_steps
from tracekit.tui.model.bucket_table import deltas, joined
from tracekit.tui.model.content import Content, Pane, Prose, prose, words
from tracekit.tui.model.opened import OpenReport, Work, has_gpu, steps_of
from tracekit.tui.model.selection import NO_LINE, Kind, Selection
from tracekit.tui.model.sheet import Sheet
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
        tables = {profile.name: _sums(profile, opened.work(profile), selection, "kernel") for profile in profiles}
    else:
        tables = opened.tables("kernels", profiles)
    sheet = _sheet("kernel", "GPU time", tables, opened, selection, pane="instances")
    return Content((sheet, *words(opened, selection, "joined_kernels"), *words(opened, selection, "kernels")))


def operators(opened: OpenReport, selection: Selection) -> Content:
    """Operators by the GPU time that they launch, or by their own computing; for a host bucket, what is to blame."""
    profiles, all_operators = opened.profiles_of(selection), selection.without("operator")
    on_gpu = has_gpu(profiles) and not selection.is_of_host
    subject, pane = "CPU compute", "instances"
    if on_gpu:
        subject, pane = "GPU time, by the operator that launched it,", "kernels"
        profiles = [profile for profile in profiles if profile.trace.device == "gpu"]
    elif selection.is_of_host:
        subject = f"{BUCKETS[selection.of('bucket')].label}, by what is to blame for it,"
    if on_gpu or any(all_operators.of(kind) is not None for kind in _NARROWING):
        tables = {p.name: _sums(p, opened.behind(p, all_operators), all_operators, by_launch=on_gpu) for p in profiles}
    else:
        tables = opened.tables("operators", profiles)
    sheet = _sheet("operator", subject, tables, opened, selection, pane=pane)
    return Content((sheet, *(() if on_gpu else words(opened, selection, "operators"))))


def work_chosen(profile: Profile, work: Work, selection: Selection, steps: Bools) -> Bools:
    """The rows of the work that are in these steps, or start in the selected stretch of time of one variant, and belong
    to the selected bucket, operator and line.
    """
    is_selected = in_steps(steps, work.step)
    if (window := selection.of("window")) is not None:
        variant, start, end = window
        event_ns = profile.trace.ts_ns[np.maximum(work.event, 0)] if len(profile.trace.ts_ns) else work.event
        is_selected = (event_ns >= start) & (event_ns < end) & (work.event >= 0) & (profile.name == variant)
    bucket, operator = selection.of("bucket"), selection.of("operator")
    if bucket in ON_THE_GPU:
        is_selected = is_selected & work.kinds(bucket)
    if operator is not None and profile.trace.device == "gpu" and not selection.is_of_host:
        is_selected = is_selected & (work.operator == name_code(profile, operator))
    return is_selected & of_owner(profile, work.event, selection)


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
    line = selection.of("line")

    def fits(row: OwnerNumbers) -> bool:
        lines = {(source.file, source.line) for source in owners.groups[row.group]} or {NO_LINE}
        module, phase, library = owners.modules[row.module], PHASES[row.phase], owners.libraries[row.library]
        return (line is None or line in lines) and belongs_to(selection, module, phase, library)

    return np.array([fits(row) for row in owners.rows], bool)


def belongs_to(selection: Selection, module: tuple[str, ...], phase: str, library: str) -> bool:
    """Whether what is of this module, phase and library is of those that are selected."""
    chain = selection.of("module")
    return (
        (chain is None or (module[: len(chain)] == chain if chain else not module))
        and selection.of("phase") in (None, phase)
        and selection.of("library") in (None, library)
    )


def _sums(
    profile: Profile, work: Work, selection: Selection, role: Role = "name", *, by_launch: bool = False
) -> pa.Table:
    """The sums of the selected work by its names, or by those of the operators that launched it; per step, of which a
    stretch of time counts as one.
    """
    steps = steps_of(profile, selection)
    number = 1 if selection.of("window") is not None else int(steps.sum())
    names = work.operator if by_launch else work.name
    return work.by_name(names, work_chosen(profile, work, selection, steps), number, role)


def _sheet(
    kind: Kind, subject: str, tables: Mapping[str, pa.Table], opened: OpenReport, selection: Selection, *, pane: str
) -> Sheet | Prose:
    """The kernels or the operators, as in `GPU time of 174 names: eager 46.9 ms, compiled 85.7 ms (Δ +38.8 ms)`; Enter
    narrows to one of them, and shows that pane.
    """
    if not tables:
        return prose("The selection contains none of it.")
    of_no_step = all(len(table) and table["step_ns"].null_count == len(table) for table in tables.values())
    value, number = ("total_ns", "count") if of_no_step else ("step_ns", "per_step")
    table = joined(tables, ("name", "class"), value, number, opened.report.baselines)
    changes = deltas(table)
    sort = (changes[0], True) if len(changes) == 1 else (table.column_names[2], True)
    names = table["name"].to_pylist()
    totals = []
    for name in tables:
        total = float(np.nansum(table[f"{name}_ns"].to_numpy()))
        change, delta = f"{DELTA} {name}_ns", ""
        if change in table.column_names:
            difference = float(np.nansum(table[change].to_numpy()))
            delta = f" ({DELTA} {duration(difference, signed=True, like=total)})"
        totals.append(f"{duration(total)}{delta}")
    extent = "1 name" if table.num_rows == 1 else f"{table.num_rows:,} names"
    title = f"{subject} of {extent}: {by_variant([*tables], totals)}"

    def enter(row: int) -> Selection | None:
        return None if names[row] == NOTHING else to_name(selection, kind, names[row], pane)

    return Sheet(f"{kind}s", table, title, enter, sort, variants=(*tables,))


def by_variant(names: list[str], totals: list[str]) -> str:
    """The totals of the variants, each after its name if there are several."""
    if len(names) > 1:
        totals = [f"{name} {total}" for name, total in zip(short(names, _NAME_WIDTH), totals, strict=True)]
    return ", ".join(totals)


def to_name(selection: Selection, kind: Kind, name: str, pane: str) -> Selection:
    """Narrowed to a kernel or an operator, and shown in that pane."""
    label = short_kernel(name) if kind == "kernel" else name
    return selection.narrowed(kind, name, sanitize(label, _CRUMB), pane)


KERNELS = Pane(
    "kernels",
    "Kernels",
    "How much of a step each kernel and copy takes in every variant; the differences add up to the total difference. "
    "Enter shows its instances.",
    kernels,
    lambda opened: has_gpu(opened.report.profiles),
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
