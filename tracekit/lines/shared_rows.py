"""Which lines share a row, so that variants can be compared although the compiler fused some of them?

A group that costs at least 1 % of some variant's time joins its lines into one row, and rows that share a line merge.
Each other group is a separate row. A group is never split between its lines.
"""

from collections.abc import Iterable, Mapping

from tracekit.lines.owners import Group, Line

WORTH_JOINING = 0.01

Row = Group  # the lines of a row; if a group has a separate row, those of the group


def rows(costs: Iterable[Mapping[Group, float]]) -> dict[Group, Row]:
    """Each line and group that occurs, and the row that it is in, given what it costs in each variant."""
    joined = _Joined()
    groups: dict[Group, None] = {}
    for variant in costs:
        total = sum(variant.values())
        groups |= dict.fromkeys(variant)
        for group, ns in variant.items():
            if len(group) > 1 and total and ns >= WORTH_JOINING * total:
                joined.join(group)
    together: dict[Line, list[Line]] = {}
    for line in dict.fromkeys(line for group in groups for line in group):
        together.setdefault(joined.root(line), []).append(line)
    return {group: _row(group, joined, together) for group in groups}


def _row(group: Group, joined: "_Joined", together: dict[Line, list[Line]]) -> Row:
    if not group:
        return ()
    roots = {joined.root(line) for line in group}
    if len(group) > 1 and not joined.is_joined(group):
        return group
    assert len(roots) == 1
    lines = together[next(iter(roots))]
    return tuple(sorted(lines)) if len(lines) > 1 else group


class _Joined:
    """Lines that share a row, each known by one of them."""

    def __init__(self) -> None:
        self._parent: dict[Line, Line] = {}
        self._groups: set[Group] = set()

    def join(self, group: Group) -> None:
        """These lines share a row from now on."""
        self._groups.add(group)
        first = self.root(group[0])
        for line in group[1:]:
            self._parent[self.root(line)] = first

    def root(self, line: Line) -> Line:
        """The line that represents all lines of its row."""
        while self._parent.get(line, line) != line:
            line = self._parent[line]
        return line

    def is_joined(self, group: Group) -> bool:
        """Whether all of a group's lines share one row."""
        return group in self._groups or len({self.root(line) for line in group}) == 1
