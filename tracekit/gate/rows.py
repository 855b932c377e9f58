"""One row of a check: a metric of a variant against its limit."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from tracekit.gate.metrics import Reading
from tracekit.uncertainty import Interval

# `noise`: beyond the limit, but not with certainty; `unanswered`: unknown; `allowed`: unknown, but need not be known.
Outcome = Literal["pass", "noise", "fail", "unanswered", "allowed"]
_FAILING = ("fail", "unanswered")


@dataclass(frozen=True)
class Row:
    """A metric of a variant, in the unit that its name gives; `why` is the reason if there is no number."""

    variant: str
    metric: str
    limit: float | None
    value: float | None
    interval: Interval | None
    outcome: Outcome
    why: str = ""

    @property
    def fails(self) -> bool:
        """Whether this row makes the check fail."""
        return self.outcome in _FAILING

    def document(self) -> dict[str, Any]:
        """The row in the form of `tracekit.check/1`."""
        return asdict(self)


@dataclass(frozen=True)
class Check:
    """The rows, and warnings about them."""

    rows: list[Row]
    warnings: list[str]


def failed(rows: Iterable[Row]) -> bool:
    """Whether the check as a whole fails."""
    return any(row.fails for row in rows)


def judged(variant: str, metric: str, limit: float, reading: Reading, allowed: bool) -> Row:
    """A reading compared with an upper limit: it fails if its whole interval lies beyond the limit."""
    if reading.value is None:
        return unanswered(variant, metric, limit, reading.why, allowed)
    low = reading.interval[0] if reading.interval is not None else reading.value
    outcome: Outcome = "pass" if reading.value <= limit else "noise" if low <= limit else "fail"
    return Row(variant, metric, limit, reading.value, reading.interval, outcome)


def unanswered(variant: str, metric: str, limit: float | None, why: str, allowed: bool) -> Row:
    """A metric that cannot be answered."""
    return Row(variant, metric, limit, None, None, "allowed" if allowed else "unanswered", why)
