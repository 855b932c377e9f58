"""How many events of each category and name does each track hold? That answers most questions about a whole trace."""

from collections.abc import Callable, Iterable
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
    keys_by_part = (
        (part.track * np.int64(cats) + trace.cat_codes[part.selection].astype(np.int64)) * names + part.name_codes
        for part in parts(trace)
    )
    keys, counts = _counted(keys_by_part, names * cats * max(len(trace.tracks), 1))
    rest, name = np.divmod(keys, names)
    track, category = np.divmod(rest, cats)
    return Census(trace.labels.roles(category, name), track, counts)


def _counted(columns: Iterable[Ints], size: int) -> tuple[Ints, Ints]:
    """Which numbers below `size` occur, and how often: by a counter for each, or by sorting if these would be many."""
    if size <= _CELLS:
        cells = np.zeros(size, np.int64)
        for numbers in columns:
            cells += np.bincount(numbers, minlength=size)
        occurring = np.flatnonzero(cells)
        return occurring, cells[occurring]
    counts: dict[int, int] = {}
    for numbers in columns:
        for number, count in zip(*(column.tolist() for column in np.unique(numbers, return_counts=True)), strict=True):
            counts[number] = counts.get(number, 0) + count
    return np.array([*counts], np.int64), np.array([*counts.values()], np.int64)
