"""Results about each variant by itself, whatever its baseline: worked out once for all reports that share them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from tracekit.analyses import Answer, summaries
from tracekit.findings import Diagnosis, diagnose
from tracekit.profile import Profile
from tracekit.ranks import Collectives, RankColumns, collectives, rank_columns
from tracekit.ranks.sizes import with_sizes

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class ByVariant:
    """Results by the name of their variant, each worked out on first use."""

    _summaries: dict[str, list[Answer]] = field(default_factory=dict)
    _diagnoses: dict[str, Diagnosis] = field(default_factory=dict)
    _ranks: dict[str, list[RankColumns]] = field(default_factory=dict)
    _collectives: dict[str, Collectives] = field(default_factory=dict)

    def summaries(self, profile: Profile) -> list[Answer]:
        """The answer of every analysis, without the rows behind it."""
        return _once(self._summaries, profile.name, lambda: summaries(profile))

    def diagnosis(self, profile: Profile) -> Diagnosis:
        """What bounds the step, and the findings."""
        return _once(self._diagnoses, profile.name, lambda: diagnose(profile))

    def ranks(self, profile: Profile) -> list[RankColumns]:
        """What is compared of each rank; nothing where there is a single one."""
        ranks = sorted(profile.per_rank.items())

        def columns() -> list[RankColumns]:
            return with_sizes([rank_columns(rank_profile, rank) for rank, rank_profile in ranks], profile)

        return _once(self._ranks, profile.name, columns)

    def collectives(self, name: str, ranks: list[RankColumns]) -> Collectives:
        """The collectives of these ranks of the variant of that name."""
        return _once(self._collectives, name, lambda: collectives(ranks))


def _once(results: dict[str, _Result], name: str, make: Callable[[], _Result]) -> _Result:
    if name not in results:
        results[name] = make()
    return results[name]
