"""The report for the terminal, in rich renderables. Names are Text, never markup."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import singledispatch
from io import StringIO
from typing import TextIO

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from tracekit.faces import Options, face
from tracekit.faces.shared.cells import heading, is_number, lines, readable, role, texts
from tracekit.faces.shared.sparks import glyphs, legend
from tracekit.faces.shared.wording import is_noise, label, note_text, share, uncertainty
from tracekit.names import short
from tracekit.report import Report
from tracekit.report.blocks import Block, Excerpt, Notes, Sentences, Series, Table
from tracekit.report.breakdown import TOTAL, Breakdown
from tracekit.report.outline import Chapter, Entry, outline
from tracekit.sanitize import sanitize
from tracekit.units import duration, thousandths

_HEAD = 24  # letters of a variant over a column
# Of a breakdown in one table: whether shares and intervals stand in it, and how long names may be.
_LAYOUTS = ((True, True, _HEAD), (True, False, _HEAD), (False, False, _HEAD), (False, False, 11))
_PIPED_WIDTH = 160  # of a report that goes to no terminal
_STYLES = {"lead": "bold", "plain": "", "quiet": "dim"}


@face("text")
def draw(report: Report, options: Options) -> str:
    """The report as text: for a terminal, with its colours and as wide as it is."""
    console = _console(options.stream)
    with console.capture() as drawn:
        show(report, console, options)
    return drawn.get()


def draw_blocks(blocks: Iterable[Block], options: Options | None = None) -> str:
    """Some blocks alone, as the report draws them."""
    options = options or Options()
    console = _console(options.stream)
    with console.capture() as captured:
        for block in blocks:
            for part in drawn(block, Page(console.width, options.full, options.rows)):
                console.print(part)
    return captured.get()


def _console(stream: TextIO | None) -> Console:
    console = Console(file=stream or StringIO(), highlight=False, emoji=False, markup=False)
    if not console.is_terminal:
        asked = os.environ.get("COLUMNS", "")
        console.width = int(asked) if asked.isdecimal() and int(asked) else _PIPED_WIDTH
    return console


def show(report: Report, console: Console, options: Options | None = None) -> None:
    """Print the report."""
    options = options or Options()
    outlined = outline(report, options.rows, options.full)
    for index, chapter in enumerate(outlined.chapters):
        if index:
            console.print()
        for part in _chapter(chapter, Page(console.width, options.full)):
            console.print(part)
    if outlined.closing:
        console.print()
    for sentence in outlined.closing:
        console.print(Text(sanitize(sentence), style="dim"))


@dataclass(frozen=True)
class Page:
    """Where a block is drawn: how wide, how much of it, and whose it is."""

    width: int
    full: bool = False
    rows: int | None = None
    of: str = ""


def _chapter(chapter: Chapter, page: Page) -> Iterator[RenderableType]:
    first = chapter.entries[0].blocks[0]
    if not (isinstance(first, Sentences) and first.tone == "lead") and not isinstance(first, Breakdown):
        yield Text(sanitize(chapter.title), style="bold")
    for entry in chapter.entries:
        yield from _entry(entry, page)


def _entry(entry: Entry, page: Page) -> Iterator[RenderableType]:
    if entry.of and not isinstance(entry.blocks[0], Sentences):
        yield Text(sanitize(entry.of), style="cyan")
    for index, block in enumerate(entry.blocks):
        yield from drawn(block, Page(page.width, page.full, entry.rows, entry.of if index == 0 else ""))


@singledispatch
def drawn(block: Block, page: Page) -> Iterator[RenderableType]:
    """One block, drawn."""
    raise TypeError(f"{type(block).__name__}: is not a kind of block")


@drawn.register
def _(block: Sentences, page: Page) -> Iterator[RenderableType]:
    for line in block.lines:
        said = Text(sanitize(line), style=_STYLES[block.tone])
        yield Text.assemble((sanitize(page.of), "cyan"), ": ", said) if page.of else said


@drawn.register
def _(block: Notes, page: Page) -> Iterator[RenderableType]:
    for note in block.notes:
        yield Text.assemble("• ", (sanitize(note.kind), "yellow"), ": ", sanitize(note_text(note)))


@drawn.register
def _(block: Series, page: Page) -> Iterator[RenderableType]:
    names = _names([line.name for line in block.lines], max(page.width // 4, 8))
    for name, line in zip(names, block.lines, strict=True):
        said = legend(line)
        room = max(page.width - len(name) - len(said) - 5, 8)
        yield Text.assemble("  ", (name, "cyan"), " ", glyphs(line, room), "  ", (said, "dim"))


@drawn.register
def _(block: Excerpt, page: Page) -> Iterator[RenderableType]:
    table = RichTable(box=SIMPLE_HEAD, title=Text(sanitize(block.file)), title_justify="left", show_edge=False)
    for name in block.costs:
        table.add_column(Text(sanitize(name, 28)), justify="right", no_wrap=True)
    table.add_column("", justify="right", style="dim")
    table.add_column("", no_wrap=True, overflow="ellipsis")
    for number, line in enumerate(block.lines, block.first):
        costs = [duration(of[number]) if number in of else "" for of in block.costs.values()]
        table.add_row(*costs, str(number), Text(sanitize(line)))
    yield table


@drawn.register
def _(block: Table, page: Page) -> Iterator[RenderableType]:
    yield from _records(block, page) if block.layout == "records" else _rows(block, page)


def _rows(block: Table, page: Page) -> Iterator[RenderableType]:
    first = block.rows.slice(0, page.rows)
    fields = readable(first, page.full)
    shown = lines(first, fields)
    columns = [
        Shown(heading(field), is_number(field), role(field) == "figure", [row[k] for row in shown])
        for k, field in enumerate(fields)
    ]
    if shown:
        yield from _tables(columns, page.width)
    if len(shown) < block.rows.num_rows:
        yield Text(f"  {len(shown)} of {block.rows.num_rows:,} rows", style="dim")


def _records(block: Table, page: Page) -> Iterator[RenderableType]:
    """A line per column, a column per row; the first column has their names."""
    first, *fields = readable(block.rows, page.full)
    by_field = [texts(block.rows[field.name].to_pylist(), field) for field in fields]
    columns = [Shown("", False, False, [heading(field) for field in fields])]
    for k, name in enumerate(texts(block.rows[first.name].to_pylist(), first)):
        columns.append(Shown(name, True, True, [values[k] for values in by_field]))
    yield from _tables(columns, page.width)


@dataclass(frozen=True)
class Shown:
    """A column as text; what is `parallel` may stand in another table below, where there is no room beside."""

    head: str
    right: bool
    parallel: bool
    cells: list[str]


def _tables(columns: list[Shown], width: int) -> Iterator[RichTable]:
    """One table, or several one below the other, each with as many of the parallel columns as there is room for.

    Figures of several words are broken between them before a column moves down.
    """
    fixed = [column for column in columns if not column.parallel]
    parallel = [column for column in columns if column.parallel]
    for broken in (None, 24, 20) if parallel else ():
        if _width(table := _table(columns, broken)) <= width:
            yield table
            return
    for room in range(len(parallel), 0, -1):
        tables = [_table([*fixed, *parallel[at : at + room]]) for at in range(0, len(parallel), room)]
        if room == 1 or all(_width(table) <= width for table in tables):
            yield from tables
            return
    yield _table(columns)


def _table(columns: list[Shown], broken: int | None = None) -> RichTable:
    table = RichTable(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 2))
    heads = iter(short([column.head for column in columns if column.parallel], _HEAD))
    for column in columns:
        table.add_column(
            Text(next(heads) if column.parallel else column.head),
            justify="right" if column.right else "left",
            overflow="fold",
            no_wrap=column.right and not (broken and column.parallel),
            max_width=broken if column.parallel else None,
        )
    for row in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*map(Text, row))
    return table


@drawn.register
def _(block: Breakdown, page: Page) -> Iterator[RenderableType]:
    """One table where there is room for it; else the variants, and below them each comparison by itself.

    Where room is short, first the intervals and then the shares are left out: no time is cut.
    """
    title = f"{block.title} ({block.unit})"
    for shares, intervals, head in (
        (True, True, _HEAD),
        (True, False, _HEAD),
        (False, False, _HEAD),
        (False, False, 11),
    ):
        columns = Columns(block.variants, block.compared, shares, intervals, head)
        whole = _buckets(title, block, columns)
        if _width(whole) <= page.width and len(set(short(block.variants, head))) == len(block.variants):
            yield whole
            return
    yield from _in_parts(title, block, page.width)


@dataclass(frozen=True)
class Columns:
    """Which columns of a breakdown to draw."""

    names: list[str]
    others: list[str]
    shares: bool
    intervals: bool
    head: int = _HEAD  # letters of a name over a column


def _in_parts(title: str, block: Breakdown, width: int) -> Iterator[RenderableType]:
    for names in _fitting(block, width):
        yield _buckets(title, block, Columns(names, [], False, False))
    for base in dict.fromkeys(block.baselines[name] for name in block.compared):
        others = [name for name in block.compared if block.baselines[name] == base]
        yield from _comparisons(block, base, others, width)


def _comparisons(block: Breakdown, base: str, others: list[str], width: int) -> Iterator[RenderableType]:
    """The differences to one baseline, as many to a table as there is room for; the intervals go before the numbers."""
    title = f"Against {sanitize(base)} ({block.unit})"
    for intervals in (True, False):
        for room in range(len(others), 0, -1):
            chunks = [others[at : at + room] for at in range(0, len(others), room)]
            tables = [_buckets(title, block, Columns([], chunk, False, intervals)) for chunk in chunks]
            if all(_width(table) <= width for table in tables) or (room == 1 and not intervals):
                yield from tables
                return


def _fitting(block: Breakdown, width: int) -> list[list[str]]:
    """The variants, as many to a table as there is room for."""
    names = block.variants
    for room in range(len(names), 0, -1):
        chunks = [names[at : at + room] for at in range(0, len(names), room)]
        if all(_width(_buckets("", block, Columns(chunk, [], False, False))) <= width for chunk in chunks):
            return chunks
    return [[name] for name in names]


def _width(table: RichTable) -> int:
    console = Console(width=10_000, file=StringIO())
    return console.measure(table).maximum


def _buckets(title: str, block: Breakdown, columns: Columns) -> RichTable:
    table = RichTable(
        title=Text(title), title_justify="left", title_style="bold", box=SIMPLE_HEAD, show_edge=False, padding=(0, 1)
    )
    table.add_column("bucket", no_wrap=True)
    for shown in _names(columns.names, columns.head):
        table.add_column(Text(shown), justify="right", overflow="ellipsis")
        if columns.shares:
            table.add_column("", justify="right", no_wrap=True, style="dim")
    for shown in _names(columns.others, columns.head):
        head = "Δ" if columns.names and len(columns.others) == 1 else f"Δ {shown.strip()}"
        table.add_column(Text(head), justify="right", overflow="ellipsis")
        if columns.intervals:
            table.add_column("95 %", justify="right", style="dim", no_wrap=True)
    for key in block.keys:
        table.add_row(*_row(block, key, columns), style="bold" if key == TOTAL else "")
    return table


def _row(block: Breakdown, key: str, columns: Columns) -> Iterator[RenderableType]:
    part = block.part(key)
    yield Text.assemble(("■ ", part.colour), part.label) if part is not None else Text(label(block, key))
    for name in columns.names:
        value = block.cells[key][name]
        yield thousandths(value) if value or key == TOTAL else "·"
        if columns.shares:
            yield share(block, key, name)
    for name in columns.others:
        noise = is_noise(block, key, name)
        delta = thousandths(block.deltas[key][name], signed=True)
        yield Text(delta if columns.intervals or not noise else f"{delta} ~", style="dim" if noise else "")
        if columns.intervals:
            yield uncertainty(block, key, name)


def _names(names: list[str], width: int) -> list[str]:
    """Names of one width, so that what follows them stands in line."""
    shown = short(names, width)
    room = max(map(len, shown), default=0)
    return [name.ljust(room) for name in shown]
