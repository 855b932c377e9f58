"""A section: a question's answer in blocks, with what tells readers how much it is worth to them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa

from tracekit.report.blocks import Block

WORTH = 0.02  # of a step: a section that speaks of less is told without its tables, unless all is asked for
Scope = Literal["trace", "variant", "comparison", "run"]
# Where a section stands: before all others, among those ordered by worth, or after them.
Stage = Literal["lead", "body", "end"]
# `absent`: the question does not arise here; `unanswered`: it does, and what was recorded cannot tell.
Status = Literal["answered", "absent", "unanswered"]


@dataclass(frozen=True)
class Contents:
    """What a producer makes of one subject.

    `worth` is the share of a step that it speaks of, None where nobody can say. `tables` are what exports write beside
    those in the blocks, made when they are asked for.
    """

    blocks: tuple[Block, ...]
    worth: float | None = None
    status: Status = "answered"
    tables: Mapping[str, Callable[[], pa.Table]] = field(default_factory=dict)


@dataclass(frozen=True)
class Section:
    """What a producer made, and of what: of a variant, of one of its traces, of a comparison, or of the whole run."""

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
    def worth(self) -> float:
        """What it is worth; as much as is worth a table where nobody can say."""
        return WORTH if self.contents.worth is None else self.contents.worth

    @property
    def blocks(self) -> tuple[Block, ...]:
        """What faces draw."""
        return self.contents.blocks
