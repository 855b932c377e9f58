"""Where the time of a step goes, bucket by bucket: the report's table, and the bars that show it; several variants are
joined into one table, a column for each, with differences that add up.

Bars are stacked on one scale, in whole cells that add up.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from string import ascii_lowercase, ascii_uppercase
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct

from tracekit.base.names import sanitize
from tracekit.base.units import apportioned
from tracekit.engine.buckets import KEYS
from tracekit.faces.shared.cells import DELTA
from tracekit.faces.shared.wording import certainty, change, is_noise, label, rests_on, share, taken
from tracekit.profile.where import LINE_COLUMNS
from tracekit.report import Report
from tracekit.report.breakdown import Breakdown, breakdown
from tracekit.report.sections.breakdowns import TITLES, every_part, of_view
from tracekit.trace.schema import Role, column, metadata
from tracekit.tui.model.sheet import Enter, Sheet, nowhere, table_from

_MARKS = ascii_lowercase + ascii_uppercase
# What fills a bar besides its colour: any two buckets that can be neighbours have different patterns.
PATTERNS = " ·╱░╲-┼╳"
_LINE = LINE_COLUMNS.names


class Share(Struct, frozen=True):
    """What one variant spends on one bucket: in `thousandths` of the breakdown's unit, and as text of the report."""

    thousandths: int
    value: str
    share: str


class Change(Struct, frozen=True):
    """A variant's difference from the baseline in one bucket."""

    thousandths: int
    value: str
    certainty: str  # its interval, or what speaks against it
    noise: bool


class BucketLine(Struct, frozen=True):
    """One bucket, or the total, whose key is empty. The mark stands for the bucket where its label does not fit."""

    key: str
    mark: str
    label: str
    colour: str
    meaning: str
    shares: dict[str, Share]
    changes: dict[str, Change]


class BucketTable(Struct, frozen=True):
    """The table of one view: a column for each variant that can answer, in order, and a reason for each that cannot.

    Names are as in the report: whatever draws one must sanitize it first.
    """

    view: str
    title: str
    baseline: str
    unit: str = ""
    names: list[str] = []
    lines: list[BucketLine] = []
    unanswered: dict[str, str] = {}
    rests_on: dict[str, str] = {}  # by variant: what its differences rest on

    @property
    def total(self) -> BucketLine | None:
        """The last line."""
        return self.lines[-1] if self.lines else None


def bucket_table(report: Report, view: str) -> BucketTable:
    """The table of one view; it has no lines if no variant can answer."""
    numbers = of_view(report, view)
    if numbers is not None:
        return table_of(numbers)
    unanswered = {profile.name: sanitize(profile.why_unanswered(view)) for profile in report.profiles}
    return BucketTable(view, TITLES[view], report.baseline.name, unanswered=unanswered)


def of_steps(report: Report, view: str, first: int, last: int) -> BucketTable:
    """The table of only the steps with these numbers; without intervals, which cover all steady steps."""
    means: dict[str, dict[str, float]] = {}
    for profile in report.profiles:
        profile_view = profile.views[view]
        in_range = [first <= number <= last for number in profile.trace.steps.number]
        rows = profile_view.totals[profile_view.known & np.array(in_range, bool)]
        if len(rows):
            means[profile.name] = dict(zip(profile_view.keys, (rows.sum(axis=0) / len(rows)).tolist(), strict=True))
    numbers = breakdown(view, TITLES[view], every_part(view), means=means, baselines=report.baselines)
    if numbers is None or of_view(report, view) is None:
        return BucketTable(view, TITLES[view], report.baseline.name)
    return table_of(numbers)


def table_of(numbers: Breakdown) -> BucketTable:
    """Convert a breakdown of the report to the form that screens show."""
    lines = []
    for key, mark in zip(numbers.keys, _MARKS, strict=False):
        part, cells, differences = numbers.part(key), numbers.cells[key], numbers.deltas[key]
        shares = {
            name: Share(cells[name], taken(numbers, key, name), share(numbers, key, name)) for name in numbers.variants
        }
        changes = {
            name: Change(differences[name], change(*place), certainty(*place), is_noise(*place))
            for name, place in ((name, (numbers, key, name)) for name in numbers.compared)
        }
        if part:
            line = BucketLine(key, mark, label(numbers, key), part.colour, part.meaning, shares, changes)
        else:
            line = BucketLine(key, "", label(numbers, key), "", "every bucket of a step together", shares, changes)
        lines.append(line)
    return BucketTable(
        view=numbers.name,
        title=sanitize(numbers.title),
        baseline=next(iter(numbers.baselines.values()), ""),
        unit=numbers.unit,
        names=numbers.variants,
        lines=lines,
        unanswered={name: sanitize(why) for name, why in numbers.unanswered.items()},
        rests_on={name: rests_on(numbers, name) for name in numbers.compared},
    )


def bucket_sheet(numbers: BucketTable, enter: Enter = nowhere) -> Sheet:
    """A row for each bucket and one for the total: each variant's value and share, and the differences.

    Beside each column of text is one of numbers, by which it is sorted.
    """
    buckets = column("bucket", pa.string(), "where the time of a step goes", role="name")
    columns: dict[pa.Field, Sequence[object]] = {buckets: [line.label for line in numbers.lines]}
    keys: dict[pa.Field, Sequence[object]] = {}
    sort_keys: dict[str, str] = {}

    def add(title: str, meaning: str, texts: list[str], values: list[int], role: Role = "figure") -> None:
        sort_keys[title] = f"{title} in thousandths"
        columns[column(title, pa.string(), meaning, role=role, title=title)] = texts
        keys[column(sort_keys[title], pa.int64(), "", role="plumbing")] = values

    for name in numbers.names:
        shares = [line.shares[name] for line in numbers.lines]
        texts = [f"{share.value} {share.share:>7}" for share in shares]
        add(name, "mean per counted step, and its share of the step", texts, [share.thousandths for share in shares])
    interval_role: Role = "figure" if len(numbers.rests_on) == 1 else "detail"  # of several, only for the cursor's row
    for name, rests in numbers.rests_on.items():
        changes = [line.changes[name] for line in numbers.lines]
        values = [change.thousandths for change in changes]
        texts = [change.value for change in changes]
        add(f"{DELTA} {name}", f"against {numbers.baseline}, from {rests} each", texts, values)
        title = rests if len(numbers.rests_on) == 1 else f"{name}, {rests}"
        meaning = "its interval over the pairs, or what speaks against the difference"
        add(title, meaning, [change.certainty for change in changes], values, interval_role)
    return Sheet(
        "buckets",
        table_from((columns | keys).items()),
        enter=enter,
        marks={row: (line.mark, line.colour) for row, line in enumerate(numbers.lines) if line.mark},
        sort_keys=sort_keys,
        variants=tuple(numbers.names),
    )


class Segment(Struct, frozen=True):
    """A bucket's part of a bar; `cells` is its width, which is never 0."""

    line: BucketLine
    cells: int

    @property
    def text(self) -> str:
        """Text exactly as wide as the segment: its label, then the pattern."""
        return self.label + self.pattern[len(self.label) :]

    @property
    def label(self) -> str:
        """The bucket's label if it fits, or else its mark."""
        return f" {self.line.label} " if len(self.line.label) + 2 <= self.cells else self.line.mark

    @property
    def pattern(self) -> str:
        """The pattern, as wide as the segment."""
        return pattern(self.line.key) * self.cells


class Bar(Struct, frozen=True):
    """One variant's step; `cells` is the sum of the segments' cells."""

    name: str
    segments: list[Segment]
    value: str

    @property
    def cells(self) -> int:
        """The length of the bar."""
        return sum(segment.cells for segment in self.segments)


def pattern(key: str) -> str:
    """The character that fills the bars of a bucket."""
    return PATTERNS[KEYS.index(key) % len(PATTERNS)] if key in KEYS else " "


def bars(numbers: BucketTable, width: int) -> list[Bar]:
    """A bar for each variant; the longest is `width` cells long."""
    if numbers.total is None:
        return []
    totals, buckets = numbers.total.shares, numbers.lines[:-1]
    longest = max(1, *(total.thousandths for total in totals.values()))
    variant_bars = []
    for name in numbers.names:
        cells = apportion([line.shares[name].thousandths for line in buckets], width, longest)
        segments = [Segment(line, wide) for line, wide in zip(buckets, cells, strict=True) if wide]
        variant_bars.append(Bar(name, segments, f"{totals[name].value} {numbers.unit}"))
    return variant_bars


def apportion(parts: list[int], width: int, total: int) -> list[int]:
    """The cells of each part if their `total` takes `width` cells."""
    return apportioned([Fraction(part * width, total) for part in parts])


def joined(
    tables: Mapping[str, pa.Table], keys: Sequence[str], value: str, number: str, baselines: Mapping[str, str]
) -> pa.Table:
    """A row for each value of the keys; a variant without such a row has 0, and one that cannot answer has null.

    `value` is a quantity in ns, `number` a count. `baselines` names the variant that each is compared with. The line
    is that of the variant in which the row costs most.
    """
    rows: dict[tuple[Any, ...], dict[str, dict[str, Any]]] = {}
    for name, table in tables.items():
        for row in table.to_pylist():
            rows.setdefault(tuple(row[key] for key in keys), {})[name] = row
    schema = next(iter(tables.values())).schema
    is_alone = len(tables) == 1  # its name is above the table
    columns: list[tuple[pa.Field, Sequence[object]]] = [
        (schema.field(key), [row[k] for row in rows]) for k, key in enumerate(keys)
    ]
    values = {name: [_value(by_variant, name, value) for by_variant in rows.values()] for name in tables}
    meaning = metadata(schema.field(value), "comment")
    for name in tables:
        title = "takes" if is_alone else name
        columns.append((column(f"{name}_ns", pa.float64(), meaning, "ns", title=title), values[name]))
    for name in tables:
        base = baselines.get(name)
        if base is not None and base in tables and base != name:
            kind = column(f"{DELTA} {name}_ns", pa.float64(), f"against {base}", "ns", title=f"{DELTA} {name}")
            pairs = zip(values[name], values[base], strict=True)
            changes = [None if ns is None or base_ns is None else ns - base_ns for ns, base_ns in pairs]
            columns.append((kind, changes))
    meaning = metadata(schema.field(number), "comment")
    for name in tables:
        kind = column(f"n {name}", pa.float64(), meaning, title="n" if is_alone else f"n {name}")
        columns.append((kind, [_value(by_variant, name, number) for by_variant in rows.values()]))
    if all(place in schema.names for place in _LINE):
        costliest = [max(by_variant.values(), key=lambda row: row[value] or 0.0) for by_variant in rows.values()]
        columns += [(schema.field(place), [row[place] for row in costliest]) for place in _LINE]
    return table_from(columns)


def deltas(table: pa.Table) -> list[str]:
    """The columns that hold differences."""
    return [name for name in table.column_names if name.startswith(DELTA)]


def _value(by_variant: Mapping[str, dict[str, Any]], name: str, column_name: str) -> float | None:
    """The value of a variant: 0 if it has no such row, null if its row has no answer."""
    if name not in by_variant:
        return 0.0
    value = by_variant[name][column_name]
    return None if value is None else float(value)
