"""Which line of yours costs what, in every variant, side by side?"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from tracekit.lines.means import Mean, by_group, means, short
from tracekit.lines.owners import BACKWARD, EVAL, FORWARD, Group, Line
from tracekit.lines.ownership import Ownership
from tracekit.lines.side_by_side import Row, rows
from tracekit.lines_file import LinesFile
from tracekit.profile import Profile
from tracekit.report.blocks import Block, Excerpt, Sentences, Table
from tracekit.trace.schema import column
from tracekit.units import duration, percent

NO_LINE = "no line of yours"


@dataclass(frozen=True)
class OfVariant:
    """One variant's owners, and what each costs in a counted step."""

    name: str
    ownership: Ownership
    means: list[Mean]
    view: str

    @cached_property
    def groups(self) -> dict[Group, float]:
        """What each line and group costs; () is nobody's."""
        return by_group(self.ownership, self.means, self.view)

    @property
    def total_ns(self) -> float:
        """What a step takes."""
        return sum(self.groups.values())

    @property
    def divided_ns(self) -> float:
        """What of it is estimated."""
        return sum(mean.divided_ns for mean in self.means if mean.view == self.view)

    def in_phases(self, phases: Collection[int]) -> dict[Group, float]:
        """What each line and group costs in some phases."""
        owners = self.ownership.owners
        chosen = [mean for mean in self.means if owners.rows[mean.owner][3] in phases]
        return by_group(self.ownership, chosen, self.view)

    @property
    def lines(self) -> LinesFile | None:
        """What was recorded beside the trace with stacks."""
        return self.ownership.recording.lines if self.ownership.recording is not None else None


def of_variant(profile: Profile, view: str, mine: Collection[str] = ()) -> OfVariant:
    """A variant's lines, in one view."""
    ownership = Ownership.of(profile.cost, profile.detail_path, mine)
    known = means(ownership, profile.answered) if ownership.reason is None else []
    return OfVariant(profile.name, ownership, known, view)


@dataclass(frozen=True)
class SideBySide:
    """Variants with the same rows; each adds up to its step."""

    variants: list[OfVariant]
    baseline: str
    row_of: Mapping[Group, Row] = field(default_factory=dict)

    @staticmethod
    def of(variants: list[OfVariant]) -> "SideBySide":
        """The first is the baseline."""
        known = [each for each in variants if each.groups]
        row_of = rows(each.groups for each in known)
        return SideBySide(known, known[0].name if known else "", row_of)

    def row(self, group: Group) -> Row:
        """The row of a line or group; of one that costs nothing in this view, itself."""
        return self.row_of.get(group, group)

    def summed(self, costs: Mapping[Group, float]) -> dict[Row, float]:
        """What each row costs."""
        total: dict[Row, float] = {}
        for group, ns in costs.items():
            row = self.row_of[group]
            total[row] = total.get(row, 0.0) + ns
        return total

    def table(self) -> pa.Table:
        """A row per line or group, most expensive first."""
        costs = {each.name: self.summed(each.groups) for each in self.variants}
        every = dict.fromkeys(row for of in costs.values() for row in of)
        order = sorted(every, key=lambda row: -max(of.get(row, 0.0) for of in costs.values()))
        columns: list[tuple[pa.Field, list[object]]] = [
            (column("line", pa.string(), "your lines", role="place"), [short(row) or NO_LINE for row in order]),
            (column("function", pa.string(), "your function", role="place"), [_functions(row) for row in order]),
        ]
        for name, of in costs.items():
            columns.append((_ns(name, "a counted step"), [of.get(row, 0.0) for row in order]))
        for each in self.variants:
            base = costs[self.baseline]
            if each.name != self.baseline:
                of = costs[each.name]
                deltas: list[object] = [of.get(row, 0.0) - base.get(row, 0.0) for row in order]
                columns.append((_ns(f"Δ {each.name}", f"against {self.baseline}"), deltas))
        for each in self.variants:
            for said, phases in (("forward", (FORWARD, EVAL)), ("backward", (BACKWARD,))):
                part = self.summed(each.in_phases(phases))
                columns.append((_ns(f"{each.name} {said}", f"of this, {said}"), [part.get(row, 0.0) for row in order]))
        arrays = [pa.array(values, kind.type) for kind, values in columns]
        return pa.Table.from_arrays(arrays, schema=pa.schema([kind for kind, _ in columns]))

    def blocks(self) -> Iterator[Block]:
        """What a reader gets who names no file: how much is known, the rows, and the most expensive function."""
        yield Sentences(tuple(_known(each) for each in self.variants))
        yield Table("lines", self.table(), exported=False)
        if (function := self._most_expensive()) is not None:
            yield from self.excerpts(function.file, function.function)

    def _most_expensive(self) -> Line | None:
        total: dict[tuple[str, str], float] = {}
        for each in self.variants:
            for group, ns in each.groups.items():
                for key in {(line.file, line.function) for line in group if line.file in self.sources}:
                    total[key] = total.get(key, 0.0) + ns
        best = max(total, key=lambda key: total[key], default=None)
        return Line(best[0], 0, best[1]) if best else None

    @cached_property
    def sources(self) -> dict[str, str]:
        """The user's files, as they were when they were captured."""
        return {file: text for each in self.variants if each.lines for file, text in each.lines.sources.items()}

    def excerpts(self, file: str, function: str | None = None) -> Iterator[Block]:
        """A file, or a function of it, with what each line costs; lines that were fused follow as a table."""
        lines = self.sources[file].splitlines()
        costs = {each.name: _by_line(each, file) for each in self.variants}
        for first, last in [(1, len(lines))] if function is None else self._extents(file, function):
            yield Excerpt(file, first, tuple(lines[first - 1 : last]), costs)
        fused = [(each, group, ns) for each in self.variants for group, ns in each.groups.items() if len(group) > 1]
        inside = [entry for entry in fused if any(line.file == file for line in entry[1])]
        if inside:
            yield Table("fused", _fused(inside), exported=False)

    def functions(self, file: str) -> list[str]:
        """The functions of a file."""
        code = [code for each in self.variants if each.lines for code in each.lines.code]
        return sorted({each.function for each in code if each.file == file})

    def _extents(self, file: str, function: str) -> list[tuple[int, int]]:
        code = [code for each in self.variants if each.lines for code in each.lines.code]
        own = {(each.line, max(each.lines)) for each in code if (each.file, each.function) == (file, function)}
        return sorted(own)


def _fused(entries: list[tuple[OfVariant, Group, float]]) -> pa.Table:
    entries = sorted(entries, key=lambda entry: -entry[2])
    schema = pa.schema(
        [
            column("fused_lines", pa.string(), "lines whose work is one kernel", role="place"),
            column("variant", pa.string(), "where they are", role="name"),
            column("step_ns", pa.float64(), "a counted step", "ns"),
        ]
    )
    columns = [[short(group) for _, group, _ in entries], [each.name for each, _, _ in entries]]
    return pa.Table.from_arrays(
        [pa.array(columns[0]), pa.array(columns[1]), pa.array([ns for *_, ns in entries])], schema=schema
    )


def _by_line(variant: OfVariant, file: str) -> dict[int, float]:
    costs: dict[int, float] = {}
    for group, ns in variant.groups.items():
        if len(group) == 1 and group[0].file == file and ns >= 1:
            costs[group[0].line] = costs.get(group[0].line, 0.0) + ns
    return costs


def _known(variant: OfVariant) -> str:
    total = variant.total_ns or 1.0
    own = 1 - variant.groups.get((), 0.0) / total
    said = f"{variant.name}: {percent(own)} of {duration(variant.total_ns)} a step is for a line of yours"
    if any(group[0].whole for group in variant.groups if group):
        said = f"{said} (a function: the trace has no calling lines)"
    divided = variant.divided_ns / total
    estimated = f"; {percent(divided)} is estimated, where several lines share a stretch" if divided else ""
    return f"{said}{estimated}."


def _functions(row: Row) -> str | None:
    return ", ".join(dict.fromkeys(line.function for line in row)) or None


def _ns(name: str, comment: str) -> pa.Field:
    return column(f"{name}_ns", pa.float64(), comment, "ns")
