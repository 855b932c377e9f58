"""The mask of known time: when nobody knows what the GPU did, or what the host did, and which steps are not whole."""

from collections.abc import Sequence
from functools import reduce

import numpy as np
from msgspec import Struct

from tracekit.base.intervals import NO_TIME, Bools, Union
from tracekit.trace.facts.law import Breach


class Unknown(Struct, frozen=True):
    """The times that no figure may rest on, on the trace's clock; every other time is known."""

    gpu: Union
    host: Union
    steps: frozenset[int]  # indices of the steps that lack so much that they are not whole

    @staticmethod
    def of(health: Sequence[Breach]) -> "Unknown":
        """What these breaches make unknown together."""
        return Unknown(
            reduce(Union.plus, (breach.gpu for breach in health), NO_TIME),
            reduce(Union.plus, (breach.host for breach in health), NO_TIME),
            frozenset(step for breach in health if breach.is_grave for step in breach.steps),
        )

    def whole(self, number: int) -> Bools:
        """Which of so many steps are whole; all of them where none is, since then nothing else can be told."""
        is_whole = np.ones(number, bool)
        is_whole[[*self.steps]] = False
        return is_whole if is_whole.any() else ~is_whole
