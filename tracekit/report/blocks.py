"""The kinds of block that a section is made of. All are data; a face has one renderer for each kind.

Show something new with these kinds. A new kind is a last resort, because every face must learn to draw it.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal

import pyarrow as pa
from msgspec import Struct, field
from msgspec.structs import replace

from tracekit.profile.recording_words import of_the_recording
from tracekit.report.breakdown import Breakdown

Tone = Literal["lead", "plain", "quiet"]
Mark = Literal["", "compiles", "unknown"]
# What a note is about, the gravest first.
NoteKind = Literal[
    "problem", "warning", "cannot answer", "mean", "conditions", "comparison", "health", "inferred", "remark"
]
# What changes about columns where a recording has no steps: their heads, or whether people see them.
_RECORDING_METADATA = {"per_step": ("title", "number"), "step_ns": ("title", "time"), "step": ("role", "plumbing")}


class Sentences(Struct, frozen=True):
    """Paragraphs of text; the tone says how prominent they are."""

    kind: ClassVar[str] = "sentences"
    lines: tuple[str, ...]
    tone: Tone = "plain"


class Pace(Struct, frozen=True):
    """How long a step of a variant takes, ns, and how that compares with its baseline."""

    name: str
    step_ns: float
    against: str = ""  # empty where nothing is compared


class Headline(Sentences, frozen=True):
    """The sentences that lead a report, and the figures that they are about; any of these may be empty."""

    paces: tuple[Pace, ...] = ()
    change: str = ""  # from the baseline to the fastest variant
    next_do: str = ""  # the one thing to do next,
    next_of: str = ""  # in this variant

    @property
    def first(self) -> str:
        """The figures as the line above the sentences, where something is compared."""
        return self.change if len(self.paces) > 1 else ""

    @property
    def last(self) -> str:
        """The line below the sentences: what to do next, and in which variant."""
        return f"Next, in {self.next_of}: {self.next_do}" if self.next_do else ""


class Card(Struct, frozen=True):
    """A finding as people read it; any part may be empty."""

    headline: str
    costs: tuple[tuple[str, str], ...]  # what it costs each variant that has it
    place: str = ""  # the user's line and function
    why: str = ""
    do: str = ""
    also: tuple[str, ...] = ()  # smaller findings that are part of it
    line: tuple[str, int] | None = None  # the user's file and line, as they were recorded
    id: str = ""  # the kind of finding, which has a page

    def cost_phrases(self, with_names: bool) -> list[str]:
        """What it costs each variant, with the names of the variants or without."""
        return [
            ": ".join(filter(None, (name if with_names else "", cost)))
            for name, cost in self.costs
            if with_names or cost
        ]


class Cards(Sentences, frozen=True):
    """Findings, the costliest first, and the paragraph that each of them is where a face has no cards."""

    cards: tuple[Card, ...] = ()
    several: bool = False  # variants: costs need their names


class Table(Struct, frozen=True):
    """Rows, the most valuable first. Each column's metadata has its unit, meaning and role.

    `records` is for a few rows of many columns: people see one line per column. A `detail` is shown to people only
    where everything is requested.
    """

    kind: ClassVar[str] = "table"
    name: str
    rows: pa.Table
    layout: Literal["rows", "records"] = "rows"
    detail: bool = False
    exported: bool = True  # False: another table holds the same for programs

    @staticmethod
    def of(
        name: str,
        rows: Iterable[Mapping[str, Any]],
        schema: pa.Schema,
        *,
        layout: Literal["rows", "records"] = "rows",
        detail: bool = False,
        exported: bool = True,
    ) -> "Table":
        """A table of rows that hold values by the name of the column; what a row lacks is null."""
        return Table(name, pa.Table.from_pylist([*rows], schema), layout, detail, exported)


class Line(Struct, frozen=True):
    """One row of a series: a value for each step, None where it is unknown, and a mark for special steps.

    `span` says what the values are along, where that is not steps.
    """

    name: str
    steps: tuple[int, ...]
    values: tuple[int | None, ...]
    marks: tuple[Mark, ...]
    unit: str = "ns"  # or B
    span: str = ""

    @property
    def usual(self) -> list[int]:
        """The known values of the steps that do not compile, which would dwarf the others."""
        return [v for v, mark in zip(self.values, self.marks, strict=True) if v is not None and mark != "compiles"]

    def groups(self, cells: int) -> list[slice]:
        """The steps divided among so many cells, or one step in each if there are fewer."""
        steps = len(self.values)
        cells = min(steps, cells)
        return [slice(k * steps // cells, (k + 1) * steps // cells) for k in range(cells)]


class Series(Struct, frozen=True):
    """One or more lines with a value per step; those in other units than ns are also in an exported table."""

    kind: ClassVar[str] = "series"
    name: str
    lines: tuple[Line, ...]


class Note(Struct, frozen=True):
    """Something a reader must know beside the figures; it holds for the whole report where `variants` is empty."""

    kind: NoteKind
    variants: tuple[str, ...]
    text: str


class Notes(Struct, frozen=True):
    """A block of notes."""

    kind: ClassVar[str] = "notes"
    notes: tuple[Note, ...]


class Excerpt(Struct, frozen=True):
    """Lines of source, the first of them numbered `first`; `costs` has ns per step by variant and line number.

    `fused` has, in the same form, the cost of kernels that a line shares with other lines: their time counts once, and
    is shown at each of their lines. A `detail` is shown to people only where everything is requested, or can be folded;
    what `is_whole_file` has all of the file, and is folded even there.
    """

    kind: ClassVar[str] = "excerpt"
    file: str
    first: int
    lines: tuple[str, ...]
    costs: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    fused: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    detail: bool = False
    is_whole_file: bool = False

    def distance(self, line: tuple[str, int] | None) -> float:
        """How many lines that line of that file is off the middle; infinite if it is not among these."""
        if line is None or line[0] != self.file or not self.first <= line[1] < self.first + len(self.lines):
            return math.inf
        return abs(self.first + (len(self.lines) - 1) / 2 - line[1])


Block = Sentences | Table | Breakdown | Series | Notes | Excerpt
KINDS: tuple[type[Block], ...] = (Sentences, Table, Breakdown, Series, Notes, Excerpt)


def of_the_recording_in(block: Block) -> Block:
    """The block as it is said of a recording without steps."""
    if isinstance(block, Cards):
        cards = tuple(
            replace(
                card,
                costs=tuple((name, of_the_recording(cost)) for name, cost in card.costs),
                why=of_the_recording(card.why),
            )
            for card in block.cards
        )
        return replace(block, lines=tuple(map(of_the_recording, block.lines)), cards=cards)
    if isinstance(block, Headline):
        block = replace(block, change=of_the_recording(block.change))
    if isinstance(block, Sentences):
        return replace(block, lines=tuple(map(of_the_recording, block.lines)))
    if isinstance(block, Breakdown):
        return replace(block, title=of_the_recording(block.title))
    if isinstance(block, Table):
        schema = block.rows.schema
        for name, (key, text) in _RECORDING_METADATA.items():
            if (index := schema.get_field_index(name)) >= 0:
                column = schema.field(index)
                metadata = {**(column.metadata or {}), key.encode(): text.encode()}
                schema = schema.set(index, column.with_metadata(metadata))
        return replace(block, rows=block.rows.cast(schema))
    return block


def is_detail(block: Block) -> bool:
    """Whether people are shown it only where everything is requested, or can be folded."""
    return isinstance(block, Table | Excerpt) and block.detail
