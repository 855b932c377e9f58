"""Your modules and lines, with the variants side by side; for one bucket, if one is selected."""

import pyarrow as pa
from msgspec.structs import replace

from tracekit.base.names import short
from tracekit.base.units import duration
from tracekit.engine.buckets import BUCKETS
from tracekit.lines.means import OwnerMean, OwnerMeans
from tracekit.report.owner_costs import OwnerCosts, VariantOwners
from tracekit.report.sections.lines import SideBySide
from tracekit.report.sections.owners import NO_MODULE, in_tree, with_inner
from tracekit.trace.schema import column
from tracekit.tui.model.bucket_table import deltas
from tracekit.tui.model.content import Content, Pane, Piece, prose, words
from tracekit.tui.model.opened import OpenReport
from tracekit.tui.model.selection import NO_LINE, Selection
from tracekit.tui.model.sheet import Sheet

_MODULE = column("module", pa.string(), "the module, preceded by those that contain it", role="name")
_NAME_WIDTH = 12  # characters of a variant's name in a title
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
    table = inclusive.table([(_MODULE, names)], order)

    def enter(row: int) -> Selection:
        chain = order[row]
        return selection.narrowed("module", chain, chain[-1] if chain else NO_MODULE, "lines")

    sheet = Sheet(
        "modules",
        table,
        _title("Modules, with those inside", variants, selection),
        enter,
        variants=_names(variants),
    )
    return _content(sheet, selection, words(opened, selection, "modules"))


def lines(opened: OpenReport, selection: Selection) -> Content:
    """Lines, and groups of lines that were fused; they add up to the step."""
    variants = _selected_owners(opened, selection)
    if not any(variant.total_ns for variant in variants):
        return Content((prose(_nothing_known(opened, "line of yours")),))
    side_by_side = SideBySide(variants, opened.report.baselines)
    table = side_by_side.table()

    behind = (
        "kernels" if any(profile.trace.device == "gpu" for profile in opened.profiles_of(selection)) else "operators"
    )

    def enter(row: int) -> Selection:
        if not side_by_side.order[row]:
            return selection.narrowed("line", NO_LINE, str(table["line"][row]), behind)
        line = side_by_side.order[row][0]  # of lines that were fused, the first
        label = f"{line.file.rsplit('/', 1)[-1]}:{line.line}"
        return selection.narrowed("line", (line.file, line.line), label, "source")

    changes = deltas(table)
    sort = (changes[0], True) if len(changes) == 1 else None
    sheet = Sheet(
        "lines",
        table,
        _title("Your lines", variants, selection),
        enter,
        sort,
        variants=_names(variants),
    )
    return _content(sheet, selection, words(opened, selection, "lines"))


def _content(sheet: Sheet, selection: Selection, sentences: tuple[Piece, ...]) -> Content:
    aside = () if selection.of("window") is None else (prose(_WINDOW_ASIDE, tone="quiet"),)
    return Content((*aside, sheet, *sentences))


def _selected_owners(opened: OpenReport, selection: Selection) -> list[VariantOwners]:
    """The owners of the shown variants in the selected steps, restricted to the selected bucket, module, phase and
    library.
    """
    names = {profile.name for profile in opened.profiles_of(selection)}
    bucket, chain = selection.of("bucket"), selection.of("module")
    phase, library = selection.of("phase"), selection.of("library")

    def matches(means: OwnerMeans, mean: OwnerMean) -> bool:
        owner = means.owners[mean.owner]
        return (
            (chain is None or (owner.module[: len(chain)] == chain if chain else not owner.module))
            and (bucket is None or mean.bucket == bucket)
            and (phase is None or owner.phase == phase)
            and (library is None or owner.library == library)
        )

    variants = [variant for variant in opened.owners_over(selection) if variant.name in names]
    if all(narrowing is None for narrowing in (bucket, chain, phase, library)):
        return variants
    return [
        _with_means(variant, [mean for mean in variant.means.means if matches(variant.means, mean)])
        for variant in variants
    ]


def _with_means(variant: VariantOwners, means: list[OwnerMean]) -> VariantOwners:
    return replace(variant, means=OwnerMeans(owners=variant.means.owners, means=means, sources=variant.means.sources))


def _title(subject: str, variants: list[VariantOwners], selection: Selection) -> str:
    bucket = selection.of("bucket")
    bucket_phrase = f" of {BUCKETS[bucket].label}" if bucket is not None else ""
    names = short([variant.name for variant in variants], _NAME_WIDTH)
    totals = [duration(variant.total_ns) for variant in variants]
    variant_totals = (
        [f"{name} {total}" for name, total in zip(names, totals, strict=True)] if len(names) > 1 else totals
    )
    return f"{subject}{bucket_phrase}: {', '.join(variant_totals)}"


def _names(variants: list[VariantOwners]) -> tuple[str, ...]:
    return tuple(variant.name for variant in variants)


def _nothing_known(opened: OpenReport, owner_kind: str) -> str:
    reasons = [variant.means.reason for variant in opened.owners if variant.means.reason]
    return f"No {owner_kind} is known for the selection{f': {reasons[0]}' if reasons else ''}."


def are_known(opened: OpenReport) -> bool:
    """Whether the time of any variant could be assigned to lines or modules."""
    return any(variant.total_ns for variant in opened.owners)


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
    are_known,
    chapters=frozenset({"lines"}),
    key="L",
)
