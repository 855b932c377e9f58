"""One row of a check: a metric of a variant against its limit."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from tracekit.gate.metrics import Reading
from tracekit.uncertainty import Interval

# `noise`: beyond the limit, but not for sure; `unanswered`: it cannot be known; `allowed`: nor need it be.
Outcome = Literal["pass", "noise", "fail", "unanswered", "allowed"]
_FAILING = ("fail", "unanswered")


@dataclass(frozen=True)
class Row:
    """A metric of a variant, in the metric's unit, as its name says; `why` says what a number cannot."""

    variant: str
    metric: str
    limit: float | None
    value: float | None
    interval: Interval | None
    outcome: Outcome
    why: str = ""

    @property
    def fails(self) -> bool:
        """Whether the check fails for it."""
        return self.outcome in _FAILING

    def document(self) -> dict[str, Any]:
        """As `tracekit.check/1` has it."""
        return asdict(self)


@dataclass(frozen=True)
class Check:
    """The rows, and what makes them doubtful."""

    rows: list[Row]
    warnings: list[str]


def failed(rows: Iterable[Row]) -> bool:
    """Whether the check as a whole fails."""
    return any(row.fails for row in rows)


def judged(variant: str, metric: str, limit: float, reading: Reading, allowed: bool) -> Row:
    """A reading against an upper limit: it fails where all of its interval lies beyond."""
    if reading.value is None:
        return unanswered(variant, metric, limit, reading.why, allowed)
    low = reading.interval[0] if reading.interval is not None else reading.value
    outcome: Outcome = "pass" if reading.value <= limit else "noise" if low <= limit else "fail"
    return Row(variant, metric, limit, reading.value, reading.interval, outcome)


def unanswered(variant: str, metric: str, limit: float | None, why: str, allowed: bool) -> Row:
    """A metric that cannot be answered."""
    return Row(variant, metric, limit, None, None, "allowed" if allowed else "unanswered", why)
