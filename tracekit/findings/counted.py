"""The steps that costs are spread over."""

from dataclasses import dataclass

from tracekit.intervals import Ints, Union
from tracekit.profile import Profile


@dataclass(frozen=True)
class Steps:
    """From when to when each of them lasts, ns."""

    low: Ints
    high: Ints

    @staticmethod
    def of(profile: Profile, every: bool = False) -> "Steps":
        """The counted ones of the view that pieces are of, or every one that can be answered."""
        view = profile.cost.answered_view
        chosen = view.known if every else view.known & profile.counted
        low = view.starts_ns[chosen]
        return Steps(low, low + view.step_ns[chosen])

    @property
    def length(self) -> float:
        """How long a step is, ns."""
        return float((self.high - self.low).mean()) if len(self.low) else 0.0

    def mean(self, claim: Union) -> float:
        """How much of the claim a step has, ns."""
        return float(claim.within(self.low, self.high).mean()) if len(self.low) else 0.0


def counted_steps(profile: Profile) -> int:
    """Over how many steps a cost is spread."""
    return max(int(profile.counted.sum()), 1)
