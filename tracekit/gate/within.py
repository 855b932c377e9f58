"""Does each variant stay within its budget?"""

from collections.abc import Iterator
from dataclasses import replace

from tracekit.gate.budget import Budget
from tracekit.gate.metrics import METRICS
from tracekit.gate.rows import Demand, Row, judged, unanswered
from tracekit.profile import Subject


def within(subject: Subject, budget: Budget, demand: Demand | None = None) -> list[Row]:
    """A row for each limit of the budget, which may also allow metrics to stay unknown."""
    demand = demand or Demand()
    return list(_rows(subject, budget, replace(demand, allow=demand.allow | budget.allow_unanswered)))


def _rows(subject: Subject, budget: Budget, demand: Demand) -> Iterator[Row]:
    members = {member.name: member for member in subject.known}
    for variant, limits in budget.limits.items():
        member = members.get(variant)
        for metric, limit in limits.items():
            if member is None:
                names = ", ".join(members)
                yield unanswered(variant, metric, limit, f"there is no such variant, only {names}", demand)
            else:
                yield judged(variant, metric, limit, METRICS[metric](member), demand, reference=limit)
