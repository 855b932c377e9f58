"""What does each line of yours cost, with all variants side by side? And the table `lines`, for programs: what each
owner costs in each bucket.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import pyarrow as pa
from msgspec import Struct, field

from tracekit.base.names import sanitize
from tracekit.base.units import duration, percent
from tracekit.errors.reading import NoSuchSourceError
from tracekit.lines.calls import LineCalls
from tracekit.lines.means import Owner, OwnerMeans
from tracekit.lines.owners import Group, functions_of, short
from tracekit.report.blocks import Block, Excerpt, Sentences, Table
from tracekit.report.model import Report
from tracekit.report.owner_costs import (
    OwnerCosts,
    Row,
    VariantOwners,
    owners_by_variant,
    rows,
    source_costs,
    sources,
    steps_of,
)
from tracekit.report.section import Contents, of_run
from tracekit.trace.schema import LABEL, column

LINES = pa.schema(
    [
        column("variant", LABEL, "name of the variant", role="name"),
        column("file", LABEL, "your file; null for groups, and for time without a line of yours", role="place"),
        column(
            "line",
            pa.int64(),
            "line number in the file; null where only the function is known, and for groups",
            role="place",
        ),
        column("lines", pa.list_(pa.string()), "the lines as FILE:LINE: one, or those that were fused", role="place"),
        column("function", LABEL, "your function", role="place"),
        column("library", LABEL, "the library that the line calls", role="name"),
        column("module", LABEL, "enclosing modules, outermost first", role="name"),
        column(
            "phase",
            LABEL,
            "data, graph building, forward, backward (inner, double), optimizer, eval, saving or other",
            role="name",
        ),
        column("view", LABEL, "wall or host", role="name"),
        column("bucket", LABEL, "bucket that the time belongs to", role="name"),
        column("row", LABEL, "the lines of the row that it belongs to where variants are compared", role="name"),
        column("step_ns", pa.float64(), "mean per counted step; the rows add up to the bucket", "ns"),
        column(
            "divided_ns", pa.float64(), "of this, estimated: time between two operators that several lines share", "ns"
        ),
    ]
)
FUSED = pa.schema(
    [
        column("fused_lines", pa.string(), "lines that were fused into one kernel", role="place"),
        column("variant", pa.string(), "variant that they were fused in", role="name"),
        column("step_ns", pa.float64(), "mean per counted step", "ns"),
    ]
)
NO_LINE = "no line of yours"
_FUSED = "+ marks the cost of kernels that several lines share: it is shown at each of these lines, but counted once."
_WORTH = 0.01  # share of a step below which a file is not shown as a whole
_MAIN_SHARE = 0.5  # of a step
_REPEATED = 2  # calls of one operator a step, which are told
_UNPROVEN = 5  # packages that a sentence can name


def _lines(owner: Owner) -> Group:
    return owner.lines


class SideBySide(Struct, frozen=True, dict=True):
    """Variants with the same rows, which add up to the step of each."""

    variants: list[VariantOwners]
    baselines: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def row_of(self) -> dict[Group, Row]:
        """Each line and group that occurs, and the row that it is part of."""
        zeros = [dict.fromkeys(map(_lines, variant.means.owners), 0.0) for variant in self.variants]
        return rows(zero_costs | variant.by(_lines) for zero_costs, variant in zip(zeros, self.variants, strict=True))

    def table(self) -> pa.Table:
        """A row per line or group, most expensive first."""
        order = self.order
        identity_columns = (
            (column("line", pa.string(), "your lines", role="place"), [short(row) or NO_LINE for row in order]),
            (column("function", pa.string(), "your function", role="detail"), [functions_of(row) for row in order]),
            (
                column("file", pa.string(), "file of the line; null for several lines", role="source"),
                [row[0].file if len(row) == 1 else None for row in order],
            ),
            (
                column("line_number", pa.int64(), "line number in the file", role="source"),
                [row[0].line if len(row) == 1 else None for row in order],
            ),
            (
                column(
                    "calls",
                    pa.string(),
                    "the operator that it calls most often in a step of any variant",
                    role="detail",
                ),
                [self._calls.get(row) for row in order],
            ),
        )
        return self._costs.table(identity_columns, order)

    @cached_property
    def _calls(self) -> dict[Row, str]:
        """By row, `1,037 × .item()`: what one of its lines calls most often; calls of once a step are not worth it."""
        most: dict[Row, LineCalls] = {}
        for one in (one for variant in self.variants for one in variant.calls):
            row = self.row_of.get(one.lines, one.lines)
            if one.calls >= _REPEATED and (row not in most or one.calls > most[row].calls):
                most[row] = one
        return {row: sanitize(one.in_words) for row, one in most.items()}

    @cached_property
    def _costs(self) -> OwnerCosts[Row]:
        return OwnerCosts(self.variants, lambda owner: self.row_of[owner.lines], self.baselines)

    @cached_property
    def order(self) -> list[Row]:
        """The rows of the table: the lines of each, most expensive first."""
        return self._costs.costliest_first()

    def every_row(self) -> pa.Table:
        """The same for programs: a row for each variant, view, owner and bucket; within each variant the most expensive
        first."""
        rows: list[dict[str, object]] = []
        for variant in self.variants:
            for mean in sorted(variant.means.means, key=lambda mean: (mean.view != "wall", -mean.step_ns, mean.owner)):
                lines, library, module, phase = variant.means.owners[mean.owner]
                single = lines[0] if len(lines) == 1 else None
                row: dict[str, object] = {
                    "variant": variant.name,
                    "file": single.file if single else None,
                    "line": single.line if single and not single.whole else None,
                    "lines": [line.text for line in lines],
                    "function": functions_of(lines),
                    "library": library or None,
                    "module": " · ".join(module) or None,
                    "phase": phase,
                    "view": mean.view,
                    "bucket": mean.bucket,
                    "row": ", ".join(line.text for line in self.row_of[lines]) or None,
                    "step_ns": mean.step_ns,
                    "divided_ns": mean.divided_ns,
                }
                rows.append(row)
        arrays = []
        for kind in LINES:
            values = [row[kind.name] for row in rows]
            is_label = kind.type == LABEL
            array = pa.array(values, pa.string() if is_label else kind.type)
            arrays.append(array.dictionary_encode() if is_label else array)
        return pa.Table.from_arrays(arrays, schema=LINES)

    def blocks(self) -> Iterator[Block]:
        """The report's blocks: how much is known, the rows, and the source of the most expensive function."""
        yield Sentences(tuple(_coverage_sentences(self.variants)))
        yield Table("lines", self.table(), exported=False)
        function_ns: dict[tuple[str, str], float] = {}
        for variant in self.variants:
            for group, ns in variant.by(_lines).items():
                for key in {(line.file, line.function) for line in group if line.file in self.sources}:
                    function_ns[key] = function_ns.get(key, 0.0) + ns
        if function_ns:
            yield from self.excerpts(*max(function_ns, key=lambda key: function_ns[key]))

    def files(self) -> Iterator[Block]:
        """The whole files that cost at least the least share worth showing."""
        for file in self.sources:
            costs = source_costs(self.variants, file)
            if any(costs.total_ns(variant.name) >= _WORTH * variant.total_ns > 0 for variant in self.variants):
                lines = tuple(costs.text.splitlines())
                yield Excerpt(file, 1, lines, costs.alone, costs.fused_by_line(), detail=True, is_whole_file=True)

    @cached_property
    def sources(self) -> dict[str, str]:
        """The user's files as they were at capture."""
        return sources(self.variants)

    def excerpts(self, file: str, function: str | None = None) -> Iterator[Block]:
        """A file, or a function of it, with what each line costs; lines that were fused follow as a table."""
        costs = source_costs(self.variants, file)
        lines = costs.text.splitlines()
        extents = {
            (definition.first, definition.last)
            for variant in self.variants
            for definition in variant.means.functions
            if (definition.file, definition.name) == (file, function)
        }
        for first, last in [(1, len(lines))] if function is None else sorted(extents):
            yield Excerpt(file, first, tuple(lines[first - 1 : last]), costs.alone, costs.fused_by_line())
        if costs.fused:
            yield Sentences((_FUSED,))
            rows = (
                {"fused_lines": short(fused.lines), "variant": fused.variant, "step_ns": fused.step_ns}
                for fused in costs.fused
            )
            yield Table.of("fused", rows, FUSED, detail=True, exported=False)

    def excerpts_at(self, place: str) -> list[Block]:
        """The same for `FILE` or `FILE:FUNCTION`, where FILE is the end of a path. Raises NoSuchSourceError."""
        name, _, function = place.rpartition(":")
        if not name:
            name, function = place, ""
        suffix = Path(name).parts
        fitting = [file for file in self.sources if suffix and Path(file).parts[-len(suffix) :] == suffix]
        if len(fitting) != 1:
            raise NoSuchSourceError(name, sorted(fitting or self.sources))
        blocks = [*self.excerpts(fitting[0], function or None)]
        if not any(isinstance(block, Excerpt) for block in blocks):
            raise NoSuchSourceError(place, self.functions(fitting[0]))
        return blocks

    def functions(self, file: str) -> list[str]:
        """The functions of a file."""
        return sorted(
            {
                definition.name
                for variant in self.variants
                for definition in variant.means.functions
                if definition.file == file
            }
        )


def _coverage_sentences(variants: Sequence[VariantOwners]) -> Iterator[str]:
    """How much of a step belongs to a known line, how much of that is estimated, and which variants have no lines."""
    answered = [variant for variant in variants if variant.total_ns]
    if answered:
        shares = {variant.name: percent(variant.share(lambda owner: bool(owner.lines))) for variant in answered}
        sentence = f"{_listed(shares, steps_of(answered))} belongs to your lines"
        divided = {
            variant.name: percent(variant.means.divided_ns(variant.view) / variant.total_ns) for variant in answered
        }
        if any(variant.means.divided_ns(variant.view) for variant in answered):
            sentence = (
                f"{sentence}. For {_listed(divided)} of a step, the split between lines is an estimate: the lines of a "
                "loop share its time, and where lines were read from other steps, so do those between two operators"
            )
        yield f"{sentence}."
    if any(line.whole for variant in answered for owner in variant.means.owners for line in owner.lines):
        yield "Only functions are known, not lines: each stands at its def. Capture with tracekit to get lines."
    if any(variant.means.by_calls for variant in answered):
        yield (
            "Lines are estimates: they are those of calls, and what calls nothing (a + b, x[i]) counts towards the "
            "call before it. Capture again to have every line."
        )
    if without_lines := _of_graph_calls(answered, lambda means: means.calls_without_lines):
        yield (
            f"Compiled kernels count at the line that calls their graph, for {without_lines} of its calls: which lines "
            "they come from is unknown. Captures with torch 2.9 or later record it."
        )
    if by_code := _of_graph_calls(answered, lambda means: means.by_code_calls):
        yield (
            f"For {by_code} of the calls of compiled graphs, lines are known only from comments in the generated code: "
            "a group may hold lines that its kernel does not come from, and kernels on the CPU count towards all lines "
            "of their graph. Captures with torch 2.9 or later record the lines of each kernel."
        )
    if nameless := [variant.name for variant in answered if variant.means.keeps_no_lines]:
        yield (
            f"{', '.join(nameless)}: this backend does not keep the lines that its graphs come from, as Inductor does, "
            f"so what they run is counted as {NO_LINE}."
        )
    for variant in variants:
        if not variant.total_ns:
            yield f"{variant.name}: {variant.means.reason or f'its {variant.view} time is unknown'}."
        elif variant.means.unproven and variant.share(lambda owner: bool(owner.lines)) < _MAIN_SHARE:
            packages = ", ".join(variant.means.unproven[:_UNPROVEN])
            yield f"{variant.name}: code in {packages} counts as a library's; with --mine it counts as yours."


def _of_graph_calls(variants: Sequence[VariantOwners], count: Callable[[OwnerMeans], int]) -> str:
    """Their share of the calls of compiled graphs, variant by variant; empty where there are none."""
    return _listed(
        {
            variant.name: percent(count(variant.means) / variant.means.graph_calls)
            for variant in variants
            if count(variant.means)
        }
    )


def _listed(shares: Mapping[str, str], steps: Mapping[str, float] | None = None) -> str:
    """`99.9 % of 102 ms a step (eager), …`."""
    texts = {name: f"{share} of {duration(steps[name])} a step" if steps else share for name, share in shares.items()}
    return ", ".join(f"{text} ({name})" if len(texts) > 1 else text for name, text in texts.items())


@of_run("lines", "What each line of yours costs", rank=35)
def lines(report: Report) -> Contents | None:
    """The rows, the source of the costliest function, and the whole files."""
    variants = owners_by_variant(report)
    if not any(variant.total_ns for variant in variants):
        return None
    side_by_side = SideBySide(variants, report.baselines)
    worth = max(variant.share(lambda owner: bool(owner.lines)) for variant in variants)
    return Contents(
        (*side_by_side.blocks(), *side_by_side.files()), worth=worth, tables={"lines": side_by_side.every_row}
    )
