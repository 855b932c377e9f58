"""Why a step is slow: one rule per file, from evidence to cost, culprit and advice.

    @rule("sync_stall")
    def sync_stall(profile: Profile) -> Iterator[Finding]: ...

A rule registers itself when its module is imported; those in this package are found by themselves.
"""

import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any, Literal

import pyarrow as pa

from tracekit.profile import Profile
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
    """One cause of a slow step. `cost_ns` is per step, and never more than the time it can be blamed for."""

    id: str  # the rule
    title: str  # the sentence, with numbers and culprit
    cost_ns: float | None
    advice: str
    share: float | None = None  # of the step
    bound: Literal["upper", "lower", "exact"] = "upper"
    where: Where = Where()
    evidence: tuple[Evidence, ...] = ()
    link: str = ""
    confidence: Literal["measured", "inferred"] = "measured"
    overlaps: tuple[str, ...] = ()  # rules that claim the same time

    def document(self) -> dict[str, Any]:
        """As the machine-readable report has it."""
        return {**asdict(self), "evidence": [asdict(each) for each in self.evidence], "overlaps": list(self.overlaps)}


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
Rule = Callable[[Profile], Iterable[Finding]]
_registered: dict[str, Rule] = {}


def rule(name: str) -> Callable[[Rule], Rule]:
    """Register the function as the rule of that name."""

    def register(look: Rule) -> Rule:
        _registered[name] = look
        return look

    return register


def unregister(name: str) -> None:
    """Forget a rule again."""
    _registered.pop(name, None)


def findings(profile: Profile) -> list[Finding]:
    """What the rules find in a variant, dearest first; what has no cost makes a trace doubtful, and comes before."""
    for module in pkgutil.iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    causes = [finding for look in _registered.values() for finding in look(profile)]
    return sorted(causes, key=lambda each: -each.cost_ns if each.cost_ns is not None else float("-inf"))


def table(causes: list[Finding]) -> pa.Table:
    """Findings as rows."""
    rows = [
        {**each.document(), "where": str(each.where) or None, "overlaps": ", ".join(each.overlaps) or None}
        for each in causes
    ]
    return pa.Table.from_pylist(rows, schema=FINDINGS)
