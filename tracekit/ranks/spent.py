"""How much time has each bucket taken up to a given moment?"""

import numpy as np

from tracekit.engine.buckets import KEYS
from tracekit.engine.pieces import Pieces
from tracekit.intervals import Ints


class Spent:
    """The running totals of a trace's answered steps, on the trace's own clock."""

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces

    def until(self, moments: Ints) -> Ints:
        """A row per moment, a column per bucket in the order of the buckets' codes; ns since the first step began."""
        totals = np.zeros((len(moments), len(KEYS)), np.int64)
        for code in np.unique(self._pieces.bucket).tolist():
            chosen = self._pieces.bucket == code
            start, end = self._pieces.start[chosen], self._pieces.end[chosen]
            before = np.concatenate(([0], np.cumsum(end - start)))
            begun = np.searchsorted(start, moments, side="right")
            last = np.maximum(begun - 1, 0)
            totals[:, code] = before[begun] - np.where(begun > 0, np.maximum(end[last] - moments, 0), 0)
        return totals
