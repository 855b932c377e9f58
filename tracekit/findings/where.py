"""Where in the user's code is that? What a rule knows decides which of these it asks:

- an event that is to blame: `where_of_event`, which also names the operator and the module;
- a piece of the steps for which no event is to blame: `where_of_piece`;
- only the buckets that take the time: `where_of_buckets`, which also says how much of them the line takes.

All of them ask `tracekit.profile.where`, as the tables of the report do. Of fused lines a finding names the first.
"""

from tracekit.findings.culprits import operators_around
from tracekit.findings.finding import Where
from tracekit.lines.owners import Group
from tracekit.profile import Profile
from tracekit.profile.where import lines_of_buckets, lines_of_event, lines_of_time


def where_of_event(profile: Profile, row: int, operator: str | None = None) -> Where:
    """Where an event belongs: the line, if it is known, the module, and the innermost operator unless one is given."""
    operators = [operator] if operator is not None else operators_around(profile, row)
    lines, modules = lines_of_event(profile, row)
    return _where(lines, operators[-1] if operators else None, modules[-1] if modules else None)


def where_of_piece(profile: Profile, piece: int) -> Where:
    """The line that most of a piece belongs to; empty without a recording with stacks."""
    pieces = profile.attribution.pieces
    return _where(lines_of_time(profile, pieces.view, int(pieces.start[piece]), int(pieces.end[piece])))


def where_of_buckets(profile: Profile, *buckets: str) -> tuple[Where, float]:
    """The line that takes most of these buckets of the wall time, if one is known, and its share of them."""
    return next(iter(shares_of_buckets(profile, *buckets)), (Where(), 0.0))


def shares_of_buckets(profile: Profile, *buckets: str) -> list[tuple[Where, float]]:
    """Each line that takes part of these buckets of the wall time, if any is known, and its share; the most first."""
    return [(_where(lines), share) for lines, share in lines_of_buckets(profile, *buckets)]


def _where(lines: Group, operator: str | None = None, module: str | None = None) -> Where:
    if not lines:
        return Where(operator=operator, module=module)
    return Where(lines[0].file, lines[0].line, lines[0].function, operator, module=module)
