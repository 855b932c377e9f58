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
        """The same without that bucket's time."""
        means = [mean for mean in self.means.means if mean.bucket != bucket]
        return replace(self, means=OwnerMeans(owners=self.means.owners, means=means))

    def share_in(self, bucket: str) -> float:
        """The share of a step that is in that bucket."""
        return 1 - self.without(bucket).total_ns / (self.total_ns or 1.0)

    def share(self, belongs: Callable[[Owner], bool]) -> float:
        """The share of a step that belongs to such owners."""
        costs = self.by(belongs)
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
        for variant in self.variants:
            for meaning, phases in _PHASES:
                key_ns = variant.by(self.key, _in_phases(variant.means, phases))
                if any(key_ns.values()):
                    yield (
                        _ns(
                            f"{variant.name} {meaning}",
                            f"{titles[variant.name]} {meaning}",
                            f"of this, {meaning}",
                            "detail",
                        ),
                        [key_ns.get(key, 0.0) for key in order],
                    )
        for bucket in KEYS:
            for variant in self.variants:
                key_ns = variant.by(self.key, _in_bucket(bucket))
                if any(key_ns.values()):
                    label = BUCKETS[bucket].label
                    field = _ns(
                        f"{variant.name} {bucket}", f"{titles[variant.name]} {label}", f"of this, {label}", "detail"
                    )
                    yield field, [key_ns.get(key, 0.0) for key in order]

    def table(self, identity_columns: Sequence[tuple[pa.Field, Sequence[object]]], order: Sequence[Key]) -> pa.Table:
        """A table of the columns that identify a row, followed by these columns."""
        columns = [*identity_columns, *self.columns(order)]
        arrays = [pa.array(values, kind.type) for kind, values in columns]
        return pa.Table.from_arrays(arrays, schema=pa.schema([kind for kind, _ in columns]))


def steps_of(variants: Sequence[VariantOwners]) -> dict[str, float]:
    """The mean step of each variant, ns."""
    return {variant.name: variant.total_ns for variant in variants}


def shares_said(costs: OwnerCosts[Key], steps: Mapping[str, float], names: Mapping[Key, str]) -> str:
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
