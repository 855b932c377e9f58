"""Does each variant stay within its budget?"""

from collections.abc import Iterator

from tracekit.gate.budget import Budget
from tracekit.gate.metrics import METRICS
from tracekit.gate.rows import Row, judged, unanswered
from tracekit.profile import Subject


def within(subject: Subject, budget: Budget, allow: frozenset[str] = frozenset()) -> list[Row]:
    """A row for each limit of the budget; `allow` names further metrics that may stay unknown."""
    return list(_rows(subject, budget, budget.allow_unanswered | allow))


def _rows(subject: Subject, budget: Budget, allow: frozenset[str]) -> Iterator[Row]:
    members = {member.name: member for member in subject.known}
    for variant, limits in budget.limits.items():
        member = members.get(variant)
        for metric, limit in limits.items():
            if member is None:
                there = ", ".join(members)
                yield unanswered(variant, metric, limit, f"there is no such variant, only {there}", metric in allow)
            else:
                yield judged(variant, metric, limit, METRICS[metric](member), metric in allow)
