"""One trace of a variant: what ran while it was taken, when, and on which rank."""

from dataclasses import dataclass
from pathlib import Path

from tracekit.engine import Attribution
from tracekit.run import Window, Workload
from tracekit.trace import Trace


@dataclass(frozen=True)
class Capture:
    """A trace and where its time went; `attribution` is None for a trace that no figure needs, which is not read."""

    path: Path
    attribution: Attribution | None
    workload: Workload = "training"
    window: Window = "steady"
    rank: int = 0

    @property
    def trace(self) -> Trace | None:
        """The trace, where it was read."""
        return self.attribution.trace if self.attribution is not None else None

    @property
    def label(self) -> str:
        """`steady`, `cold, rank 1`, `steady, inference`: what distinguishes it from its variant's other captures."""
        parts = [
            self.window,
            self.workload if self.workload != "training" else "",
            f"rank {self.rank}" * (self.rank > 0),
        ]
        return ", ".join(filter(None, parts))
