"""Events grouped by what they have in common: how many there are and what they add up to, in the trace and per step;
and the GPU's time by kind of work.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.base.intervals import Bools, Ints, Rows, occurring
from tracekit.profile.profile import Profile
from tracekit.trace.roles import KERNEL
from tracekit.vocabulary.kernel_class import kernel_class

Names = dict[str, Callable[[int], str | None]]  # columns that say what a group is, made from its number


def mean_of_one(total: Ints, count: Ints, counted_total: Ints, counted: Ints) -> NDArray[np.float64]:
    """What one event takes on average: one of those in counted steps or, where there are none there, one of all."""
    totals, counts = (np.where(counted > 0, *pair) for pair in ((counted_total, total), (counted, count)))
    mean: NDArray[np.float64] = totals / np.maximum(counts, 1)
    return mean


class Grouping:
    """Takes events some at a time; in the result, the group that takes most in a counted step comes first."""

    def __init__(self, profile: Profile, sums: list[str]) -> None:
        self._profile = profile
        self._steps = profile.counted_steps
        self._sums = sums
        self._numbers: dict[int, int] = {}
        self._totals = np.zeros((0, 2 + 2 * len(sums)), np.int64)  # how many, inside, and each sum and its part inside

    def add(self, keys: Ints | Rows, step: Ints, *values: Ints) -> Ints:
        """Add events, given the numbers of their groups and the indices of their steps (−1: none); the group of
        each."""
        distinct, inverse = occurring(keys)
        group = np.array([self._numbers.setdefault(key, len(self._numbers)) for key in distinct.tolist()], np.int64)
        missing = len(self._numbers) - len(self._totals)
        self._totals = np.concatenate((self._totals, np.zeros((missing, self._totals.shape[1]), np.int64)))
        number, in_counted = group[inverse], self._profile.in_counted(step)
        self._sum(0, number, in_counted, np.ones(len(keys), np.int64))
        for column, value in enumerate(values):
            self._sum(2 + 2 * column, number, in_counted, value)
        return number

    def _sum(self, column: int, number: Ints, in_counted: Bools, value: Ints) -> None:
        np.add.at(self._totals[:, column], number, value)
        np.add.at(self._totals[:, column + 1], number[in_counted], value[in_counted])

    @property
    def keys(self) -> Ints:
        """The number of each group."""
        return np.array([*self._numbers], np.int64)

    def sorted(self, names: Names, **extra: list[Any]) -> dict[str, Any]:
        """One entry for each group, in columns.

        `names` and `extra`; `count` and each sum over the whole trace; `per_step` how many, and `<name>_per_step` how
        much, in a counted step; `<name>_mean` how much one has.
        """
        keys = self.keys.tolist()
        texts_by_name = {name: [make(key) for key in keys] for name, make in names.items()}
        numbers = {"count": self._totals[:, 0], "per_step": self._totals[:, 1] / self._steps}
        for index, name in enumerate(self._sums):
            numbers[name] = self._totals[:, 2 + 2 * index]
            numbers[f"{name}_per_step"] = self._totals[:, 3 + 2 * index] / self._steps
            total, counted_total = self._totals[:, 2 + 2 * index], self._totals[:, 3 + 2 * index]
            numbers[f"{name}_mean"] = mean_of_one(total, self._totals[:, 0], counted_total, self._totals[:, 1])
        sort_columns = [f"{name}_per_step" for name in self._sums] + self._sums + ["count"]
        largest = zip(*((-numbers[name]).tolist() for name in sort_columns), strict=True)
        names_last = zip(
            *([(text is None, text or "") for text in texts] for texts in texts_by_name.values()), strict=True
        )
        order = [index for _, _, index in sorted(zip(largest, names_last, range(len(keys)), strict=True))]
        listed = {name: [column[index] for index in order] for name, column in (texts_by_name | extra).items()}
        return listed | {name: column[order] for name, column in numbers.items()}


class Samples:
    """Values of which the median is wanted, by group."""

    def __init__(self) -> None:
        self._groups: list[Ints] = []
        self._values: list[Ints] = []

    def add(self, group: Ints, values: Ints) -> None:
        """Add more values."""
        self._groups.append(group.astype(np.int32))
        self._values.append(values)

    def medians(self, groups: int) -> list[float | None]:
        """The median of each group; None for a group without values."""
        if not self._groups:
            return [None] * groups
        group, values = np.concatenate(self._groups), np.concatenate(self._values)
        order = np.argsort(group, kind="stable")
        ends = np.cumsum(np.bincount(group, minlength=groups))
        pieces = (values[order[start:end]] for start, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True))
        return [float(np.median(piece)) if len(piece) else None for piece in pieces]


class KernelTime(NamedTuple):
    """The time in a counted step of the kernels (or copies) of one name that one operator launches.

    A copy counts only while no kernel runs: copies that overlap kernels cost nothing.
    """

    label: str  # the kind of work
    name: str
    operator: str | None
    step_ns: float
    per_step: float  # how many


def kernel_times(profile: Profile) -> list[KernelTime]:
    """The kernels and copies whose launch is known, the costliest first."""
    trace = profile.trace
    width = len(trace.names) + 1
    groups = Grouping(profile, ["dur_ns"])
    pieces = profile.attribution.pieces
    alone = pieces.union(pieces.of("gpu_copy"))
    for activities, launches in trace.links.some():
        operator = trace.operators.of(launches)
        made_by = np.where(operator >= 0, trace.name_codes[np.maximum(operator, 0)].astype(np.int64) + 1, 0)
        keys = trace.name_codes[activities].astype(np.int64) * width + made_by
        events = trace.events_at(activities)
        free = alone.within(events.ts_ns, events.end_ns)
        taken_ns = np.where(events.roles.kind == KERNEL, trace.dur_ns[activities], free)
        groups.add(keys, trace.steps.of(trace.ts_ns[launches]), taken_ns)
    totals = groups.sorted({"key": str})
    columns = totals["key"], totals["dur_ns_per_step"].tolist(), totals["per_step"].tolist()
    times = []
    for key, step_ns, per_step in zip(*columns, strict=True):
        name_code, maker = divmod(int(key), width)
        name, operator_name = trace.names[name_code], trace.names[maker - 1] if maker else None
        times.append(KernelTime(kernel_class(name, operator_name), name, operator_name, step_ns, per_step))
    return times


def summed(times: list[KernelTime], column: str) -> dict[str, float]:
    """The time per step by one of the columns, ns; the largest first."""
    sums: dict[str, float] = {}
    for kernel_time in times:
        sums[getattr(kernel_time, column)] = sums.get(getattr(kernel_time, column), 0.0) + kernel_time.step_ns
    return dict(sorted(sums.items(), key=lambda item: -item[1]))
