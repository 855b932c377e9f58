"""One row of a check: a metric of a variant against its limit."""

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from tracekit.base.units import percent
from tracekit.gate.metrics import Reading
from tracekit.statistics.uncertainty import TOLERANCE, Interval

# `noise`: beyond the limit, but not with certainty; `unseen`: not beyond it with certainty, and the regression that
# should be seen could not have been; `unanswered`: unknown; `allowed`: unknown or unseen, but that is allowed.
Outcome = Literal["pass", "noise", "unseen", "fail", "unanswered", "allowed"]


class Demand(Struct, frozen=True):
    """What a check must be able to see, and what it may leave unknown.

    A row should show a regression of `smallest`; if that is None, one that exceeds its limit by the tolerance once
    more. If `strict`, a row that could not have shown it fails, unless its metric is allowed to stay unknown.
    """

    tolerance: float = TOLERANCE
    smallest: float | None = None  # a share of the earlier value, or of the limit of a budget
    strict: bool = False
    allow: frozenset[str] = frozenset()

    def regression(self, limit: float, reference: float) -> float:
        """The regression that a row with this limit should show, as a share of the reference."""
        return self.smallest if self.smallest is not None else limit * (1 + self.tolerance) / reference - 1


class Row(Struct, frozen=True):
    """A metric of a variant, in the unit that its name gives, in the form of `tracekit.check/1`; `why` is the reason,
    if the numbers do not show it.

    `detectable` is the smallest regression that would have been seen, as a share of the earlier value or, with a
    budget, of the limit; None where it is unknown, or the value is exact.
    """

    variant: str
    metric: str
    limit: float | None
    value: float | None
    interval: Interval | None
    outcome: Outcome
    why: str = ""
    detectable: float | None = None
    fails: bool = False  # whether this row makes the check fail
    exact: bool = False  # a count, of which every difference is seen
    far_apart: bool = False  # the captures are, on an unsteady machine: more passes alone would not show more


class Check(Struct, frozen=True):
    """The rows, and warnings about them. `base` is what a regression is a share of."""

    rows: list[Row]
    warnings: list[str]
    base: Literal["earlier", "limit"] = "earlier"


def failed(rows: Iterable[Row]) -> bool:
    """Whether the check as a whole fails."""
    return any(row.fails for row in rows)


def judged(variant: str, metric: str, limit: float, reading: Reading, demand: Demand, *, reference: float) -> Row:
    """A reading compared with an upper limit: it fails if its whole interval lies beyond the limit, and passes if it is
    within the limit and a regression beyond it would have been seen. Regressions are shares of the reference."""
    if reading.value is None:
        return unanswered(variant, metric, limit, reading.why, demand)
    low = reading.interval[0] if reading.interval is not None else reading.value
    exact = reading.interval is None and reading.margin is not None
    visible = reading.visible(limit)
    detectable = visible / reference - 1 if visible is not None and reference and not exact else None
    row = Row(
        variant,
        metric,
        limit,
        reading.value,
        reading.interval,
        "pass",
        why=reading.remark,
        detectable=detectable,
        exact=exact,
        far_apart=reading.far_apart,
    )
    if low > limit and reading.certain:
        return replace(row, outcome="fail", fails=True, why=reading.why or reading.remark)
    if detectable is not None and detectable > (smallest := demand.regression(limit, reference)):
        why = f"a regression of {percent(smallest)} could not have been seen"
    elif visible is None:
        why = reading.why
    else:
        return replace(row, outcome="pass" if reading.value <= limit else "noise")
    why = "; ".join(part for part in (why, reading.remark) if part)
    if metric in demand.allow:
        return replace(row, outcome="allowed", why=why)
    return replace(row, outcome="unseen", why=why, fails=demand.strict)


def unanswered(variant: str, metric: str, limit: float | None, why: str, demand: Demand) -> Row:
    """A metric that cannot be answered."""
    allowed = metric in demand.allow
    return Row(variant, metric, limit, None, None, "allowed" if allowed else "unanswered", why, fails=not allowed)
