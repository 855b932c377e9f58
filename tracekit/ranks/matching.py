"""Which calls of several ranks are one collective?

They belong to the same process group and kind, and have the same position in the same step. In most kinds, all ranks
contribute equally, so the size has to agree, too.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct

from tracekit.intervals import Bools, Ints, distinct
from tracekit.ranks.columns import RankColumns
from tracekit.trace.collectives import SAME_SIZE
from tracekit.trace.columns import values


class Matched(Struct, frozen=True):
    """Calls that are parts of collectives, grouped by collective, the earliest collective first.

    `rank` is an index into the given ranks; `first` has the row at which each collective begins, and a final entry.
    """

    calls: pa.Table
    rank: Ints
    first: Ints
    unmatched: Ints  # by rank: calls that some ranks that should have them lack

    def __len__(self) -> int:
        return len(self.first) - 1

    def column(self, name: str) -> Ints:
        """A column of whole numbers."""
        return values(self.calls[name])


def match(columns: Sequence[RankColumns], steps: frozenset[int]) -> Matched:
    """The collectives in these steps that all available ranks of their group took part in.

    A rank without a step in common with any other counts as unavailable: its file may have been cut earlier.
    """
    calls = pa.concat_tables([each.calls for each in columns]).combine_chunks()
    rank = np.repeat(np.arange(len(columns)), [len(each.calls) for each in columns])
    asked = np.isin(values(calls["step"]), list(steps))
    collective = _numbers(calls)
    taking_part = {columns[index].rank for index in _sharing(rank[asked], values(calls["step"])[asked])}
    expected = _expected(calls["group"].to_pylist(), rank, columns, taking_part)
    present = np.bincount(collective[asked], minlength=int(collective.max(initial=-1)) + 1)
    whole: Bools = asked & (present[collective] == expected) & (expected > 1)
    unmatched = np.bincount(rank[asked & ~whole], minlength=len(columns))
    rows = np.flatnonzero(whole)
    begin = np.full(len(present), np.iinfo(np.int64).max)
    np.minimum.at(begin, collective[rows], values(calls["start_ns"])[rows])
    rows = rows[np.lexsort((rank[rows], collective[rows], begin[collective[rows]]))]
    edges = np.flatnonzero(np.diff(collective[rows], prepend=-1, append=-1)) if len(rows) else np.zeros(1, np.int64)
    return Matched(calls.take(rows), rank[rows], edges, unmatched)


def _sharing(rank: Ints, step: Ints) -> list[int]:
    """The ranks that have calls in a step in which other ranks have some, too."""
    pairs = np.unique(np.stack([rank, step]), axis=1)
    _, index, ranks = np.unique(pairs[1], return_inverse=True, return_counts=True)
    sharing: list[int] = distinct(pairs[0][ranks[index] > 1]).tolist()
    return sharing


def _numbers(calls: pa.Table) -> Ints:
    """The same number for calls of different ranks that are one collective."""
    names = ("kind", "bytes", "step", "group", "seq", "nth")
    numbers: dict[tuple[Any, ...], int] = {}
    keys = (
        (kind, size if kind in SAME_SIZE else None, *others)
        for kind, size, *others in zip(*(calls[name].to_pylist() for name in names), strict=True)
    )
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)


def _expected(groups: list[str | None], rank: Ints, columns: Sequence[RankColumns], taking_part: set[int]) -> Ints:
    """How many of the participating ranks must have each call: those in its group.

    If the members are not known, these are the ranks with calls of the group; if the group is not known, all ranks.
    """
    having: dict[str | None, set[int]] = {None: taking_part.copy()}
    for group, index in zip(groups, rank.tolist(), strict=True):
        having.setdefault(group, set()).add(columns[index].rank)
    for each in columns:
        having |= {group: set(members) for group, members in each.groups.items()}
    expected = {group: len(members & taking_part) for group, members in having.items()}
    return np.array([expected[group] for group in groups], np.int64)
