"""Who waits for whom: the collectives of a job, and what the late rank did before it arrived.

How long a collective takes on the last rank to arrive is the transfer; what it takes the others beyond that is waiting.
`causes` works out why that rank is late, and whether another one is to blame.
`align` works out by how much each rank's clock differs, judged by the collectives that ranks took part in together.
"""

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from msgspec import Struct
from numpy.typing import NDArray

from tracekit.base.intervals import Bools, Ints, Union
from tracekit.ranks.causes import INFERRED, UNSEEN, causes
from tracekit.ranks.columns import RankColumns
from tracekit.ranks.matching import Matched, match
from tracekit.trace.collectives import ONE_SIDED
from tracekit.trace.schema import column, values

_INTEGER = pa.int64()
COLLECTIVES = pa.schema(
    [
        column("step", _INTEGER, "the N of ProfilerStep#N", role="identity"),
        column("group", pa.string(), "process group; null where the trace does not name it", role="identity"),
        column("kind", pa.string(), "all_reduce, all_to_all …"),
        column(
            "seq", _INTEGER, "its position among the collectives of its kind and group in the step", role="identity"
        ),
        column("rank", _INTEGER, "rank", role="identity"),
        column("ranks", _INTEGER, "number of ranks that take part; null where it is unknown"),
        column(
            "bytes", _INTEGER, "bytes communicated, as nccl-tests counts them; null where the trace does not say", "B"
        ),
        column("transfer_ns", _INTEGER, "duration on the last rank to arrive", "ns"),
        column("wait_ns", _INTEGER, "time that it takes this rank beyond transfer_ns", "ns"),
        column("exposed_ns", _INTEGER, "the part of both that no computation overlaps on this rank", "ns"),
        column("late_rank", _INTEGER, "rank that arrived last", role="identity", title="last rank"),
        column(
            "cause_rank",
            _INTEGER,
            "rank to blame: late_rank, or the one that it had waited for in another collective",
            title="rank to blame",
        ),
        column(
            "late_bucket",
            pa.string(),
            "bucket in which the rank to blame lost time since the collective before",
            title="lost time in",
        ),
        column(
            "cause",
            pa.string(),
            "its own, passed on (by a rank that it had waited for), passed on, inferred, or not recorded: it came as "
            "late to its first recorded step",
        ),
        column("late_ns", _INTEGER, "how much later than the first it arrived", "ns", title="late by"),
    ]
)
Floats = NDArray[np.float64]


class _Blame(NamedTuple):
    step: int
    late_rank: int
    cause_rank: int
    bucket: str | None
    how: str
    since_ns: int  # when the first rank arrives
    until_ns: int  # when the late one does


def _lasting(blames: Collection[_Blame]) -> int:
    """How long some rank waits for the late one: once, where several collectives are under way at the same time."""
    times = np.array([(blame.since_ns, blame.until_ns) for blame in blames], np.int64).reshape(-1, 2)
    return Union.of(times[:, 0], times[:, 1]).total()


class PassedOn(Struct, frozen=True):
    """Ranks that came late because they had waited, by how much in all, and whether that is inferred in part."""

    ranks: list[int]
    late_ns: int
    inferred: bool


class Clock(Struct, frozen=True):
    """What to subtract from a rank's times, and how much the ends of single collectives still differ, ns.

    `error_ns` is None if no collective ties the rank to the majority, so that nothing aligns it with them.
    """

    offset_ns: int
    error_ns: int | None


class Collectives(Struct, frozen=True, dict=True):
    """All matched collectives in order of time: a row of `table` per collective and rank; see `COLLECTIVES`."""

    ranks: list[int]
    table: pa.Table
    start_ns: Ints  # by row of the table: when the rank arrives, on the common clock
    first: Ints  # the row at which each collective begins
    unmatched: dict[int, int]  # by rank, the number of calls that not all ranks of their group have
    clocks: dict[int, Clock]

    def __len__(self) -> int:
        return len(self.first)

    @cached_property
    def steps(self) -> list[int]:
        """The steps that contain them."""
        return sorted(set(self.table["step"].to_pylist()))

    @property
    def error_ns(self) -> int:
        """The error of the clocks: a rank that is late by no more than this may not be late at all."""
        return max((clock.error_ns or 0 for clock in self.clocks.values()), default=0)

    @cached_property
    def late(self) -> pa.Table:
        """One row per collective at which a rank arrived last by more than the error of the clocks, because of what was
        recorded."""
        return self.table.take(self.first[self._is_late])

    @cached_property
    def late_before(self) -> dict[int, int]:
        """By how much ranks came later than the first to a collective because of what was not recorded, ns."""
        rows = self.first[self._unseen[self.first]]
        ranks, late = (values(self.table[name])[rows].tolist() for name in ("late_rank", "late_ns"))
        longest: dict[int, int] = {}
        for rank, late_ns in zip(ranks, late, strict=True):
            if late_ns > self.error_ns:
                longest[rank] = max(longest.get(rank, 0), late_ns)
        return longest

    @cached_property
    def _unseen(self) -> Bools:
        unseen: Bools = np.array([how == UNSEEN for how in self.table["cause"].to_pylist()], bool)
        return unseen

    @cached_property
    def _is_late(self) -> Bools:
        """Which collectives are those of `late`."""
        is_late: Bools = ((values(self.table["late_ns"]) > self.error_ns) & ~self._unseen)[self.first]
        return is_late

    def _by_row(self, is_chosen: Bools) -> Bools:
        """Which rows of the table are of chosen collectives."""
        mask: Bools = np.repeat(is_chosen, np.diff(np.append(self.first, len(self.table))))
        return mask

    @cached_property
    def _blames(self) -> list[_Blame]:
        """One for each row of `late`."""
        names = ("step", "late_rank", "cause_rank", "late_bucket", "cause")
        since = np.minimum.reduceat(self.start_ns, self.first)[self._is_late]
        until = since + values(self.late["late_ns"])
        columns = [*(self.late[name].to_pylist() for name in names), since.tolist(), until.tolist()]
        return [_Blame(*row) for row in zip(*columns, strict=True)] if len(since) else []

    @cached_property
    def _blames_by_cause(self) -> dict[tuple[int, int], list[_Blame]]:
        """The blames by rank and step."""
        blames: dict[tuple[int, int], list[_Blame]] = {}
        for blame in self._blames:
            blames.setdefault((blame.cause_rank, blame.step), []).append(blame)
        return blames

    def _blamed(self, rank: int, steps: Sequence[int]) -> Iterator[_Blame]:
        for step in steps:
            yield from self._blames_by_cause.get((rank, step), ())

    def caused_ns(self, rank: int, step: int | None = None) -> dict[str, int]:
        """How much lateness the rank is to blame for, in all collectives or in one step, by bucket ("" if
        unexplained)."""
        blames = [*self._blamed(rank, self.steps if step is None else [step])]
        buckets = dict.fromkeys(blame.bucket or "" for blame in blames)
        return {key: _lasting([blame for blame in blames if (blame.bucket or "") == key]) for key in buckets}

    def delay_ns(self, rank: int, step: int | None = None) -> int:
        """How long others wait because of the rank, in all collectives or in one step."""
        return _lasting([*self._blamed(rank, self.steps if step is None else [step])])

    def lost_ns(self, rank: int) -> int:
        """How long the rank that loses most by it waits for this one, in all steps, while nothing else runs."""
        blamed = self._is_late & (values(self.table["cause_rank"])[self.first] == rank)
        waiting = self._by_row(blamed) & (values(self.table["rank"]) != rank)
        return max((self._united_ns(other, self._lost_ns, waiting) for other in self.ranks), default=0)

    @cached_property
    def _lost_ns(self) -> Ints:
        """For how long of each row of the table the rank waits for others and runs nothing else."""
        return np.minimum(values(self.table["wait_ns"]), values(self.table["exposed_ns"]))

    @cached_property
    def late_rank_of(self) -> dict[int, int]:
        """The rank that others wait for most, by step; nothing for a step in which no rank is late."""
        worst = ((step, max(self.ranks, key=lambda rank: self.delay_ns(rank, step))) for step in self.steps)
        return {step: rank for step, rank in worst if self.delay_ns(rank, step)}

    def lost_to_any_ns(self) -> int:
        """How long the rank that loses most in a step waits for late ones while nothing else runs, in all steps."""
        rank, step = (values(self.table[name]) for name in ("rank", "step"))
        rows = np.flatnonzero(self._by_row(self._is_late) & (rank != values(self.table["cause_rank"])))
        rows = rows[np.lexsort((rank[rows], step[rows]))]
        bounds = np.flatnonzero((np.diff(rank[rows], prepend=-1) != 0) | (np.diff(step[rows], prepend=-1) != 0))
        most_lost: dict[int, int] = {}
        for waiting in np.split(rows, bounds)[1:]:
            in_step = Union.of(self.start_ns[waiting], self.start_ns[waiting] + self._lost_ns[waiting]).total()
            number = int(step[waiting[0]])
            most_lost[number] = max(most_lost.get(number, 0), in_step)
        return sum(most_lost.values())

    def _united_ns(self, rank: int, length: Ints, is_chosen: Bools) -> int:
        """How long the rank spends in these rows, given how long each lasts from its start."""
        rows = np.flatnonzero(is_chosen & (values(self.table["rank"]) == rank))
        return Union.of(self.start_ns[rows], self.start_ns[rows] + length[rows]).total()

    def passed_on(self, rank: int) -> PassedOn:
        """The lateness of others that it is to blame for, because they had waited for it."""
        blames = [blame for blame in self._blamed(rank, self.steps) if blame.late_rank != rank]
        late = {blame.late_rank for blame in blames}
        return PassedOn(sorted(late), _lasting(blames), any(blame.how == INFERRED for blame in blames))

    @cached_property
    def late_for_ns(self) -> dict[int, dict[tuple[int, str], int]]:
        """For each rank, how much later than the first it arrived, in total, by the rank to blame and the bucket."""
        blames: dict[int, dict[tuple[int, str], list[_Blame]]] = {rank: {} for rank in self.ranks}
        for blame in self._blames:
            blames[blame.late_rank].setdefault((blame.cause_rank, blame.bucket or ""), []).append(blame)
        return {rank: {key: _lasting(some) for key, some in of_rank.items()} for rank, of_rank in blames.items()}

    def late_ns(self, rank: int) -> int:
        """How much later than the first the rank arrived, in all collectives; once, where some overlap."""
        return _lasting([blame for blame in self._blames if blame.late_rank == rank])

    def lost_by_ns(self, rank: int) -> int:
        """How long that rank waited for others while nothing else ran on it, in all collectives."""
        return self._united_ns(rank, self._lost_ns, np.ones(len(self.table), bool))

    def wait_ns(self, rank: int) -> int:
        """How long that rank waited for others, in all collectives."""
        return self._united_ns(rank, values(self.table["wait_ns"]), np.ones(len(self.table), bool))


def collectives(columns: Sequence[RankColumns]) -> Collectives:
    """The collectives of one job, given the columns of each rank.

    They are those of the steps that are steady on at least one rank; of all steps, if there are none.
    """
    ranks = [rank_columns.rank for rank_columns in columns]
    numbers = [rank_columns.steps["step"].to_pylist() for rank_columns in columns]
    steady = [rank_columns.steps["steady"].to_pylist() for rank_columns in columns]
    all_steps = frozenset(number for step_numbers in numbers for number in step_numbers)
    pairs = (pair for of_rank in zip(numbers, steady, strict=True) for pair in zip(*of_rank, strict=True))
    steady_steps = frozenset(number for number, is_steady in pairs if is_steady)
    matched = match(columns, steady_steps or all_steps)
    clocks = align(matched, len(ranks))
    offsets = np.array([clock.offset_ns for clock in clocks], np.int64)[matched.rank]
    start, end = matched.column("start_ns") - offsets, matched.column("end_ns") - offsets
    table = _table(matched, ranks, start, end)
    unmatched = dict(zip(ranks, matched.unmatched.tolist(), strict=True))
    return Collectives(ranks, table, start, matched.first[:-1], unmatched, dict(zip(ranks, clocks, strict=True)))


def _table(matched: Matched, ranks: list[int], start: Ints, end: Ints) -> pa.Table:
    """The columns of `COLLECTIVES`, given when ranks arrive and are done on the common clock."""
    count = np.diff(matched.first)
    last = np.array(
        [low + int(start[low:high].argmax()) for low, high in zip(matched.first[:-1], matched.first[1:], strict=True)],
        np.int64,
    )
    first = matched.first[:-1]
    earliest = np.minimum.reduceat(start, first) if len(first) else first
    why = causes(matched, start, end, last, len(ranks))
    length = end - start
    transfer = np.repeat(length[last], count)
    number = np.array(ranks, np.int64)
    kept_columns = {
        name: matched.calls[name] for name in ("step", "group", "kind", "seq", "ranks", "bytes", "exposed_ns")
    }
    columns = kept_columns | {
        "rank": number[matched.rank],
        "transfer_ns": transfer,
        "wait_ns": np.maximum(length - transfer, 0),
        "late_rank": np.repeat(number[matched.rank[last]], count),
        "cause_rank": np.repeat(number[[cause.rank for cause in why]], count) if why else [],
        "late_bucket": _repeated([cause.bucket for cause in why], count),
        "cause": _repeated([cause.how for cause in why], count),
        "late_ns": np.repeat(start[last] - earliest, count),
    }
    return pa.table({field.name: columns[field.name] for field in COLLECTIVES}, schema=COLLECTIVES)


def _repeated(texts: Sequence[str | None], count: Ints) -> list[str | None]:
    return [text for text, times in zip(texts, count.tolist(), strict=True) for _ in range(times)]


def align(matched: Matched, ranks: int) -> list[Clock]:
    """A clock per rank.

    A collective ends on every rank at nearly the same moment. Between two ranks the median difference of its ends is
    the difference of their clocks. Pairs of ranks are aligned one after another, those that share the most collectives
    first, which also aligns ranks that never share one. An offset is relative to the median of all; its error is the
    median absolute difference that then remains between the ends on that rank and the median end. Collectives in which
    a rank may be done before the others count only if the rest does not tie all ranks together.
    """
    # A row per collective, a column per rank: when it ended, relative to its end on the first rank; NaN if absent. (In
    # unix ns, floating point could represent only every 256th value.)
    end = matched.column("end_ns")
    collective = np.repeat(np.arange(len(matched)), np.diff(matched.first))
    ends = np.full((len(matched), ranks), np.nan)
    ends[collective, matched.rank] = end - end[matched.first[:-1]][collective]
    kinds = matched.calls["kind"].to_pylist()
    two_sided = np.array([kinds[first] not in ONE_SIDED for first in matched.first[:-1].tolist()], bool)
    chosen = ends[two_sided]
    offsets, tied = _tied(chosen)
    if not tied.all():
        chosen = ends
        offsets, tied = _tied(chosen)
    offsets -= round(float(np.median(offsets[tied])))
    # For each rank, the median distance of its ends from the median end; 0 if there are none.
    rows = (chosen - offsets)[(~np.isnan(chosen)).sum(axis=1) > 1]
    away = np.abs(rows - np.nanmedian(rows, axis=1, keepdims=True)) if len(rows) else rows
    errors = [float(np.median(column[~np.isnan(column)])) if (~np.isnan(column)).any() else 0.0 for column in away.T]
    return [
        Clock(int(offset), round(error) if is_tied else None)
        for offset, error, is_tied in zip(offsets.tolist(), errors, tied.tolist(), strict=True)
    ]


def _tied(ends: Floats) -> tuple[Ints, Bools]:
    """The offset of each rank, and which ranks are tied to the one with the most collectives.

    Ranks that nothing ties to it are aligned among themselves: ranks that share no collective are never compared.
    """
    has_end = ~np.isnan(ends)
    shared = has_end.T.astype(np.int64) @ has_end
    offsets, part = np.zeros(ends.shape[1], np.int64), np.full(ends.shape[1], -1)
    while (new_ones := part < 0).any():
        links = np.where(~new_ones[:, None] & new_ones[None, :], shared, 0)
        known, new = (int(index) for index in np.unravel_index(int(links.argmax()), links.shape))
        if links[known, new]:
            is_common = has_end[:, known] & has_end[:, new]
            offsets[new] = offsets[known] + round(float(np.median(ends[is_common, new] - ends[is_common, known])))
            part[new] = part[known]
        else:
            part[np.where(new_ones, has_end.sum(axis=0), -1).argmax()] = part.max() + 1
    return offsets, part == 0
