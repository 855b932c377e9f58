"""Why did the last rank come late to a collective: by what it did itself, or because it had waited in another one?

    rank 3   ├──── data loading ────┤▓ B ▓│
    rank 2   ├ waits in B ··········│▓ B ▓│──┤▓ A ▓│
    rank 0   ├ waits in A ···················│▓ A ▓│

Rank 2 comes last to A because it had waited in B: rank 3 is to blame for both, with its data loading.

`Waits` tells how long a rank waited for others between two moments. How long a collective takes on the last rank to
arrive is its transfer; what it takes another rank beyond that is waiting. Waiting is lost time if the rank has nothing
else to do: on a GPU, while only communication runs, which is exact; on a CPU, while Python runs, which is the state of
a host that waits, so this is inferred.
"""

import numpy as np
from msgspec import Struct

from tracekit.base.intervals import NO_INTS, Bools, Ints
from tracekit.engine.buckets import CODES, KEYS
from tracekit.ranks.matching import Matched
from tracekit.trace.rows import BEFORE
from tracekit.trace.schema import values

OWN, PASSED_ON, INFERRED, UNSEEN = "its own", "passed on", "passed on, inferred", "not recorded"
_COMMUNICATION, _PYTHON = CODES["gpu_comm"], CODES["python"]
_LOOK_BACK = 64  # collectives to look back for one that all ranks had left before they came to the next
_WAITING_BUCKETS = [_COMMUNICATION, _PYTHON]
_NONE = NO_INTS


class Cause(Struct, frozen=True):
    """Who is to blame (an index into the ranks), in which bucket it spent too much, and whether that was its own doing
    or happened before its first recorded step."""

    rank: int
    bucket: str | None
    how: str = OWN


def causes(matched: Matched, start: Ints, end: Ints, last: Ints, ranks: int) -> list[Cause]:
    """For each collective, given the last rank's row of it, who made it late. Starts and ends are aligned.

    The bucket to blame is the one in which the last rank most exceeded the mean of the others since the latest
    collective that all of them had left before they came to this one (or, without any, since the first step began). The
    time that they had waited in other collectives meanwhile counts as another bucket. If it is the largest, the rank to
    blame is the one that was to blame for the collectives in which the last rank had waited longest. So does the time
    by which it came later than the others to its first recorded step: nothing that was recorded explains that.
    """
    search = _Search(matched, start, end, last, ranks)
    for index in np.argsort(start[last], kind="stable").tolist():  # earlier ones first
        search.known[index] = search.cause(index)
    return [search.known[index] for index in range(len(matched))]


class _Search:
    """What is known of the causes of some collectives, and all that the others are judged by."""

    def __init__(self, matched: Matched, start: Ints, end: Ints, last: Ints, ranks: int) -> None:
        count = np.diff(matched.first)
        self.known: dict[int, Cause] = {}
        self._matched, self._start, self._end, self._last = matched, start, end, last
        self._collective = np.repeat(np.arange(len(matched)), count)
        self._row_of = np.full((len(matched), ranks), -1)
        self._row_of[self._collective, matched.rank] = np.arange(len(start))
        self._spent = (_by_bucket(matched, "spent_at_start_ns"), _by_bucket(matched, "spent_at_end_ns"))
        transfer = np.repeat((end - start)[last], count)
        self._waits = [
            Waits(np.flatnonzero(matched.rank == rank), start, end, self._spent, transfer) for rank in range(ranks)
        ]

    def cause(self, index: int) -> Cause:
        """The cause of that collective's lateness."""
        rows = np.arange(self._matched.first[index], self._matched.first[index + 1])
        is_late: Bools = rows == self._last[index]
        rank = int(self._matched.rank[self._last[index]])
        base = self._latest_common_collective(rows, rank)
        spent = self._spent[0][rows]
        if base is not None:
            spent = spent - self._spent[1][base]
        waited = [
            self._waits[of].between(
                None if base is None else int(self._end[base[nth]]),
                None if base is None else self._spent[1][base[nth]],
                int(self._start[row]),
            )
            for nth, (row, of) in enumerate(zip(rows.tolist(), self._matched.rank[rows].tolist(), strict=True))
        ]
        spent[:, _COMMUNICATION] = 0  # never to blame: the lateness of others causes it
        spent[:, _PYTHON] -= [int(wait.python_ns.sum()) for wait in waited]
        excess = _excess(spent, is_late)
        waiting = _excess(np.array([[wait.waited_ns.sum()] for wait in waited]), is_late)
        bucket = int(excess.argmax())
        if base is None:
            begun = self._start[rows] - self._spent[0][rows].sum(axis=1)
            if _excess(begun[:, None] - begun.min(), is_late)[0] > max(excess[bucket], waiting[0], 0):
                return Cause(rank, None, UNSEEN)
        if waiting[0] <= max(excess[bucket], 0):
            return Cause(rank, KEYS[bucket] if excess[bucket] > 0 else None)
        of_late = waited[int(is_late.argmax())]
        return self._passed_on(self._collective[of_late.rows], of_late.waited_ns, of_late.certain)

    def _passed_on(self, collectives: Ints, waited_ns: Ints, certain: Bools) -> Cause:
        """Who was to blame for most of the waiting in these collectives."""
        blamed: dict[tuple[int, str | None, bool], int] = {}
        inferred: dict[tuple[int, str | None, bool], bool] = {}
        for index, waited, is_certain in zip(collectives.tolist(), waited_ns.tolist(), certain.tolist(), strict=True):
            if waited:
                cause = self.known.get(index) or Cause(int(self._matched.rank[self._last[index]]), None)
                key = cause.rank, cause.bucket, cause.how == UNSEEN
                blamed[key] = blamed.get(key, 0) + waited
                inferred[key] = inferred.get(key, False) or not is_certain or cause.how == INFERRED
        largest = max(blamed, key=lambda key: blamed[key])
        rank, bucket, unseen = largest
        return Cause(rank, bucket, UNSEEN if unseen else INFERRED if inferred[largest] else PASSED_ON)

    def _latest_common_collective(self, rows: Ints, late_rank: int) -> Ints | None:
        """The rows of these ranks in the latest collective that all of them had left when they came to these."""
        ranks, arrived = self._matched.rank[rows], self._start[rows]
        moment = int(arrived[ranks == late_rank][0])
        for row in self._waits[late_rank].left_by(moment)[: -_LOOK_BACK - 1 : -1].tolist():
            before: Ints = self._row_of[self._collective[row], ranks]
            if row not in rows and (before >= 0).all() and (self._end[before] <= arrived).all():
                return before
        return None


def _excess(spent: Ints, is_late: Bools) -> Ints:
    """By how much the late rank exceeds the mean of the others, times their number, so that whole numbers stay
    whole."""
    excess: Ints = spent[is_late][0] * (len(spent) - 1) - spent[~is_late].sum(axis=0)
    return excess


def _by_bucket(matched: Matched, name: str) -> Ints:
    lists = matched.calls[name].combine_chunks()
    return values(lists.flatten()).reshape(-1, len(KEYS))


class Waited(Struct, frozen=True):
    """One entry for each collective that a rank had left by a given moment."""

    rows: Ints
    waited_ns: Ints
    python_ns: Ints  # Python that ran meanwhile
    certain: Bools  # whether nothing else ran meanwhile, on a GPU


_NOTHING = Waited(_NONE, _NONE, _NONE, np.zeros(0, bool))


class Waits:
    """The collectives of a rank in the order in which it left them; times are on its own clock."""

    def __init__(self, rows: Ints, start: Ints, end: Ints, spent: tuple[Ints, Ints], transfer: Ints) -> None:
        """The waits in these rows; `spent` has the time of each bucket up to the starts, and up to the ends."""
        rows = rows[np.lexsort((rows, end[rows]))]
        self.rows, self._end = rows, end[rows]
        left_before = np.concatenate(([BEFORE], self._end))[:-1]
        self._since = np.maximum(start[rows], left_before)
        self._idle_until = spent[1][rows][:, _WAITING_BUCKETS]
        before = np.concatenate((np.zeros((1, len(_WAITING_BUCKETS)), np.int64), self._idle_until))[:-1]
        self._idle_since = np.maximum(spent[0][rows][:, _WAITING_BUCKETS], before)
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
        span = slice(low, high)
        idle_since = self._idle_since[span]
        if spent_after is not None:
            idle_since = np.maximum(idle_since, spent_after[_WAITING_BUCKETS])
        idle = np.maximum(self._idle_until[span] - idle_since, 0)
        waited = np.clip(idle.sum(axis=1) - self._transfer[span], 0, self._wait[span])
        certain = idle[:, 0] == self._end[span] - np.maximum(self._since[span], after)
        return Waited(self.rows[span], waited, idle[:, 1], certain)
