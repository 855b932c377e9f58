"""How many events of each category and name does each track hold? That answers most questions about a whole trace."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from tracekit.base.intervals import Bools, Ints
from tracekit.trace.roles import Roles
from tracekit.trace.rows import parts

if TYPE_CHECKING:
    from tracekit.trace.model import Trace

_CELLS = 1 << 20  # up to this many counters are cheaper than sorting
Ask = Callable[[Roles], Bools]


class Census(Struct, frozen=True):
    """One entry for each category and name that events of a track have."""

    roles: Roles
    track: Ints
    counts: Ints

    def count(self, ask: Ask) -> int:
        """How many events have the role."""
        return int(self.counts[ask(self.roles)].sum())

    def any(self, ask: Ask) -> bool:
        """Whether an event has the role."""
        return bool(ask(self.roles).any())

    def by_track(self, ask: Ask, tracks: int) -> Ints:
        """How many events of each track have the role."""
        totals = np.zeros(tracks, np.int64)
        has_role = ask(self.roles)
        np.add.at(totals, self.track[has_role], self.counts[has_role])
        return totals


def take_census(trace: "Trace") -> Census:
    """Count the events of every track by category and name."""
    names, cats = max(len(trace.names), 1), max(len(trace.labels.kinds), 1)
    total = _Counts(names * cats * max(len(trace.tracks), 1))
    for part in parts(trace):
        categories = trace.cat_codes[part.selection].astype(np.int64)
        total.add((part.track * np.int64(cats) + categories) * names + part.name_codes)
    keys, counts = total.occurring()
    rest, name = np.divmod(keys, names)
    track, category = np.divmod(rest, cats)
    return Census(trace.labels.roles(category, name), track, counts)


class _Counts:
    """How often each of many numbers occurs: a counter for each, or sorting if there would be too many counters."""

    def __init__(self, size: int) -> None:
        self._cells = np.zeros(size, np.int64) if size <= _CELLS else None
        self._sorted: dict[int, int] = {}

    def add(self, keys: Ints) -> None:
        """Count these numbers."""
        if self._cells is not None:
            self._cells += np.bincount(keys, minlength=len(self._cells))
            return
        for key, count in zip(*(column.tolist() for column in np.unique(keys, return_counts=True)), strict=True):
            self._sorted[key] = self._sorted.get(key, 0) + count

    def occurring(self) -> tuple[Ints, Ints]:
        """The numbers that occurred, and how often."""
        if self._cells is not None:
            keys = np.flatnonzero(self._cells)
            return keys, self._cells[keys]
        return np.array([*self._sorted], np.int64), np.array([*self._sorted.values()], np.int64)
