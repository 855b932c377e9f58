"""A section: the answer to one question as blocks, with what decides its position in the report."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa

from tracekit.analyses import Status
from tracekit.report.blocks import Block

WORTH = 0.02  # share of a step below which a section is shown without its tables, unless everything is requested
Scope = Literal["trace", "variant", "comparison", "run"]
# The place of a section: before all others, among those ordered by worth, or after them.
Stage = Literal["lead", "body", "end"]


@dataclass(frozen=True)
class Contents:
    """What a producer returns for one subject.

    `worth` is the share of a step that it is about, None where that is unknown. `tables` are exported beside those in
    the blocks, and made on demand.
    """

    blocks: tuple[Block, ...]
    worth: float | None = None
    status: Status = "answered"
    tables: Mapping[str, Callable[[], pa.Table]] = field(default_factory=dict)


@dataclass(frozen=True)
class Section:
    """What a producer returned, and its subject: a variant, one of its traces, a comparison, or the whole run."""

    id: str
    title: str
    scope: Scope
    stage: Stage
    rank: int
    contents: Contents
    variant: str | None = None
    trace: str | None = None  # of the scope `trace`: its window, with workload and rank where they matter
    baseline: str | None = None  # of the scope `comparison`

    @property
    def subject(self) -> str:
        """What it is about, as a label; empty for the whole run."""
        if self.scope == "trace":
            return f"{self.variant}, {self.trace}"
        if self.scope == "comparison":
            return f"{self.variant} against {self.baseline}"
        return self.variant or ""

    @property
    def worth(self) -> float:
        """Its worth; where that is unknown, just enough for a table."""
        return WORTH if self.contents.worth is None else self.contents.worth

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks that faces draw."""
        return self.contents.blocks
