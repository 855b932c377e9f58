"""The steps over which costs are spread."""

from dataclasses import dataclass

import numpy as np

from tracekit.intervals import Ints, Union
from tracekit.profile import Profile


@dataclass(frozen=True)
class Steps:
    """The start and the end of each of these steps, ns, and which of the trace's steps it is."""

    low: Ints
    high: Ints
    number: Ints

    @staticmethod
    def of(profile: Profile, every: bool = False) -> "Steps":
        """The counted steps in the view of the pieces, or every step that can be answered."""
        view = profile.attribution.answered_view
        chosen = view.known if every else view.known & profile.counted
        low = view.starts_ns[chosen]
        return Steps(low, low + view.step_ns[chosen], np.flatnonzero(chosen))

    @property
    def length(self) -> float:
        """The mean length of a step, ns."""
        return float((self.high - self.low).mean()) if len(self.low) else 0.0

    def mean(self, claim: Union) -> float:
        """How much of the claim falls into a step, on average, ns."""
        return float(claim.within(self.low, self.high).mean()) if len(self.low) else 0.0
