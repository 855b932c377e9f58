"""Who waits for whom: the collectives that all ranks took part in, and what the late rank did before it arrived.

What the last rank to arrive sees of a collective is the transfer; what the others see beyond that is waiting. The time
by which the last one is late is charged to the bucket in which it spent more than the others since the last collective.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tracekit.engine.buckets import CODES, KEYS
from tracekit.intervals import Ints
from tracekit.profile import Profile
from tracekit.ranks.calls import Calls, Key, calls_of
from tracekit.ranks.clocks import Clock, align

Floats = NDArray[np.float64]
_NOT_TO_BLAME = ("gpu_comm",)  # waiting in a collective is what lateness causes, not its cause


@dataclass(frozen=True)
class Collective:
    """One collective on all ranks; times are ns."""

    step: int
    kind: str
    nth: int  # of its kind in the step
    transfer_ns: int
    wait_ns: dict[int, int]  # by rank
    late_rank: int
    late_ns: int  # from the first rank's arrival to the last one's
    late_bucket: str | None  # None where the last rank spent no more time than the others in any bucket


@dataclass(frozen=True)
class Collectives:
    """All that were matched, in order of time; `unmatched` has the number of calls that only some ranks have."""

    ranks: list[int]
    matched: list[Collective]
    unmatched: dict[int, int]
    clocks: dict[int, Clock]

    @cached_property
    def steps(self) -> int:
        """The number of steps that they lie in."""
        return len({each.step for each in self.matched})

    @property
    def error_ns(self) -> int:
        """How far the clocks may be off: a rank that is late by no more may not be late at all."""
        return max((clock.error_ns for clock in self.clocks.values()), default=0)

    def late(self, rank: int) -> list[Collective]:
        """The collectives to which that rank came last, by more than the clocks may be off."""
        return [each for each in self.matched if each.late_rank == rank and each.late_ns > self.error_ns]

    def caused_ns(self, rank: int) -> dict[str, int]:
        """By how much that rank was late, in all of them, by bucket; "" for what no bucket explains."""
        sums: dict[str, int] = {}
        for each in self.late(rank):
            sums[each.late_bucket or ""] = sums.get(each.late_bucket or "", 0) + each.late_ns
        return sums


def collectives(profiles: dict[int, Profile]) -> Collectives:
    """The collectives of one job, given the profile of each rank."""
    calls = {rank: calls_of(profile, rank) for rank, profile in profiles.items()}
    ranks = [*profiles]
    common = _common(calls)
    index = {rank: _where(each, common) for rank, each in calls.items()}
    ends = np.stack([calls[rank].end_ns[index[rank]] for rank in ranks], axis=1)
    clocks = dict(zip(ranks, align(ends), strict=True))
    offsets = np.array([clocks[rank].offset_ns for rank in ranks])
    starts = np.stack([calls[rank].start_ns[index[rank]] for rank in ranks], axis=1) - offsets
    durations = ends - offsets - starts
    order = np.argsort(starts.min(axis=1), kind="stable") if len(common) else np.zeros(0, np.int64)
    spent = {rank: _Spent(profile, clocks[rank].offset_ns) for rank, profile in profiles.items()}
    matched, since = [], {rank: spent[rank].begins for rank in ranks}
    for k in order.tolist():
        matched.append(_collective(common[k], ranks, starts[k], durations[k], spent=spent, since=since))
        since = {rank: int(starts[k, at] + durations[k, at]) for at, rank in enumerate(ranks)}
    unmatched = {rank: len(each.keys) - len(common) for rank, each in calls.items()}
    return Collectives(ranks, matched, unmatched, clocks)


def _common(calls: dict[int, Calls]) -> list[Key]:
    first, *others = calls.values()
    present = set(first.keys).intersection(*(each.keys for each in others))
    return [key for key in first.keys if key in present]


def _where(calls: Calls, keys: list[Key]) -> Ints:
    places = {key: at for at, key in enumerate(calls.keys)}
    return np.array([places[key] for key in keys], np.int64)


def _collective(
    key: Key, ranks: list[int], starts: Ints, durations: Ints, *, spent: "dict[int, _Spent]", since: dict[int, int]
) -> Collective:
    last = int(starts.argmax())
    transfer = int(durations[last])
    waits = {rank: max(0, int(each) - transfer) for rank, each in zip(ranks, durations, strict=True)}
    arrived = dict(zip(ranks, starts.tolist(), strict=True))
    return Collective(
        step=key[0],
        kind=key[1],
        nth=key[2],
        transfer_ns=transfer,
        wait_ns=waits,
        late_rank=ranks[last],
        late_ns=int(starts[last] - starts.min()),
        late_bucket=_blamed(ranks[last], spent, since, arrived),
    )


def _blamed(late: int, spent: "dict[int, _Spent]", since: dict[int, int], arrived: dict[int, int]) -> str | None:
    """The bucket in which the late rank spent most beyond the mean of the others."""
    each = {rank: spent[rank].between(since[rank], arrived[rank]) for rank in spent}
    others = np.mean([parts for rank, parts in each.items() if rank != late], axis=0)
    beyond = each[late] - others
    beyond[[CODES[key] for key in _NOT_TO_BLAME]] = 0
    return KEYS[int(beyond.argmax())] if beyond.max() > 0 else None


class _Spent:
    """How much wall time of each bucket lies between two moments of the shared clock, on one rank."""

    def __init__(self, profile: Profile, offset_ns: int) -> None:
        pieces = profile.cost.pieces
        shift = profile.trace.base_ns - offset_ns
        self._starts, self._ends, self._bucket = pieces.start + shift, pieces.end + shift, pieces.bucket
        self.begins = int(self._starts[0]) if len(self._starts) else 0

    def between(self, low: int, high: int) -> Floats:
        """ns by bucket, in the order of the buckets' codes."""
        first, last = np.searchsorted(self._ends, low, side="right"), np.searchsorted(self._starts, high, side="left")
        inside = slice(int(first), int(max(first, last)))
        lengths = np.minimum(self._ends[inside], high) - np.maximum(self._starts[inside], low)
        return np.bincount(self._bucket[inside], np.maximum(lengths, 0), minlength=len(CODES)).astype(np.float64)
