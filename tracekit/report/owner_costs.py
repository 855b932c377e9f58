"""The time of a step by owner – lines, modules, phases or libraries – with the variants side by side, for variants
whose owners are known; and by line of one of your files, for faces that show the file with a margin.

The compiler may have fused lines in one variant only. A group of lines that costs at least 1 % of some variant's time
joins its lines into one row, and rows that share a line merge. Each other group is a separate row. A group is never
split between its lines.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

import pyarrow as pa
from msgspec import Struct, field
from msgspec.structs import replace

from tracekit.base.names import HEAD, short
from tracekit.base.units import percent
from tracekit.engine.buckets import BUCKETS, KEYS
from tracekit.lines.calls import LineCalls, known_calls
from tracekit.lines.means import Owner, OwnerMean, OwnerMeans
from tracekit.lines.owners import Group, SourceLine
from tracekit.lines.ownership import MOST_EVENTS
from tracekit.profile import Profile
from tracekit.report.model import Report
from tracekit.trace.schema import Role, column
from tracekit.vocabulary.lines_file import lines_path

Key = TypeVar("Key")
_PHASES = (("forward", ("forward", "eval")), ("backward", ("backward", "inner backward", "double backward")))
WORTH_JOINING = 0.01
Row = Group  # the lines of a row; if a group has a separate row, those of the group


class VariantOwners(Struct, frozen=True):
    """One variant's owners in one view."""

    name: str
    means: OwnerMeans
    view: str
    calls: Sequence[LineCalls] = ()  # what each line calls most often in a step

    def by(
        self, key: Callable[[Owner], Key], is_counted: Callable[[OwnerMean], bool] | None = None
    ) -> dict[Key, float]:
        """The mean over counted steps by a property of the owners, ns."""
        return self.means.by(self.view, key, is_counted)

    @property
    def total_ns(self) -> float:
        """The mean of a counted step, ns."""
        return sum(self.by(lambda owner: None).values())

    def without(self, bucket: str) -> "VariantOwners":
        """The owners' costs without the time of one bucket."""
        means = [mean for mean in self.means.means if mean.bucket != bucket]
        return replace(self, means=OwnerMeans(owners=self.means.owners, means=means))

    def share(self, belongs: Callable[[Owner], bool]) -> float:
        """The share of a step that belongs to such owners."""
        costs = self.by(belongs)
        return costs.get(True, 0.0) / (sum(costs.values()) or 1.0)


class OwnerCosts(Struct, Generic[Key], frozen=True):
    """What each key costs in each variant. The keys add up to the variant's step, and their differences to the step's.

    `baselines` has the baseline of each variant.
    """

    variants: Sequence[VariantOwners]
    key: Callable[[Owner], Key]
    baselines: Mapping[str, str] = field(default_factory=dict)

    def costliest_first(self) -> list[Key]:
        """Every key that occurs, ordered by its highest cost in any variant."""
        highest_ns: dict[Key, float] = {}
        for variant in self.variants:
            for key, ns in variant.by(self.key).items():
                highest_ns[key] = max(highest_ns.get(key, 0.0), ns)
        return sorted(highest_ns, key=lambda key: -highest_ns[key])

    def columns(self, order: Sequence[Key]) -> Iterator[tuple[pa.Field, list[float]]]:
        """A column for each variant and each difference, in total, forward and backward, and by bucket."""
        costs = {variant.name: variant.by(self.key) for variant in self.variants}
        titles = dict(zip(costs, short([*costs], HEAD), strict=True))
        for name, key_ns in costs.items():
            yield _ns(name, titles[name], "mean per counted step"), [key_ns.get(key, 0.0) for key in order]
        for name, key_ns in costs.items():
            base = self.baselines.get(name)
            if base in costs and base != name:
                deltas = [key_ns.get(key, 0.0) - costs[base].get(key, 0.0) for key in order]
                yield _ns(f"Δ {name}", f"Δ {titles[name]}", f"against {base}"), deltas
        parts = [
            *(
                (variant, meaning, meaning, _in_phases(variant.means, phases))
                for variant in self.variants
                for meaning, phases in _PHASES
            ),
            *(
                (variant, bucket, BUCKETS[bucket].label, _in_bucket(bucket))
                for bucket in KEYS
                for variant in self.variants
            ),
        ]
        for variant, part, label, is_counted in parts:
            key_ns = variant.by(self.key, is_counted)
            if any(key_ns.values()):
                field = _ns(f"{variant.name} {part}", f"{titles[variant.name]} {label}", f"of this, {label}", "detail")
                yield field, [key_ns.get(key, 0.0) for key in order]

    def table(self, identity_columns: Sequence[tuple[pa.Field, Sequence[object]]], order: Sequence[Key]) -> pa.Table:
        """A table of the columns that identify a row, followed by these columns."""
        columns = [*identity_columns, *self.columns(order)]
        arrays = [pa.array(values, kind.type) for kind, values in columns]
        return pa.Table.from_arrays(arrays, schema=pa.schema([kind for kind, _ in columns]))


def steps_of(variants: Sequence[VariantOwners]) -> dict[str, float]:
    """The mean step of each variant, ns."""
    return {variant.name: variant.total_ns for variant in variants}


def shares_sentence(costs: OwnerCosts[Key], steps: Mapping[str, float], names: Mapping[Key, str]) -> str:
    """`forward 87.6 % (eager), 79.5 % (compiled); backward …`: the share of each key in each variant's step."""
    costs_by_variant = {variant.name: variant.by(costs.key) for variant in costs.variants}
    clauses = []
    for key, name in names.items():
        shares = {
            variant_name: percent(ns[key] / steps[variant_name])
            for variant_name, ns in costs_by_variant.items()
            if key in ns
        }
        parts = [
            f"{share} ({variant_name})" if len(costs_by_variant) > 1 else share
            for variant_name, share in shares.items()
        ]
        clauses.append(f"{name} {', '.join(parts)}")
    return "; ".join(clauses)


def _in_phases(means: OwnerMeans, phases: tuple[str, ...]) -> Callable[[OwnerMean], bool]:
    return lambda mean: means.owners[mean.owner].phase in phases


def _in_bucket(bucket: str) -> Callable[[OwnerMean], bool]:
    return lambda mean: mean.bucket == bucket


def _ns(name: str, title: str, comment: str, role: Role = "") -> pa.Field:
    return column(f"{name}_ns", pa.float64(), comment, "ns", role=role, title=title)


class Fused(Struct, frozen=True):
    """Lines whose work was fused into one kernel, and what they cost together, ns in a counted step of that variant."""

    variant: str
    lines: Group  # at least one of them is in the file; others may be elsewhere
    step_ns: float


class SourceCosts(Struct, frozen=True):
    """A file as it was captured, and what its lines cost in a counted step, ns.

    What a line costs alone and what it costs together with others are never the same time: `alone` and `fused` add
    up, and what was fused is never split between its lines.
    """

    file: str
    text: str
    alone: Mapping[str, Mapping[int, float]]  # by variant and number of the line; a line that costs nothing has none
    fused: tuple[Fused, ...]  # most expensive first

    def total_ns(self, variant: str) -> float:
        """What the file's lines cost, those that were fused with lines of other files included."""
        together = sum(fused_group.step_ns for fused_group in self.fused if fused_group.variant == variant)
        return sum(self.alone[variant].values()) + together

    def fused_by_line(self) -> dict[str, dict[int, float]]:
        """By variant and number of the line, what the groups cost that it is part of: the whole of each."""
        costs: dict[str, dict[int, float]] = {name: {} for name in self.alone}
        for fused_group in self.fused:
            of_variant = costs[fused_group.variant]
            for number in {line.line for line in fused_group.lines if line.file == self.file}:
                of_variant[number] = of_variant.get(number, 0.0) + fused_group.step_ns
        return costs


def source_costs(variants: Sequence[VariantOwners], file: str, text: str | None = None) -> SourceCosts:
    """The costs of one of `sources(variants)`, or of a file whose text is given. Raises KeyError for another file."""
    alone: dict[str, dict[int, float]] = {variant.name: {} for variant in variants}
    fused = []
    for variant in variants:
        of_lines = alone[variant.name]
        for lines, ns in variant.by(lambda owner: owner.lines).items():
            if len(lines) > 1 and any(line.file == file for line in lines):
                fused.append(Fused(variant.name, lines, ns))
            elif len(lines) == 1 and lines[0].file == file and ns >= 1:
                of_lines[lines[0].line] = of_lines.get(lines[0].line, 0.0) + ns
    source = sources(variants)[file] if text is None else text
    return SourceCosts(file, source, alone, tuple(sorted(fused, key=lambda fused_group: -fused_group.step_ns)))


def sources(variants: Iterable[VariantOwners]) -> dict[str, str]:
    """The user's files by their full paths, as they were when they were captured."""
    return {file: text for variant in variants for file, text in variant.means.sources.items()}


def owners_by_variant(report: Report) -> list[VariantOwners]:
    """The owners in the view that all of these sections use: wall time, where any variant can answer it."""
    profiles = [profile for profile in report.profiles if _has_owners(profile)]
    view = "wall" if any(profile.means["wall"] is not None for profile in profiles) else "host"
    return [
        VariantOwners(profile.name, profile.owner_means, view, known_calls(profile.ownership, profile.counted))
        for profile in profiles
    ]


def _has_owners(profile: Profile) -> bool:
    if profile.trace.has_stacks:
        return profile.variant is not None or len(profile.trace.ts_ns) <= MOST_EVENTS
    return profile.detail_path is not None or lines_path(profile.trace.path).is_file()


def rows(costs: Iterable[Mapping[Group, float]]) -> dict[Group, Row]:
    """Each line and group that occurs, and the row that it is in, given what it costs in each variant."""
    joined = _Joined()
    groups: dict[Group, None] = {}
    for variant in costs:
        total = sum(variant.values())
        groups |= dict.fromkeys(variant)
        for group, ns in variant.items():
            if len(group) > 1 and total and ns >= WORTH_JOINING * total:
                joined.join(group)
    together: dict[SourceLine, list[SourceLine]] = {}
    for line in dict.fromkeys(line for group in groups for line in group):
        together.setdefault(joined.root(line), []).append(line)
    found_rows = {}
    for group in groups:
        roots = {joined.root(line) for line in group}
        lines = together[roots.pop()] if len(roots) == 1 else []  # none for no line, or for lines of different rows
        found_rows[group] = tuple(sorted(lines)) if len(lines) > 1 else group
    return found_rows


class _Joined:
    """Lines that share a row, each known by one of them."""

    def __init__(self) -> None:
        self._parent: dict[SourceLine, SourceLine] = {}

    def join(self, group: Group) -> None:
        """These lines share a row from now on."""
        first = self.root(group[0])
        for line in group[1:]:
            self._parent[self.root(line)] = first

    def root(self, line: SourceLine) -> SourceLine:
        """The line that represents all lines of its row."""
        while self._parent.get(line, line) != line:
            line = self._parent[line]
        return line
