"""The report's chapters as screens show them, block by block; a new question appears by itself."""

from dataclasses import dataclass
from functools import singledispatch

import pyarrow as pa

from tracekit.faces.shared.cells import heading, is_number, lines, meaning, readable, role, texts
from tracekit.faces.shared.wording import note_text
from tracekit.report import Report
from tracekit.report import blocks as made
from tracekit.report import breakdown as parts
from tracekit.report.outline import Chapter as Outlined
from tracekit.report.outline import outline
from tracekit.sanitize import sanitize
from tracekit.tui.breakdown import Breakdown, shown
from tracekit.tui.pulse import Pulse
from tracekit.units import duration

ROWS = 500  # what a person may scroll through; exports have them all
VIEWS = ("wall", "host")
_MOST, _LEAST = 60, 18  # cells of text in a table; what is cut is told in full for the row under the cursor
_PADDING = 2
_LONGEST = 1000  # letters of a cell


@dataclass(frozen=True)
class Prose:
    """Paragraphs."""

    lines: list[str]
    tone: str = "plain"


@dataclass(frozen=True)
class Column:
    """What a column is called, which side its values stand on, and what it means."""

    title: str
    number: bool
    meaning: str


@dataclass(frozen=True)
class Grid:
    """A table; `of` rows there are, `rows` holds the first of them, `whole` what was shortened, in full."""

    columns: list[Column]
    rows: list[list[str]]
    whole: list[list[str]]
    of: int

    @property
    def cut(self) -> str:
        """`500 of 12,000 rows` where rows are left out, else nothing."""
        return f"{len(self.rows):,} of {self.of:,} rows" if len(self.rows) < self.of else ""

    def widths(self, width: int) -> list[int]:
        """A width for each column: numbers in full; what they leave of `width` goes to texts, the longest cut first."""
        full = [max(len(column.title), *(len(row[k]) for row in self.rows), 0) for k, column in enumerate(self.columns)]
        numbers = sum(need for need, column in zip(full, self.columns, strict=True) if column.number)
        texts = [need for need, column in zip(full, self.columns, strict=True) if not column.number]
        room, cap = width - numbers - _PADDING * len(full), _MOST
        while cap > _LEAST and sum(min(need, cap) for need in texts) > room:
            cap -= 1
        return [need if column.number else min(need, cap) for need, column in zip(full, self.columns, strict=True)]

    def uncut(self, row: int, widths: list[int]) -> list[tuple[str, str]]:
        """Of that row the values that are not seen in full, with their titles."""
        values = zip(self.columns, self.rows[row], self.whole[row], widths, strict=True)
        return [(column.title, whole) for column, value, whole, width in values if len(value) > width or whole != value]


@dataclass(frozen=True)
class Pulses:
    """Lines of steps."""

    pulses: list[Pulse]


Piece = Prose | Grid | Breakdown | Pulses


@dataclass(frozen=True)
class Entry:
    """One section: whose it is, and its blocks."""

    name: str
    pieces: list[Piece]


@dataclass(frozen=True)
class Chapter:
    """The sections of one question."""

    name: str
    title: str
    entries: list[Entry]

    @property
    def meanings(self) -> dict[str, str]:
        """What the columns mean; a variant may have some that another has not."""
        grids = [piece for entry in self.entries for piece in entry.pieces if isinstance(piece, Grid)]
        return {column.title: column.meaning for grid in grids for column in grid.columns if column.title}


def chapters(report: Report) -> list[Chapter]:
    """Every chapter that the overview does not show, in the report's order."""
    shown = outline(report, rows=ROWS, fold=True).chapters
    return [_chapter(chapter) for chapter in shown if not all(map(on_the_overview, _blocks(chapter)))]


def on_the_overview(block: made.Block) -> bool:
    """Whether the first room shows it: what it has a place for."""
    if isinstance(block, parts.Breakdown | made.Series):
        return block.name in VIEWS
    return isinstance(block, made.Notes) or (isinstance(block, made.Sentences) and block.tone != "plain")


def _blocks(chapter: Outlined) -> list[made.Block]:
    return [block for entry in chapter.entries for block in entry.blocks]


def _chapter(chapter: Outlined) -> Chapter:
    entries = [Entry(sanitize(entry.of), [piece(block) for block in entry.blocks]) for entry in chapter.entries]
    return Chapter(sanitize(chapter.id), sanitize(chapter.title), entries)


@singledispatch
def piece(block: made.Block) -> Piece:
    """A block as screens show it."""
    raise TypeError(f"{type(block).__name__}: is not a kind of block")


@piece.register
def _(block: made.Sentences) -> Piece:
    return Prose([sanitize(line) for line in block.lines], block.tone)


@piece.register
def _(block: made.Notes) -> Piece:
    return Prose([sanitize(f"{note.kind}: {note_text(note)}") for note in block.notes])


@piece.register
def _(block: parts.Breakdown) -> Piece:
    return shown(block)


@piece.register
def _(block: made.Series) -> Piece:
    return Pulses([Pulse(line) for line in block.lines])


@piece.register
def _(block: made.Excerpt) -> Piece:
    names = [*block.costs]
    columns = [*(Column(sanitize(name), True, "per step") for name in names)]
    columns += [Column("line", True, ""), Column(sanitize(block.file), False, "")]
    rows = [
        [*(duration(block.costs[name].get(number)) for name in names), str(number), sanitize(line)]
        for number, line in enumerate(block.lines, block.first)
    ]
    return Grid(columns, rows, rows, len(rows))


@piece.register
def _(block: made.Table) -> Piece:
    return _records(block.rows) if block.layout == "records" else _rows(block.rows)


def _rows(table: pa.Table) -> Grid:
    fields, first = readable(table), table.slice(0, ROWS)
    columns = [Column(heading(field), is_number(field), meaning(field)) for field in fields]
    whole = [_whole(first, field) for field in fields]
    return Grid(
        columns, lines(first, fields, _LONGEST), [list(row) for row in zip(*whole, strict=True)], table.num_rows
    )


def _whole(table: pa.Table, field: pa.Field) -> list[str]:
    """A column's values, none of them shortened."""
    values = table[field.name].to_pylist()
    if role(field) in ("kernel", "place"):
        return [sanitize(str(value)) if value is not None else "–" for value in values]
    return texts(values, field, None)


def _records(table: pa.Table) -> Grid:
    """A row per column, a column per row; the first column has their names."""
    first, *fields = readable(table)
    names = texts(table[first.name].to_pylist(), first, None)
    columns = [Column("", False, ""), *(Column(name, True, "") for name in names)]
    rows = [[heading(field), *texts(table[field.name].to_pylist(), field, None)] for field in fields]
    return Grid(columns, rows, rows, len(rows))
