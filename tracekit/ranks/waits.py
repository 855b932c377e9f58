"""How long did a rank wait for others between two moments?

How long a collective takes on the last rank to arrive is its transfer; what it takes another rank beyond that is
waiting. Waiting is lost time if the rank has nothing else to do: on a GPU, while only communication runs, which is
exact; on a CPU, while Python runs, which is the state of a host that waits, so this is inferred.
"""

from dataclasses import dataclass

import numpy as np

from tracekit.engine.buckets import CODES
from tracekit.intervals import Bools, Ints
from tracekit.trace.rows import BEFORE

_IDLE = [CODES["gpu_comm"], CODES["python"]]


@dataclass(frozen=True)
class Waited:
    """One entry for each collective that a rank had left by a given moment."""

    rows: Ints
    waited_ns: Ints
    python_ns: Ints  # Python that ran meanwhile
    certain: Bools  # whether nothing else ran meanwhile, on a GPU


_NONE = np.zeros(0, np.int64)
_NOTHING = Waited(_NONE, _NONE, _NONE, np.zeros(0, bool))


class Waits:
    """The collectives of a rank in the order in which it left them; times are on its own clock."""

    def __init__(self, rows: Ints, start: Ints, end: Ints, spent: tuple[Ints, Ints], transfer: Ints) -> None:
        """The waits in these rows; `spent` has the time of each bucket up to the starts, and up to the ends."""
        rows = rows[np.lexsort((rows, end[rows]))]
        self.rows, self._end = rows, end[rows]
        until = np.concatenate(([BEFORE], self._end))[:-1]
        self._since = np.maximum(start[rows], until)
        self._idle_until = spent[1][rows][:, _IDLE]
        before = np.concatenate((np.zeros((1, len(_IDLE)), np.int64), self._idle_until))[:-1]
        self._idle_since = np.maximum(spent[0][rows][:, _IDLE], before)
        self._transfer = transfer[rows]
        self._wait = np.maximum(end[rows] - start[rows] - transfer[rows], 0)

    def left_by(self, moment: int) -> Ints:
        """The rows of the collectives that it had left by that moment, the latest last."""
        return self.rows[: np.searchsorted(self._end, moment, side="right")]

    def between(self, after: int | None, spent_after: Ints | None, until: int) -> Waited:
        """The waits in collectives that it left between two moments, given what each bucket had taken at the first."""
        after = BEFORE if after is None else after
        low, high = np.searchsorted(self._end, (after, until), side="right").tolist()
        if low == high:  # as is the case between most collectives
            return _NOTHING
        chosen = slice(low, high)
        idle_since = self._idle_since[chosen]
        if spent_after is not None:
            idle_since = np.maximum(idle_since, spent_after[_IDLE])
        idle = np.maximum(self._idle_until[chosen] - idle_since, 0)
        waited = np.clip(idle.sum(axis=1) - self._transfer[chosen], 0, self._wait[chosen])
        certain = idle[:, 0] == self._end[chosen] - np.maximum(self._since[chosen], after)
        return Waited(self.rows[chosen], waited, idle[:, 1], certain)
