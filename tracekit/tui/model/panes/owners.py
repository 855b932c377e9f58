"""Your modules and lines, with the variants side by side, for one bucket if one is selected; and a file of yours, with
what each line of it costs in every variant.
"""

import math
import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePath

import pyarrow as pa
from msgspec.structs import replace

from tracekit.base.units import duration
from tracekit.engine.buckets import BUCKETS
from tracekit.lines.means import OwnerMeans
from tracekit.report.owner_costs import OwnerCosts, SourceCosts, VariantOwners, source_costs, sources, steps_of
from tracekit.report.sections.lines import SideBySide
from tracekit.report.sections.owners import NO_MODULE, in_tree, with_inner
from tracekit.trace.schema import column
from tracekit.tui.model.bucket_table import deltas
from tracekit.tui.model.content import Code, Content, Pane, Place, prose, words
from tracekit.tui.model.opened import OpenReport, has_gpu
from tracekit.tui.model.panes.names import belongs_to, by_variant, kernels, operators
from tracekit.tui.model.selection import NO_LINE, Kind, Selection
from tracekit.tui.model.sheet import Sheet, table_from

_MODULE = column("module", pa.string(), "the module, preceded by those that contain it", role="name")
_NARROWING: tuple[Kind, ...] = ("bucket", "module", "phase", "library")
_WINDOW_ASIDE = "A range of time does not narrow this: the owners of time are known only step by step."
_MOST_BYTES = 4 << 20  # of a file that is read because it was not captured
_HEAT, _EIGHTHS = 8, ("", *"▏▎▍▌▋▊▉")  # cells of the longest bar, and what ends one
_FUSED = ("+", "#8854d0")
_NO_FILE = "{} is neither in the recording nor found on this machine. Start tracekit in the folder that it is in."


def modules(opened: OpenReport, selection: Selection) -> Content:
    """A tree: below each module those that it calls, whose time its own includes."""
    variants = _selected_owners(opened, selection.without("module"))
    if not any(variant.share(lambda owner: bool(owner.module)) for variant in variants):
        return Content((prose(_nothing_known(opened, "module")),))
    inclusive = OwnerCosts(
        [with_inner(variant) for variant in variants], lambda owner: owner.module, opened.report.baselines
    )
    order = in_tree([variant.by(inclusive.key) for variant in inclusive.variants])
    names = [f"{'  ' * max(len(chain) - 1, 0)}{chain[-1]}" if chain else NO_MODULE for chain in order]

    def enter(row: int) -> Selection:
        chain = order[row]
        return selection.narrowed("module", chain, chain[-1] if chain else NO_MODULE, "lines")

    sheet = Sheet("modules", inclusive.table([(_MODULE, names)], order), "Modules, with those inside", enter)
    return _content(sheet, variants, opened, selection)


def lines(opened: OpenReport, selection: Selection) -> Content:
    """Lines, and groups of lines that were fused; they add up to the step."""
    variants = _selected_owners(opened, selection)
    if not any(variant.total_ns for variant in variants):
        return Content((prose(_nothing_known(opened, "line of yours")),))
    side_by_side = SideBySide(variants, opened.report.baselines)
    table = side_by_side.table()
    behind = "kernels" if has_gpu(opened.profiles_of(selection)) else "operators"

    def enter(row: int) -> Selection:
        if not side_by_side.order[row]:
            return selection.narrowed("line", NO_LINE, str(table["line"][row]), behind)
        line = side_by_side.order[row][0]  # of lines that were fused, the first
        return selection.to_line(line.file, line.line)

    changes = deltas(table)
    sort = (changes[0], True) if len(changes) == 1 else None
    return _content(Sheet("lines", table, "Your lines", enter, sort), variants, opened, selection)


def _content(sheet: Sheet, variants: list[VariantOwners], opened: OpenReport, selection: Selection) -> Content:
    """The sheet, with the bucket and what each variant spends after its title, and what the report says about it."""
    bucket = selection.of("bucket")
    subject = sheet.title if bucket is None else f"{sheet.title} of {BUCKETS[bucket].label}"
    names = [variant.name for variant in variants]
    totals = by_variant(names, [duration(variant.total_ns) for variant in variants])
    sheet = replace(sheet, title=f"{subject}: {totals}", variants=tuple(names))
    aside = () if selection.of("window") is None else (prose(_WINDOW_ASIDE, tone="quiet"),)
    return Content((*aside, sheet, *words(opened, selection, sheet.name)))


def _selected_owners(opened: OpenReport, selection: Selection) -> list[VariantOwners]:
    """The owners of the shown variants in the selected steps, restricted to the selected bucket, module, phase and
    library.
    """
    names = {profile.name for profile in opened.profiles_of(selection)}
    variants = [variant for variant in opened.owners_over(selection) if variant.name in names]
    if all(selection.of(kind) is None for kind in _NARROWING):
        return variants

    def restricted(means: OwnerMeans) -> OwnerMeans:
        selected_means = [
            mean
            for mean, owner in ((mean, means.owners[mean.owner]) for mean in means.means)
            if selection.of("bucket") in (None, mean.bucket)
            and belongs_to(selection, owner.module, owner.phase, owner.library)
        ]
        return OwnerMeans(owners=means.owners, means=selected_means, sources=means.sources)

    return [replace(variant, means=restricted(variant.means)) for variant in variants]


def _nothing_known(opened: OpenReport, owner_kind: str) -> str:
    reasons = [variant.means.reason for variant in opened.owners if variant.means.reason]
    return f"No {owner_kind} is known for the selection{f': {reasons[0]}' if reasons else ''}."


def source(opened: OpenReport, selection: Selection) -> Content:
    """The file of the selected line, or else that of the costliest line; without the file, what the line runs."""
    line_key = selection.of("line")
    if line_key not in (None, NO_LINE):
        place = Place(*line_key)
    else:
        files, total = sources(opened.owners), defaultdict[tuple[str, int], float](float)
        for variant in opened.owners:
            for lines, ns in variant.by(lambda owner: owner.lines).items():
                for line in lines:
                    if line.file in files:
                        total[line.file, line.line] += ns
        if not total:
            return Content((prose("No line is selected, and no recording shows which lines cost most."),))
        place = Place(*max(total, key=lambda key: total[key]))
    code = code_at(opened, place, selection)
    if code is None:
        query = kernels if has_gpu(opened.report.profiles) else operators
        behind = query(opened, selection.to_line(place.file, place.line, None))
        return Content((prose(_NO_FILE.format(place.file)), *behind.pieces))
    return Content((code,), (0, max(place.line - 1, 0)))


def code_at(opened: OpenReport, place: Place, selection: Selection) -> Code | None:
    """The file around a line, as captured or else as it is on this machine; None if it is in neither."""
    file = matching(sources(opened.owners), place.file)
    if file is not None:
        costs = source_costs(opened.owners_over(selection), file)
        return Code(_source_sheet(costs, opened, selection), file, place.line)
    path = on_this_machine(opened, place.file)
    try:
        if path is None or os.path.getsize(path) > _MOST_BYTES:
            return None
        text = path.read_text("utf-8", "replace")
    except OSError:
        return None
    known_files = {line.file for variant in opened.owners for owner in variant.means.owners for line in owner.lines}
    costs = source_costs(opened.owners_over(selection), matching(known_files, place.file) or place.file, text)
    sheet = _source_sheet(costs, opened, selection, " as it is now: the recording does not contain it")
    return Code(sheet, place.file, place.line)


def matching(files: Iterable[str], name: str) -> str | None:
    """The file with that path, or else the only one whose path ends with the name, or that the name ends with."""
    paths = [*files]
    if name in paths:
        return name
    parts, fitting = PurePath(name).parts, []
    for file in paths:
        file_parts = PurePath(file).parts
        count = min(len(parts), len(file_parts))
        if count and parts[-count:] == file_parts[-count:]:
            fitting.append(file)
    return fitting[0] if len(fitting) == 1 else None


def on_this_machine(opened: OpenReport, file: str) -> Path | None:
    """Where an editor finds the file: as named, beside what was run, or by its last folders below the current one."""
    beside = [Path(run.script).parent for run in opened.report.subject.runs.values()]
    parts = PurePath(file).parts
    tries = [Path(file), *(folder / file for folder in beside), *(Path(*parts[k:]) for k in range(1, len(parts)))]
    return next((path for path in tries if path.is_file()), None)


def _source_sheet(costs: SourceCosts, opened: OpenReport, selection: Selection, remark: str = "") -> Sheet:
    """A row for each line of the file."""
    lines = [line.expandtabs(4) for line in costs.text.splitlines()]
    numbers = [*range(1, len(lines) + 1)]
    names = [owner.name for owner in opened.owners]
    alone = {name: [costs.alone[name].get(number, 0.0) for number in numbers] for name in names}
    fused = costs.fused_by_line()
    steps = steps_of(opened.owners_over(selection))
    shares = [max((alone[n][k] / steps[n] for n in names if steps[n]), default=0.0) for k in range(len(lines))]
    largest_share = max(shares, default=0.0) or 1.0
    variant_phrase = "" if len(names) == 1 else ", in the variant in which it is largest"
    meaning = "what the line alone costs per counted step"
    columns: list[tuple[pa.Field, Sequence[object]]] = [
        (column(f"{name}_ns", pa.float64(), meaning, "ns", title=name), alone[name]) for name in names
    ]
    meaning = f"share of a step that the line alone costs{variant_phrase}"
    columns.append((column("share", pa.float64(), meaning, "share"), shares))
    meaning = "the same as a bar, scaled to the costliest line"
    bars = [heat(share / largest_share) for share in shares]
    columns.append((column("heat", pa.string(), meaning, role="bar"), bars))
    columns.append((column("line", pa.int64(), "number of the line", role="identity"), numbers))
    columns.append((column("text", pa.string(), "", role="code"), lines))
    for name in names:
        meaning = f"cost in {name} of kernels that were fused from this line and others; never split between them"
        title = f"{name} with others"
        kind = column(f"{title}_ns", pa.float64(), meaning, "ns", role="detail", title=title)
        columns.append((kind, [fused[name].get(number) for number in numbers]))
    columns.append((column("file", pa.string(), "", role="source"), [costs.file] * len(lines)))
    behind = "kernels" if has_gpu(opened.report.profiles) else "operators"
    return Sheet(
        "source",
        table_from(columns),
        f"{costs.file}{remark}",
        lambda row: selection.to_line(costs.file, row + 1, behind),
        sort_keys={"heat": "share"},
        marks={number - 1: _FUSED for name in names for number in fused[name]},
        variants=(*names,),
    )


def heat(part: float) -> str:
    """A bar of that part of its full length; a line that costs anything has one."""
    eighths = math.ceil(part * _HEAT * 8)
    return f"{'█' * (eighths // 8)}{_EIGHTHS[eighths % 8]}"


PANES = (
    Pane(
        "modules",
        "Modules",
        "How much of a step each module takes, including the modules that it calls. Enter shows its lines.",
        modules,
        lambda opened: any(variant.share(lambda owner: bool(owner.module)) for variant in opened.owners),
        chapters=frozenset({"modules"}),
        key="M",
    ),
    Pane(
        "lines",
        "Lines",
        "How much of a step each line of yours takes; lines that the compiler fused share a row. Enter shows it in "
        "its file.",
        lines,
        lambda opened: any(variant.total_ns for variant in opened.owners),
        chapters=frozenset({"lines"}),
        key="L",
    ),
    Pane(
        "source",
        "Source",
        "Your file, with what each line costs by itself in every variant, and its share of a step; + marks lines that "
        "were fused with others: their common cost is shown below the table and never split. Enter shows the kernels "
        "or operators of a line, e opens it in $EDITOR.",
        source,
        lambda opened: bool(sources(opened.owners)),
        key="S",
    ),
)
