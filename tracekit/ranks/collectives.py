"""Who waits for whom: the collectives of a job, and what the late rank did before it arrived.

What the last rank to arrive sees of a collective is the transfer; what the others see beyond that is waiting. The time
by which the last one is late is charged to the bucket in which it spent more than the others since the last collective.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from tracekit.engine.buckets import CODES, KEYS
from tracekit.intervals import Bools, Ints
from tracekit.ranks.clocks import Clock, align
from tracekit.ranks.columns import RankColumns
from tracekit.ranks.matching import Matched, match
from tracekit.trace.columns import values
from tracekit.trace.schema import column

_NOT_TO_BLAME = ("gpu_comm",)  # waiting in a collective is what lateness causes, not its cause
_LOOK_BACK = 64  # collectives to look back for one that all ranks had left before they came to the next
_WHOLE = pa.int64()
COLLECTIVES = pa.schema(
    [
        column("step", _WHOLE, "the N of ProfilerStep#N", role="identity"),
        column("group", pa.string(), "process group; null where the trace does not name it", role="identity"),
        column("kind", pa.string(), "all_reduce, all_to_all …"),
        column("seq", _WHOLE, "its position among the collectives of its kind and group in the step", role="identity"),
        column("rank", _WHOLE, "rank", role="identity"),
        column("ranks", _WHOLE, "number of ranks that take part; null where it is unknown"),
        column(
            "bytes", _WHOLE, "bytes communicated, as nccl-tests counts them; null where the trace does not say", "B"
        ),
        column("transfer_ns", _WHOLE, "duration on the last rank to arrive", "ns"),
        column("wait_ns", _WHOLE, "time that it takes this rank beyond that", "ns"),
        column("exposed_ns", _WHOLE, "the part of both that no computation hides on this rank", "ns"),
        column("late_rank", _WHOLE, "rank that arrived last", role="identity"),
        column(
            "late_bucket", pa.string(), "bucket in which it spent more time than the others since the collective before"
        ),
        column("late_ns", _WHOLE, "how much later than the first it arrived", "ns"),
    ]
)


@dataclass(frozen=True)
class Collectives:
    """All that were matched, in order of time: a row of `table` per collective and rank; see `COLLECTIVES`."""

    ranks: list[int]
    table: pa.Table
    first: Ints  # the row at which each collective begins
    unmatched: dict[int, int]  # by rank the calls that not all ranks of their group have
    clocks: dict[int, Clock]

    def __len__(self) -> int:
        return len(self.first)

    @cached_property
    def steps(self) -> list[int]:
        """The steps that contain them."""
        return sorted(set(self.table["step"].to_pylist()))

    @property
    def error_ns(self) -> int:
        """How far the clocks may be off: a rank that is late by no more may not be late at all."""
        return max((clock.error_ns or 0 for clock in self.clocks.values()), default=0)

    @cached_property
    def late(self) -> pa.Table:
        """One row per collective to which some rank came last by more than the clocks may be off."""
        rows = self.table.take(self.first)
        return rows.take(np.flatnonzero(values(rows["late_ns"]) > self.error_ns))

    @cached_property
    def _caused(self) -> dict[tuple[int, int], dict[str, int]]:
        """By rank and step."""
        names = ("late_rank", "step", "late_bucket", "late_ns")
        sums: dict[tuple[int, int], dict[str, int]] = {}
        for rank, step, bucket, late in zip(*(self.late[name].to_pylist() for name in names), strict=True):
            of_both = sums.setdefault((rank, step), {})
            of_both[bucket or ""] = of_both.get(bucket or "", 0) + late
        return sums

    def caused_ns(self, rank: int, step: int | None = None) -> dict[str, int]:
        """By how much that rank was late, in all of them or in a step, by bucket; "" for what no bucket explains."""
        sums: dict[str, int] = {}
        for each in self.steps if step is None else [step]:
            for bucket, late in self._caused.get((rank, each), {}).items():
                sums[bucket] = sums.get(bucket, 0) + late
        return sums

    def wait_ns(self, rank: int) -> int:
        """How long that rank waited for others, in all of them."""
        return int(values(self.table["wait_ns"])[values(self.table["rank"]) == rank].sum())


def collectives(columns: Sequence[RankColumns]) -> Collectives:
    """The collectives of one job, given the columns of each rank.

    They are of the steps that are steady on some rank at least; of all where none is.
    """
    ranks = [each.rank for each in columns]
    matched = match(columns, _steps(columns))
    clocks = align(matched, len(ranks))
    table, first = _table(matched, ranks, np.array([clock.offset_ns for clock in clocks], np.int64))
    unmatched = dict(zip(ranks, matched.unmatched.tolist(), strict=True))
    return Collectives(ranks, table, first, unmatched, dict(zip(ranks, clocks, strict=True)))


def _steps(columns: Sequence[RankColumns]) -> frozenset[int]:
    numbers = [each.steps["step"].to_pylist() for each in columns]
    steady = [each.steps["steady"].to_pylist() for each in columns]
    every = frozenset(number for each in numbers for number in each)
    chosen = frozenset(
        number for each, kept in zip(numbers, steady, strict=True) for number, is_steady in zip(each, kept, strict=True)
        if is_steady
    )  # fmt: skip
    return chosen or every


def _table(matched: Matched, ranks: list[int], offsets: Ints) -> tuple[pa.Table, Ints]:
    start = matched.column("start_ns") - offsets[matched.rank]
    length = matched.column("end_ns") - offsets[matched.rank] - start
    count = np.diff(matched.first)
    last = np.array(
        [low + int(start[low:high].argmax()) for low, high in zip(matched.first[:-1], matched.first[1:], strict=True)],
        np.int64,
    )
    first = matched.first[:-1]
    earliest = np.minimum.reduceat(start, first) if len(first) else first
    buckets = _blamed(matched, start, start + length, last, len(ranks))
    transfer = np.repeat(length[last], count)
    number = np.array(ranks, np.int64)
    kept = {name: matched.calls[name] for name in ("step", "group", "kind", "seq", "ranks", "bytes", "exposed_ns")}
    columns = kept | {
        "rank": number[matched.rank],
        "transfer_ns": transfer,
        "wait_ns": np.maximum(length - transfer, 0),
        "late_rank": np.repeat(number[matched.rank[last]], count),
        "late_bucket": [bucket for bucket, times in zip(buckets, count.tolist(), strict=True) for _ in range(times)],
        "late_ns": np.repeat(start[last] - earliest, count),
    }
    return pa.table({field.name: columns[field.name] for field in COLLECTIVES}, schema=COLLECTIVES), first


def _blamed(matched: Matched, start: Ints, end: Ints, last: Ints, ranks: int) -> list[str | None]:
    """For each collective, the bucket in which the late rank spent most beyond the mean of the others.

    That is since the last collective that all of them had finished before they arrived at this one; without any, since
    the first step began.
    """
    at_start, at_end = (_by_bucket(matched, f"spent_at_{edge}_ns") for edge in ("start", "end"))
    forgiven = [CODES[key] for key in _NOT_TO_BLAME]
    row_of = np.full((len(matched), ranks), -1)
    row_of[np.repeat(np.arange(len(matched)), np.diff(matched.first)), matched.rank] = np.arange(len(matched.rank))
    blamed: list[str | None] = []
    for index, late in enumerate(last.tolist()):
        rows = slice(int(matched.first[index]), int(matched.first[index + 1]))
        spent = at_start[rows].astype(np.float64)
        through = _through(row_of, index, matched.rank[rows], start[rows], end)
        if through is not None:
            spent -= at_end[through]
        is_late: Bools = np.arange(rows.start, rows.stop) == late
        beyond = spent[is_late][0] - spent[~is_late].mean(axis=0)
        beyond[forgiven] = 0
        blamed.append(KEYS[int(beyond.argmax())] if beyond.max() > 0 else None)
    return blamed


def _through(row_of: Ints, index: int, ranks: Ints, arrived: Ints, end: Ints) -> Ints | None:
    """The rows of these ranks in the latest earlier collective that all of them had left when they arrived."""
    for before in range(index - 1, max(index - 1 - _LOOK_BACK, -1), -1):
        rows: Ints = row_of[before, ranks]
        if (rows >= 0).all() and (end[rows] <= arrived).all():
            return rows
    return None


def _by_bucket(matched: Matched, name: str) -> Ints:
    lists = matched.calls[name].combine_chunks()
    return values(lists.flatten()).reshape(-1, len(KEYS))
