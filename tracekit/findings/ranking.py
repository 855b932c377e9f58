"""What each finding costs a step, so that no time is counted twice, and in which order they stand."""

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from tracekit.findings.finding import Finding
from tracekit.findings.verdict import VERDICTS
from tracekit.intervals import Bools, Ints, Union
from tracekit.profile import Profile

LEAST_SHARE = 0.02  # of a step; what costs less is left out, unless all is asked for
_SHARED = 0.05  # of the smaller claim: less in common is not worth a word


@dataclass(frozen=True)
class Steps:
    """The steps that costs are spread over: the counted ones, or all that can be answered."""

    low: Ints
    high: Ints
    counted: Bools

    @staticmethod
    def of(profile: Profile) -> "Steps":
        """Those of the view that pieces are of."""
        view = profile.views[profile.cost.pieces.view]
        low = view.starts_ns[view.known]
        return Steps(low, low + view.step_ns[view.known], profile.counted[view.known])

    def chosen(self, finding: Finding) -> Bools:
        """The steps that a finding speaks of."""
        return np.ones(len(self.low), bool) if finding.every_step else self.counted

    def mean(self, claim: Union, finding: Finding) -> float:
        """How much of the claim a step has, ns."""
        chosen = self.chosen(finding)
        spent = claim.within(self.low[chosen], self.high[chosen])
        return float(spent.mean()) if len(spent) else 0.0

    def length(self, finding: Finding) -> float:
        """How long a step is, ns."""
        chosen = self.chosen(finding)
        return float((self.high - self.low)[chosen].mean()) if chosen.any() else 0.0


def ranked(profile: Profile, found: list[Finding]) -> list[Finding]:
    """Doubts first, then those of the verdicts' list, then the others; the costliest first.

    A finding loses the time that a costlier one claims as well; one that is left with nothing is not listed, but named
    among the `overlaps` of that one.
    """
    if not found:
        return []
    steps = Steps.of(profile)
    gross = sorted(found, key=lambda each: -_gross(steps, each))
    shared = _overlaps(gross)
    taken = Union.of(np.zeros(0, np.int64), np.zeros(0, np.int64))
    left: dict[bool, float] = {}
    priced = []
    for finding in gross:
        length = steps.length(finding)
        room = left.setdefault(finding.every_step, length)
        cost = finding.cost_ns
        if finding.claim is not None:
            cost = steps.mean(finding.claim.minus(taken), finding)
            taken = Union.of(*(np.concatenate(pair) for pair in _both(taken, finding.claim)))
        if cost is not None:
            cost = min(cost, room)
            left[finding.every_step] = room - cost
        share = finding.share if finding.share is not None else cost / length if cost is not None and length else None
        overlaps = tuple(dict.fromkeys((*finding.overlaps, *shared.get(id(finding), ()))))
        priced.append(replace(finding, cost_ns=cost, share=share, overlaps=overlaps))
    kept = [each for each in priced if each.cost_ns is None or each.cost_ns > 0]
    return sorted(kept, key=lambda each: (each.cost_ns is not None, each.id not in VERDICTS, -(each.share or 0.0)))


def worth_telling(finding: Finding) -> bool:
    """Whether it costs enough of a step, or makes the recording doubtful."""
    return finding.share is None or finding.share >= LEAST_SHARE


def _gross(steps: Steps, finding: Finding) -> float:
    cost = steps.mean(finding.claim, finding) if finding.claim is not None else finding.cost_ns or 0.0
    length = steps.length(finding)
    return cost / length if length else 0.0


def _both(one: Union, other: Union) -> tuple[tuple[Ints, Ints], tuple[Ints, Ints]]:
    return (one.starts, other.starts), (one.ends, other.ends)


def _overlaps(found: list[Finding]) -> dict[int, list[str]]:
    """For each finding those that claim part of its time."""
    shared: dict[int, list[str]] = {}
    for one, other in combinations(found, 2):
        if one.id != other.id and _meet(one.claim, other.claim):
            shared.setdefault(id(one), []).append(other.id)
            shared.setdefault(id(other), []).append(one.id)
    return shared


def _meet(one: Union | None, other: Union | None) -> bool:
    if one is None or other is None:
        return False
    common = one.total() - one.minus(other).total()
    return common > _SHARED * min(one.total(), other.total())
