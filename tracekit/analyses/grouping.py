"""Events by what they have in common: how many there are, and what they come to, in the whole trace and a step."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracekit.intervals import Bools, Ints, Rows
from tracekit.profile import Profile

Names = dict[str, Callable[[Ints], Any]]  # columns that say what a group is, made from the keys


class Grouping:
    """Takes events some at a time; the group that takes most in a counted step comes first in the end."""

    def __init__(self, profile: Profile, sums: list[str]) -> None:
        self._counted = np.append(profile.counted, False)
        self._steps = float(max(int(profile.counted.sum()), 1))
        self._sums = sums
        self._places: dict[int, int] = {}
        self._found = np.zeros((0, 2 + 2 * len(sums)), np.int64)  # how many, inside, and each sum and its part inside

    def add(self, keys: Ints | Rows, step: Ints, *values: Ints) -> Ints:
        """Events by the number of their group and the place of their step, −1 for none; the group of each."""
        distinct, which = np.unique(keys, return_inverse=True)
        group = np.array([self._places.setdefault(key, len(self._places)) for key in distinct.tolist()], np.int64)
        missing = len(self._places) - len(self._found)
        self._found = np.concatenate((self._found, np.zeros((missing, self._found.shape[1]), np.int64)))
        place, inside = group[which], self._counted[step]
        self._sum(0, place, inside, np.ones(len(keys), np.int64))
        for column, value in enumerate(values):
            self._sum(2 + 2 * column, place, inside, value)
        return place

    def _sum(self, column: int, place: Ints, inside: Bools, value: Ints) -> None:
        np.add.at(self._found[:, column], place, value)
        np.add.at(self._found[:, column + 1], place[inside], value[inside])

    @property
    def keys(self) -> Ints:
        """The number of each group."""
        return np.array([*self._places], np.int64)

    def table(self, names: Names, **more: Any) -> pa.Table:
        """One row for each group.

        Columns: `names` and `more`; `count` and each sum over the whole trace; `per_step` how many, and
        `<name>_per_step` how much, in a counted step.
        """
        keys = self.keys
        found: dict[str, Any] = {name: make(keys) for name, make in names.items()}
        found["count"] = pa.array(self._found[:, 0])
        found["per_step"] = pa.array(self._found[:, 1] / self._steps)
        for place, name in enumerate(self._sums):
            found[name] = pa.array(self._found[:, 2 + 2 * place])
            found[f"{name}_per_step"] = pa.array(self._found[:, 3 + 2 * place] / self._steps)
        order = [f"{name}_per_step" for name in self._sums] + self._sums + ["count"]
        sorting = [(name, "descending") for name in order] + [(name, "ascending") for name in names]
        grouped = pa.table(found | more)
        return grouped.take(pc.sort_indices(grouped, sort_keys=sorting))


class Samples:
    """Values of which the median is wanted, by group."""

    def __init__(self) -> None:
        self._groups: list[Ints] = []
        self._values: list[Ints] = []

    def add(self, group: Ints, values: Ints) -> None:
        """More of them."""
        self._groups.append(group.astype(np.int32))
        self._values.append(values)

    def medians(self, groups: int) -> pa.Array:
        """One for each group; null for one without values."""
        if not self._groups:
            return pa.nulls(groups, pa.float64())
        group, values = np.concatenate(self._groups), np.concatenate(self._values)
        order = np.argsort(group, kind="stable")
        ends = np.cumsum(np.bincount(group, minlength=groups))
        pieces = (values[order[start:end]] for start, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True))
        return pa.array([float(np.median(piece)) if len(piece) else None for piece in pieces], pa.float64())
