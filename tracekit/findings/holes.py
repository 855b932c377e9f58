"""Holes: one thing on the host that keeps the GPU idle for a millisecond and more, as opposed to many short ones."""

from dataclasses import dataclass

import numpy as np

from tracekit.engine.pieces import Pieces
from tracekit.intervals import Bools
from tracekit.profile import Profile

LEAST_NS = 1_000_000
SLOW_HOST = ("kernel_launch", "dispatch", "python", "guards", "alloc")


def is_hole(pieces: Pieces) -> Bools:
    """The pieces of a slow host that last so long, each for one event, or none at all."""
    return pieces.of(*SLOW_HOST) & (pieces.dur >= LEAST_NS)


@dataclass(frozen=True)
class Usual:
    """How long events of each name usually take, and which came first."""

    profile: Profile

    def of_others(self, row: int) -> float:
        """The median duration of the other events of that name and category, ns; 0 where there is none."""
        alike = self._alike(row)
        others = self.profile.trace.dur_ns[alike[alike != row]]
        return float(np.median(others)) if len(others) else 0.0

    def is_first(self, row: int) -> bool:
        """Whether it is the first event of its name."""
        return int(self._alike(row)[0]) == row

    def _alike(self, row: int) -> "np.ndarray[tuple[int], np.dtype[np.intp]]":
        trace = self.profile.trace
        return np.flatnonzero(
            (trace.name_codes == trace.name_codes[row]) & (trace.category_codes == trace.category_codes[row])
        )
