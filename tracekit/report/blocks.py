"""What a section is made of: six kinds of block, data all of them. A face has one renderer for each kind.

To show something new, put it into these; a new kind is a last resort, for every face must learn it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import pyarrow as pa

from tracekit.report.breakdown import Breakdown

Tone = Literal["lead", "plain", "quiet"]
Mark = Literal["", "compiles", "unknown"]


@dataclass(frozen=True)
class Sentences:
    """Text, a paragraph each; the tone says how loud."""

    kind: ClassVar[str] = "sentences"
    lines: tuple[str, ...]
    tone: Tone = "plain"


@dataclass(frozen=True)
class Table:
    """Rows in the order of what they are worth. Each column's metadata says unit, meaning and role.

    `records` is for few rows of many columns: people see a line per column. They see a `detail` only
    where all is shown.
    """

    kind: ClassVar[str] = "table"
    name: str
    rows: pa.Table
    layout: Literal["rows", "records"] = "rows"
    detail: bool = False
    exported: bool = True  # False: it says for people what another table holds


@dataclass(frozen=True)
class Line:
    """One row of a series: a value for each step, None where it is not known, and what is special about some."""

    name: str
    steps: tuple[int, ...]
    values: tuple[int | None, ...]
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class Series:
    """A value per step, in ns, for each of some lines."""

    kind: ClassVar[str] = "series"
    name: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Note:
    """Something a reader must know beside the figures; of no variant in particular where `variants` is empty."""

    kind: str  # health, cannot answer, inferred, mean, comparison, warning, problem, remark
    variants: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class Notes:
    """What must be said beside the figures."""

    kind: ClassVar[str] = "notes"
    notes: tuple[Note, ...]


@dataclass(frozen=True)
class Excerpt:
    """Lines of source, the first of them numbered `first`; `costs` has ns per step by variant and line number.

    People see a `detail` only where all is shown.
    """

    kind: ClassVar[str] = "excerpt"
    file: str
    first: int
    lines: tuple[str, ...]
    costs: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    detail: bool = False


Block = Sentences | Table | Breakdown | Series | Notes | Excerpt
KINDS: tuple[type[Block], ...] = (Sentences, Table, Breakdown, Series, Notes, Excerpt)
