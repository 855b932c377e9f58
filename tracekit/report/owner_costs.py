"""The time of a step by owner – lines, modules, phases or libraries – with the variants side by side."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import pyarrow as pa

from tracekit.engine.buckets import BUCKETS, KEYS
from tracekit.lines.means import Owner, OwnerMean, OwnerMeans
from tracekit.names import HEAD, short
from tracekit.trace.schema import Role, column
from tracekit.units import percent

Key = TypeVar("Key")
_PHASES = (("forward", ("forward", "eval")), ("backward", ("backward",)))


@dataclass(frozen=True)
class VariantOwners:
    """One variant's owners in one view."""

    name: str
    means: OwnerMeans
    view: str

    def by(self, key: Callable[[Owner], Key], chosen: Callable[[OwnerMean], bool] | None = None) -> dict[Key, float]:
        """The mean over counted steps by a property of the owners, ns."""
        return self.means.by(self.view, key, chosen)

    @property
    def total_ns(self) -> float:
        """The mean of a counted step, ns."""
        return sum(self.by(lambda owner: None).values())

    def without(self, bucket: str) -> "VariantOwners":
        """The same without that bucket's time."""
        means = [mean for mean in self.means.means if mean.bucket != bucket]
        return replace(self, means=OwnerMeans(owners=self.means.owners, means=means))

    def share_in(self, bucket: str) -> float:
        """The share of a step that is in that bucket."""
        return 1 - self.without(bucket).total_ns / (self.total_ns or 1.0)

    def share(self, wanted: Callable[[Owner], bool]) -> float:
        """The share of a step that belongs to such owners."""
        costs = self.by(wanted)
        return costs.get(True, 0.0) / (sum(costs.values()) or 1.0)


@dataclass(frozen=True)
class OwnerCosts(Generic[Key]):
    """What each key costs in each variant. The keys add up to the variant's step, and their differences to the step's.

    `baselines` has the baseline of each variant.
    """

    variants: Sequence[VariantOwners]
    key: Callable[[Owner], Key]
    baselines: Mapping[str, str] = field(default_factory=dict)

    def costliest_first(self) -> list[Key]:
        """Every key that occurs, ordered by its highest cost in any variant."""
        most: dict[Key, float] = {}
        for each in self.variants:
            for key, ns in each.by(self.key).items():
                most[key] = max(most.get(key, 0.0), ns)
        return sorted(most, key=lambda key: -most[key])

    def columns(self, order: Sequence[Key]) -> Iterator[tuple[pa.Field, list[float]]]:
        """A column for each variant and each difference, in total, forward and backward, and by bucket."""
        costs = {each.name: each.by(self.key) for each in self.variants}
        shown = dict(zip(costs, short([*costs], HEAD), strict=True))
        for name, of in costs.items():
            yield _ns(name, shown[name], "mean per counted step"), [of.get(key, 0.0) for key in order]
        for name, of in costs.items():
            base = self.baselines.get(name)
            if base in costs and base != name:
                deltas = [of.get(key, 0.0) - costs[base].get(key, 0.0) for key in order]
                yield _ns(f"Δ {name}", f"Δ {shown[name]}", f"against {base}"), deltas
        for each in self.variants:
            for meaning, phases in _PHASES:
                of = each.by(self.key, _in_phases(each.means, phases))
                if any(of.values()):
                    yield (
                        _ns(f"{each.name} {meaning}", f"{shown[each.name]} {meaning}", f"of this, {meaning}", "detail"),
                        [of.get(key, 0.0) for key in order],
                    )
        for bucket in KEYS:
            for each in self.variants:
                of = each.by(self.key, _in_bucket(bucket))
                if any(of.values()):
                    label = BUCKETS[bucket].label
                    field = _ns(f"{each.name} {bucket}", f"{shown[each.name]} {label}", f"of this, {label}", "detail")
                    yield field, [of.get(key, 0.0) for key in order]

    def table(self, named: Sequence[tuple[pa.Field, Sequence[object]]], order: Sequence[Key]) -> pa.Table:
        """A table of the columns that identify a row, followed by these columns."""
        columns = [*named, *self.columns(order)]
        arrays = [pa.array(values, kind.type) for kind, values in columns]
        return pa.Table.from_arrays(arrays, schema=pa.schema([kind for kind, _ in columns]))


def steps_of(variants: Sequence[VariantOwners]) -> dict[str, float]:
    """The mean step of each variant, ns."""
    return {each.name: each.total_ns for each in variants}


def shares_said(costs: OwnerCosts[Key], steps: Mapping[str, float], named: Mapping[Key, str]) -> str:
    """`forward 87.6 % (eager), 79.5 % (compiled); backward …`: the share of each key in each variant's step."""
    of = {each.name: each.by(costs.key) for each in costs.variants}
    clauses = []
    for key, name in named.items():
        shares = {variant: percent(ns[key] / steps[variant]) for variant, ns in of.items() if key in ns}
        parts = [f"{share} ({variant})" if len(of) > 1 else share for variant, share in shares.items()]
        clauses.append(f"{name} {', '.join(parts)}")
    return "; ".join(clauses)


def _in_phases(means: OwnerMeans, phases: tuple[str, ...]) -> Callable[[OwnerMean], bool]:
    return lambda mean: means.owners[mean.owner].phase in phases


def _in_bucket(bucket: str) -> Callable[[OwnerMean], bool]:
    return lambda mean: mean.bucket == bucket


def _ns(name: str, title: str, comment: str, role: Role = "") -> pa.Field:
    return column(f"{name}_ns", pa.float64(), comment, "ns", role=role, title=title)
