"""Your modules and lines, with the variants side by side; for one bucket, if one is selected."""

import pyarrow as pa
from msgspec.structs import replace

from tracekit.base.units import duration
from tracekit.engine.buckets import BUCKETS
from tracekit.lines.means import OwnerMeans
from tracekit.report.owner_costs import OwnerCosts, VariantOwners
from tracekit.report.sections.lines import SideBySide
from tracekit.report.sections.owners import NO_MODULE, in_tree, with_inner
from tracekit.trace.schema import column
from tracekit.tui.model.bucket_table import deltas
from tracekit.tui.model.content import Content, Pane, prose, words
from tracekit.tui.model.opened import OpenReport, has_gpu
from tracekit.tui.model.panes.names import belongs_to, by_variant
from tracekit.tui.model.selection import NO_LINE, Kind, Selection
from tracekit.tui.model.sheet import Sheet

_MODULE = column("module", pa.string(), "the module, preceded by those that contain it", role="name")
_NARROWING: tuple[Kind, ...] = ("bucket", "module", "phase", "library")
_WINDOW_ASIDE = "A range of time does not narrow this: the owners of time are known only step by step."


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
        selected_means = []
        for mean in means.means:
            owner = means.owners[mean.owner]
            is_in_bucket = selection.of("bucket") in (None, mean.bucket)
            if is_in_bucket and belongs_to(selection, owner.module, owner.phase, owner.library):
                selected_means.append(mean)
        return OwnerMeans(owners=means.owners, means=selected_means, sources=means.sources)

    return [replace(variant, means=restricted(variant.means)) for variant in variants]


def _nothing_known(opened: OpenReport, owner_kind: str) -> str:
    reasons = [variant.means.reason for variant in opened.owners if variant.means.reason]
    return f"No {owner_kind} is known for the selection{f': {reasons[0]}' if reasons else ''}."


MODULES = Pane(
    "modules",
    "Modules",
    "How much of a step each module takes, including the modules that it calls. Enter shows its lines.",
    modules,
    lambda opened: any(variant.share(lambda owner: bool(owner.module)) for variant in opened.owners),
    chapters=frozenset({"modules"}),
    key="M",
)
LINES = Pane(
    "lines",
    "Lines",
    "How much of a step each line of yours takes; lines that the compiler fused share a row. Enter shows it in "
    "its file.",
    lines,
    lambda opened: any(variant.total_ns for variant in opened.owners),
    chapters=frozenset({"lines"}),
    key="L",
)
