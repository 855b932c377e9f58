"""The report for the terminal, in rich renderables. Names are Text, never markup."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import singledispatch
from io import StringIO

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from tracekit.faces import Options, face
from tracekit.faces.shared.cells import heading, is_number, lines, readable, texts
from tracekit.faces.shared.sparks import glyphs, legend
from tracekit.faces.shared.wording import is_noise, label, note_text, share, uncertainty
from tracekit.names import short
from tracekit.report import Report
from tracekit.report.blocks import Block, Excerpt, Notes, Sentences, Series, Table
from tracekit.report.breakdown import TOTAL, Breakdown
from tracekit.report.outline import Chapter, Entry, outline
from tracekit.sanitize import sanitize
from tracekit.units import duration, thousandths

_PIPED_WIDTH = 160  # of a report that goes to no terminal
_STYLES = {"lead": "bold", "plain": "", "quiet": "dim"}


@face("text")
def draw(report: Report, options: Options) -> str:
    """The report as text: for a terminal, with its colours and as wide as it is."""
    console = Console(file=options.stream or StringIO(), highlight=False, emoji=False, markup=False)
    if not console.is_terminal:
        asked = os.environ.get("COLUMNS", "")
        console.width = int(asked) if asked.isdecimal() and int(asked) else _PIPED_WIDTH
    with console.capture() as drawn:
        show(report, console, options)
    return drawn.get()


def show(report: Report, console: Console, options: Options | None = None) -> None:
    """Print the report."""
    options = options or Options()
    found = outline(report, options.rows, options.full)
    for index, chapter in enumerate(found.chapters):
        if index:
            console.print()
        for part in _chapter(chapter, Page(console.width, options.full)):
            console.print(part)
    if found.closing:
        console.print()
    for sentence in found.closing:
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
    table = RichTable(box=SIMPLE_HEAD, title=Text(sanitize(block.file)), title_justify="left")
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
    fields = readable(block.rows, page.full)
    table = RichTable(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 2))
    for field in fields:
        right = is_number(field)
        table.add_column(Text(heading(field)), justify="right" if right else "left", overflow="fold", no_wrap=right)
    shown = lines(block.rows.slice(0, page.rows), fields)
    for row in shown:
        table.add_row(*map(Text, row))
    if shown:
        yield table
    if len(shown) < block.rows.num_rows:
        yield Text(f"  {len(shown)} of {block.rows.num_rows:,} rows", style="dim")


def _records(block: Table, page: Page) -> Iterator[RenderableType]:
    """A line per column, a column per row; the first column has their names."""
    first, *fields = readable(block.rows, page.full)
    table = RichTable(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 2))
    table.add_column("", no_wrap=True)
    for name in texts(block.rows[first.name].to_pylist(), first, 28):
        table.add_column(Text(name), justify="right", overflow="fold")
    for field in fields:
        table.add_row(heading(field), *map(Text, texts(block.rows[field.name].to_pylist(), field)))
    yield table


@drawn.register
def _(block: Breakdown, page: Page) -> Iterator[RenderableType]:
    """One table where there is room for it; else the variants, and below them each comparison by itself.

    Where room is short, first the intervals and then the shares are left out: no time is cut.
    """
    title = f"{block.title} ({block.unit})"
    for shares, intervals in ((True, True), (True, False), (False, False)):
        whole = _buckets(title, block, Columns(block.variants, block.compared, shares, intervals))
        if _width(whole) <= page.width:
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


def _in_parts(title: str, block: Breakdown, width: int) -> Iterator[RenderableType]:
    for names in _fitting(block, width):
        yield _buckets(title, block, Columns(names, [], False, False))
    for name in block.compared:
        against = f"{sanitize(name)} against {sanitize(block.baselines[name])} ({block.unit})"
        wide = _buckets(against, block, Columns([], [name], False, True))
        yield wide if _width(wide) <= width else _buckets(against, block, Columns([], [name], False, False))


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
    for shown in _names(columns.names, 24):
        table.add_column(Text(shown), justify="right", overflow="ellipsis")
        if columns.shares:
            table.add_column("", justify="right", no_wrap=True, style="dim")
    for shown in _names(columns.others, 24):
        head = f"Δ {shown.strip()}" if len(columns.others) > 1 else "Δ"
        table.add_column(Text(head), justify="right", overflow="ellipsis")
        if columns.intervals:
            table.add_column("95 %", justify="right", style="dim", no_wrap=True)
    for key in block.keys:
        if key == TOTAL:
            table.add_section()
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
