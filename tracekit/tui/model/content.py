"""What a pane is, a question with the help that explains its answer, and what it shows: pieces, from top to bottom. Any
block of the report can become a piece.
"""

from collections.abc import Callable, Sequence
from functools import singledispatch

import pyarrow as pa
from msgspec import Struct

from tracekit.base.names import sanitize
from tracekit.faces.shared.cells import heading, readable, texts
from tracekit.faces.shared.wording import note_text
from tracekit.profile import Profile
from tracekit.report.blocks import Block, Excerpt, Notes, Sentences, Series, Table, Tone
from tracekit.report.breakdown import Breakdown
from tracekit.trace.schema import column
from tracekit.tui.model.bucket_table import BucketTable, bucket_sheet, table_of
from tracekit.tui.model.opened import OpenReport
from tracekit.tui.model.selection import Selection
from tracekit.tui.model.sheet import Sheet, table_from
from tracekit.tui.model.strip import StepStrip, strip_of
from tracekit.tui.timeline import Target


class Prose(Struct, frozen=True):
    """Paragraphs, under a title in bold if there is one."""

    lines: tuple[str, ...]
    tone: Tone = "plain"
    title: str = ""


class Code(Struct, frozen=True):
    """A file with the costs of its lines: a sheet with a row for each line of the file, and the line to begin at."""

    sheet: Sheet
    path: str
    line: int


class Lanes(Struct, frozen=True):
    """The timeline of some variants, and the part of it to show."""

    profiles: tuple[Profile, ...]
    target: Target | None = None


Piece = Prose | Sheet | BucketTable | StepStrip | Code | Lanes


class Content(Struct, frozen=True):
    """The pieces, and where the cursor begins: in which sheet, and in which row of it."""

    pieces: tuple[Piece, ...]
    begin: tuple[int, int] = (0, 0)

    @property
    def sheets(self) -> list[Sheet]:
        """The tables among the pieces."""
        return [
            piece.sheet if isinstance(piece, Code) else piece
            for piece in self.pieces
            if isinstance(piece, Sheet | Code)
        ]


def prose(*lines: str, tone: Tone = "plain", title: str = "") -> Prose:
    """Paragraphs of text that may come from a trace."""
    return Prose(tuple(sanitize(line) for line in lines), tone, sanitize(title))


class Place(Struct, frozen=True):
    """A line of a file."""

    file: str
    line: int


def place_in(sheet: Sheet, row: int) -> Place | None:
    """The user's line that a row names in its columns `file` and `line`, if it names one.

    In the table `lines` of the report, `line` is a text, and `line_number` has the number.
    """
    schema = sheet.table.schema
    columns = [name for name in ("line_number", "line") if name in schema.names]
    numbers = [name for name in columns if pa.types.is_integer(schema.field(name).type)]
    if not numbers or "file" not in schema.names:
        return None
    file, line = (sheet.table[name][row].as_py() for name in ("file", numbers[0]))
    return Place(file, line) if file is not None and line is not None else None


def words(opened: OpenReport, selection: Selection, chapter: str) -> tuple[Piece, ...]:
    """The sentences of the report about a chapter; none if the selection is narrower than what they describe."""
    if any(facet.kind != "variant" for facet in selection.facets):
        return ()
    opened = opened.narrowed(selection)
    return tuple(prose(*block.lines, tone="quiet", title=subject) for subject, block in opened.sentences(chapter))


def of_all_steps(selection: Selection) -> tuple[Piece, ...]:
    """A remark that only the selected variant narrows a pane, if more than that is selected."""
    if all(facet.kind in ("variant", "finding", "event") for facet in selection.facets):
        return ()
    return (prose("Shows all steps; only choosing a variant filters this pane.", tone="quiet"),)


@singledispatch
def pieces_of(block: Block, title: str = "") -> tuple[Piece, ...]:
    """Convert a block of the report to the pieces that a pane shows."""
    raise TypeError(f"{type(block).__name__}: is not a kind of block")


@pieces_of.register(Sentences)
def _(block: Sentences, title: str = "") -> tuple[Piece, ...]:
    return (prose(*block.lines, tone=block.tone, title=title),)


@pieces_of.register(Notes)
def _(block: Notes, title: str = "") -> tuple[Piece, ...]:
    return (prose(*(f"{note.kind}: {note_text(note)}" for note in block.notes), title=title),)


@pieces_of.register(Breakdown)
def _(block: Breakdown, title: str = "") -> tuple[Piece, ...]:
    numbers = table_of(block)
    return (numbers, bucket_sheet(numbers))


@pieces_of.register(Series)
def _(block: Series, title: str = "") -> tuple[Piece, ...]:
    return (strip_of(block.lines, None, selectable=False),)


@pieces_of.register(Excerpt)
def _(block: Excerpt, title: str = "") -> tuple[Piece, ...]:
    numbers = [*range(block.first, block.first + len(block.lines))]
    columns: list[tuple[pa.Field, Sequence[object]]] = [
        (column(f"{name}_ns", pa.float64(), "per step", "ns", title=name), [costs.get(number) for number in numbers])
        for name, costs in block.costs.items()
    ]
    columns.append((column("line", pa.int64(), "", role="identity"), numbers))
    columns.append((pa.field(sanitize(block.file), pa.string()), block.lines))
    return (Sheet("excerpt", table_from(columns), title),)


@pieces_of.register(Table)
def _(block: Table, title: str = "") -> tuple[Piece, ...]:
    rows = records(block.rows) if block.layout == "records" else block.rows
    return (Sheet(block.name, rows, title),)


def records(rows: pa.Table) -> pa.Table:
    """Transpose a table of few rows and many columns: a row for each column, a column for each row."""
    first, *fields = readable(rows)
    names = texts(rows[first.name].to_pylist(), first, None)
    numbers = [names[:k].count(name) for k, name in enumerate(names)]
    names = [f"{name} ({number + 1})" if number else name for name, number in zip(names, numbers, strict=True)]
    values = [texts(rows[field.name].to_pylist(), field, None) for field in fields]
    columns = [("of each", [heading(field) for field in fields])]
    columns += [(name, [row[k] for row in values]) for k, name in enumerate(names)]
    return table_from((pa.field(name, pa.string()), cells) for name, cells in columns)


class Pane(Struct, frozen=True):
    """`title` is the text of its chip. `query` answers for a selection, which may take as long as reading a trace."""

    name: str
    title: str
    help: str
    query: Callable[[OpenReport, Selection], Content]
    applies: Callable[[OpenReport], bool] = lambda opened: True
    is_listed: bool = True  # if not, only Enter leads there
    key: str = ""  # that leads there, the same in every report; a pane without one gets a digit
    chapters: frozenset[str] = frozenset()  # those of the report that it shows; they get no separate pane
