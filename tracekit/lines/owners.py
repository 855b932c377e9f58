"""Owners: a line of the user's or a group of lines, a library, a module, a phase. Each is a number here."""

from collections.abc import Callable
from pathlib import PurePath
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct, field

from tracekit.base.intervals import Ints, occurring

OTHER, FORWARD, EVAL, BACKWARD, OPTIMIZER, DATA, SAVING, INNER_BACKWARD, DOUBLE_BACKWARD, BUILDING = range(10)
PHASES = (
    *("other", "forward", "eval", "backward", "optimizer", "data", "saving"),
    # A backward pass that is differentiated again (create_graph=True), and the one that does it.
    *("inner backward", "double backward"),
    "graph building",
)


class SourceLine(NamedTuple):
    """A line of the user's; without a number it is the whole function, known by the line of its `def`."""

    file: str
    line: int
    function: str
    whole: bool = False

    @property
    def text(self) -> str:
        """`FILE:LINE`."""
        return f"{self.file}:{self.line}"


Group = tuple[SourceLine, ...]  # no line at all, one, or several that were fused


def short(lines: Group) -> str:
    """`model.py:12`, `model.py:12, 14`: lines as people read them."""
    files: dict[str, list[int]] = {}
    for line in sorted(lines):
        files.setdefault(line.file, []).append(line.line)
    names = {file: PurePath(file).name for file in files}
    twice = {name for name in names.values() if [*names.values()].count(name) > 1}
    names = {file: file if name in twice else name for file, name in names.items()}
    return ", ".join(f"{names[file]}:{', '.join(map(str, numbers))}" for file, numbers in files.items())


def functions_of(lines: Group) -> str | None:
    """The functions of lines, each once."""
    return ", ".join(dict.fromkeys(line.function for line in lines)) or None


class OwnerNumbers(NamedTuple):
    """One owner, as indices into the groups, libraries and modules of `Owners`, and into `PHASES`."""

    group: int
    library: int
    module: int
    phase: int


class Owners(Struct):
    """All owners of a variant; number 0 is no owner."""

    groups: list[Group] = field(default_factory=lambda: [()])
    libraries: list[str] = field(default_factory=lambda: [""])
    modules: list[tuple[str, ...]] = field(default_factory=lambda: [()])
    rows: list[OwnerNumbers] = field(default_factory=lambda: [OwnerNumbers(0, 0, 0, OTHER)])
    _numbers: dict[object, int] = field(default_factory=dict)

    def group(self, lines: Group) -> int:
        """The number of a line or a group."""
        return self._number(self.groups, lines)

    def library(self, name: str) -> int:
        """The number of a library."""
        return self._number(self.libraries, name)

    def module(self, chain: tuple[str, ...]) -> int:
        """The number of a chain of modules, outermost first."""
        return self._number(self.modules, chain)

    def owner(self, group: int, library: int, module: int, phase: int) -> int:
        """The number of an owner."""
        return self._number(self.rows, OwnerNumbers(group, library, module, phase))

    def group_of(self, owner: int) -> Group:
        """The lines of an owner."""
        return self.groups[self.rows[owner].group]

    def of_columns(self, group: Ints, library: Ints, module: Ints, phase: Ints) -> Ints:
        """The owner of each row of four columns of numbers."""
        packed = ((group * len(self.libraries) + library) * len(self.modules) + module) * len(PHASES) + phase
        distinct, index = occurring(packed)
        first = np.zeros(len(distinct), np.int64)
        first[index] = np.arange(len(packed))  # any of them
        parts = zip(*(column[first].tolist() for column in (group, library, module, phase)), strict=True)
        numbers = np.array([self.owner(*row) for row in parts], np.int64)
        owners_of_rows: Ints = numbers[index]
        return owners_of_rows

    def in_phase(self, owners: Ints, phase: int) -> Ints:
        """Numbers of owners that are like these but for their phase."""
        return self._changed(owners, lambda numbers: numbers._replace(phase=phase))

    def of_group(self, owners: Ints, group: int) -> Ints:
        """Numbers of owners that are like these but for their group of lines."""
        return self._changed(owners, lambda numbers: numbers._replace(group=group))

    def with_groups(self, owners: Ints, groups: Ints) -> Ints:
        """Numbers of owners that are like these, but each with another group of lines."""
        distinct, index = occurring(owners * len(self.groups) + groups)
        pairs = (divmod(pair, len(self.groups)) for pair in distinct.tolist())
        numbers = np.array([self.owner(*self.rows[owner]._replace(group=group)) for owner, group in pairs], np.int64)
        owners_of_pairs: Ints = numbers[index]
        return owners_of_pairs

    def _changed(self, owners: Ints, change: Callable[[OwnerNumbers], OwnerNumbers]) -> Ints:
        distinct, index = occurring(owners)
        numbers = np.array([self.owner(*change(self.rows[owner])) for owner in distinct.tolist()], np.int64)
        changed: Ints = numbers[index]
        return changed

    def _number(self, values: list[Any], value: object) -> int:
        key = (id(values), value)
        if key not in self._numbers:
            if value != values[0]:
                values.append(value)
            self._numbers[key] = 0 if value == values[0] else len(values) - 1
        return self._numbers[key]
