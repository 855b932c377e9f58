"""What a rule yields: one cause of a slow step, with what it costs, who is to blame, and what to change."""

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import pyarrow as pa

from tracekit.intervals import Union
from tracekit.trace.schema import LABEL, column


@dataclass(frozen=True)
class Where:
    """The culprit, as far as it is known."""

    file: str | None = None
    line: int | None = None
    function: str | None = None
    operator: str | None = None
    kernel: str | None = None
    module: str | None = None

    def __str__(self) -> str:
        position = f"{self.file}:{self.line}" if self.file and self.line is not None else self.file
        return ", ".join(
            str(each) for each in (position, self.function, self.operator, self.kernel, self.module) if each
        )


@dataclass(frozen=True)
class Evidence:
    """One event behind a finding; `event` is its row in the events table."""

    event: int
    step: int | None
    name: str
    start_ns: int
    dur_ns: int


@dataclass(frozen=True)
class Finding:
    """One cause of a slow step.

    A rule says what it blames by `claim`: the time, on the trace's clock, that would be gained at most. Cost and share
    of a step are worked out from that: time that a costlier finding claims as well counts there, and `overlaps` says
    so. What makes a trace doubtful claims nothing and has no cost: it stands before all others. A rule that knows a
    cost and no time may set `cost_ns` itself.
    """

    id: str  # the rule; the first finding's is the verdict's
    title: str  # the sentence, with numbers and culprit
    cost_ns: float | None = None  # per step, and never more than the time it can be blamed for
    advice: str = ""
    share: float | None = None  # of the step
    bound: Literal["upper", "lower", "exact"] = "upper"
    where: Where = Where()
    evidence: tuple[Evidence, ...] = ()
    link: str = ""
    confidence: Literal["measured", "inferred"] = "measured"
    overlaps: tuple[str, ...] = ()  # rules that claim the same time
    claim: Union | None = field(default=None, compare=False, repr=False)
    # A cost of steps that the means leave out, such as compiling: where it counts, costs are spread over all steps.
    every_step: bool = False

    def document(self) -> dict[str, Any]:
        """As the machine-readable report has it."""
        content = {name: getattr(self, name) for name in _TOLD}
        evidence = [asdict(each) for each in self.evidence]
        return {**content, "where": asdict(self.where), "evidence": evidence, "overlaps": list(self.overlaps)}


_TOLD = ("id", "title", "cost_ns", "bound", "share", "confidence", "advice", "link")

FINDINGS = pa.schema(
    [
        column("id", LABEL, "the rule"),
        column("title", pa.string(), "what was found"),
        column("cost_ns", pa.float64(), "what it costs, per counted step", "ns"),
        column("bound", LABEL, "how the cost is to be read: upper, lower or exact"),
        column("share", pa.float64(), "part of the step", "share"),
        column("confidence", LABEL, "measured or inferred"),
        column("where", pa.string(), "the culprit", role="place"),
        column("advice", pa.string(), "what to change"),
        column("link", pa.string(), "where to read on"),
        column("overlaps", pa.string(), "rules that claim the same time"),
    ]
)


def table(causes: list[Finding]) -> pa.Table:
    """Findings as rows."""
    rows = [
        {**each.document(), "where": str(each.where) or None, "overlaps": ", ".join(each.overlaps) or None}
        for each in causes
    ]
    return pa.Table.from_pylist(rows, schema=FINDINGS)
