"""The report for the terminal, in rich renderables. Names are Text, never markup.

Prose is wrapped where it is read well; a table that is too wide for the terminal becomes several, one below the other.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial, singledispatch
from io import StringIO
from typing import TextIO, TypeVar

from msgspec import Struct
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.constrain import Constrain
from rich.measure import Measurement
from rich.table import Column as RichColumn
from rich.table import Table as RichTable
from rich.text import Text

from tracekit.base.names import aligned, sanitize, short
from tracekit.faces import DEFAULTS, Options, face
from tracekit.faces.shared.cells import grid
from tracekit.faces.shared.wording import (
    UNIT,
    certainty,
    change,
    doubt,
    glyphs,
    label,
    legend,
    margins,
    mark,
    note_text,
    rests_on,
    share,
    taken,
)
from tracekit.report import Report
from tracekit.report.blocks import Block, Cards, Excerpt, Headline, Notes, Sentences, Series, Table
from tracekit.report.breakdown import TOTAL, Breakdown
from tracekit.report.explained import finding_ids
from tracekit.report.outline import Chapter, outline

_PIPED_WIDTH = 160  # of a report that does not go to a terminal
_COLUMNS_BEFORE_COST = 2  # columns between a headline and its cost
_STYLES = {"lead": "bold", "plain": "", "quiet": "dim"}
PROSE = 100  # columns: longer lines are hard to read
_GLUE = "\ue000"  # stands for a space at which a line must not end: wrapping ends lines at no-break spaces, too
_HEAD = 24  # letters of a variant over a column
# How many letters per line a figure and a text may have, tried in turn: longer ones continue on the next line.
_FOLDS = ((None, None), (24, None), (20, None), (20, 40), (20, 28), (20, 20))
# The forms of a single table: whether it has shares and doubts, and how long names may be.
_LAYOUTS = ((True, True, _HEAD), (True, False, _HEAD), (False, False, _HEAD), (False, False, 11))
_Item = TypeVar("_Item")


@face("text")
def draw(report: Report, options: Options) -> str:
    """The report as text, in the width and with the colours of the terminal."""
    console = _console(options.stream)
    with console.capture() as captured:
        show(report, console, options)
    return captured.get()


def draw_blocks(blocks: Iterable[Block], options: Options = DEFAULTS) -> str:
    """Some blocks by themselves, as the report draws them."""
    console = _console(options.stream)
    with console.capture() as captured:
        for block in blocks:
            for part in drawn(block, Page(console.width, options.full, options.rows)):
                console.print(part)
    return captured.get()


def _console(stream: TextIO | None) -> Console:
    console = Console(file=stream or StringIO(), highlight=False, emoji=False, markup=False)
    if not console.is_terminal:
        columns = os.environ.get("COLUMNS", "")
        console.width = int(columns) if columns.isdecimal() and int(columns) else _PIPED_WIDTH
    return console


def show(report: Report, console: Console, options: Options = DEFAULTS) -> None:
    """Print the report."""
    outlined = outline(report, options.rows, options.full)
    for index, chapter in enumerate(outlined.chapters):
        if index:
            console.print()
        if not chapter.leads and not isinstance(chapter.entries[0].blocks[0], Breakdown):
            console.print(Text(sanitize(chapter.title), style="bold"))
        for entry in chapter.entries:
            first = entry.blocks[0]
            if entry.subject and not isinstance(first, Sentences):
                console.print(Text(sanitize(entry.subject), style="cyan"))
            for position, block in enumerate(entry.blocks):
                subject = "" if position else entry.subject
                for part in drawn(block, Page(console.width, options.full, entry.rows, subject)):
                    console.print(part)
            if isinstance(first, Cards) and entry is not chapter.entries[-1]:
                console.print()
    closing = [*outlined.closing, *_pages_of(report, outlined.chapters)]
    if closing:
        console.print()
    for sentence in closing:
        console.print(Prose(Text(sanitize(sentence), style="dim")))


def _pages_of(report: Report, chapters: Iterable[Chapter]) -> Iterator[str]:
    """Where to read what the findings mean, and the laws that give rise to doubt."""
    laws = dict.fromkeys(breach.id for profile in report.profiles for breach in profile.health if breach.is_grave)
    blocks = (block for chapter in chapters for entry in chapter.entries for block in entry.blocks)
    told = dict.fromkeys(card.id for block in blocks if isinstance(block, Cards) for card in block.cards)
    if names := [*laws, *(name for name in told if name in finding_ids())]:
        doubts = "doubts and " if laws else ""
        yield f"What these {doubts}findings mean, and when they are wrong: tracekit explain-finding {' '.join(names)}"


class Page(Struct, frozen=True):
    """How to draw a block: how wide, how much of it, and what it is about."""

    width: int
    full: bool = False
    rows: int | None = None
    subject: str = ""


class Prose:
    """Text in lines of at most `PROSE` columns."""

    def __init__(self, text: Text) -> None:
        self.text = text.copy()
        self.text.plain = UNIT.sub(_GLUE, text.plain)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self.text.wrap(console, min(options.max_width, PROSE)):
            line.plain = line.plain.replace(_GLUE, " ")
            yield line

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement.get(console, options, self.text).with_maximum(PROSE)


class Column(Struct, frozen=True):
    """A column as text; a `parallel` one may move to another table below if there is no room beside the others."""

    head: str
    right: bool
    parallel: bool
    cells: list[str]


def fitting_tables(columns: list[Column], width: int) -> Iterator[RichTable]:
    """One table, or several one below the other, each with as many of the parallel columns as there is room for.

    Figures of several words and long texts are broken into lines before a column moves down.
    """
    fixed = [column for column in columns if not column.parallel]
    parallel = [column for column in columns if column.parallel]
    if not parallel:
        yield _table(columns)
        return
    for figure, text in _FOLDS:
        if width_of(table := _table(columns, figure, text)) <= width:
            yield table
            return
    tables, _ = _side_by_side(parallel, width, lambda chunk: _table([*fixed, *chunk], text=_FOLDS[-1][1]))
    yield from tables


def _side_by_side(
    items: list[_Item], width: int, tabulated: Callable[[list[_Item]], RichTable]
) -> tuple[list[RichTable], bool]:
    """Tables of as many of the items each as there is room for, one below the other, and whether they fit:
    even with one item, a table may be too wide."""
    tables: list[RichTable] = []
    for room in range(len(items), 0, -1):
        tables = [tabulated(items[start : start + room]) for start in range(0, len(items), room)]
        if all(width_of(table) <= width for table in tables):
            return tables, True
    return tables, False


def _table(columns: list[Column], figure: int | None = None, text: int | None = None) -> RichTable:
    table = RichTable(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 2))
    heads = iter(short([column.head for column in columns if column.parallel], _HEAD))
    for column in columns:
        table.add_column(
            Text(next(heads) if column.parallel else column.head),
            justify="right" if column.right else "left",
            overflow="fold",
            no_wrap=column.right and not (figure and column.parallel),
            max_width=figure if column.parallel else text,
        )
    for row in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*map(Text, row))
    return table


def width_of(table: RichTable) -> int:
    """How many cells wide a table is if nothing is cut."""
    console = Console(width=10_000, file=StringIO(), emoji=False, markup=False)
    return console.measure(table).maximum


@singledispatch
def drawn(block: Block, page: Page) -> Iterator[RenderableType]:
    """One block, drawn."""
    raise TypeError(f"{type(block).__name__}: is not a kind of block")


@drawn.register(Sentences)
def _(block: Sentences, page: Page) -> Iterator[RenderableType]:
    for line in block.lines:
        text = Text(sanitize(line), style=_STYLES[block.tone])
        yield Prose(Text.assemble((sanitize(page.subject), "cyan"), ": ", text) if page.subject else text)


@drawn.register(Headline)
def _(block: Headline, page: Page) -> Iterator[RenderableType]:
    bold = [*filter(None, (block.first, block.last and f"→ {block.last}"))]
    for line in bold:
        yield Prose(Text(sanitize(line), "bold"))
    for line in block.lines:
        yield Prose(Text(sanitize(line), "" if bold else "bold"))


@drawn.register(Cards)
def _(block: Cards, page: Page) -> Iterator[RenderableType]:
    width = min(page.width, PROSE)
    for number, card in enumerate(block.cards, 1):
        if number > 1 and card.why:
            yield ""
        marks = len(str(len(block.cards))) + 2
        headline, costs = Text(sanitize(card.headline), "bold"), [*map(sanitize, card.cost_phrases(block.several))]
        room = width - marks - headline.cell_len - sum(map(cell_len, costs))
        if len(costs) == 1 and room >= _COLUMNS_BEFORE_COST:
            headline = Text.assemble(headline, " " * room, costs[0])
        else:
            headline = Text("\n").join([headline, *map(Text, costs)])
        table = RichTable.grid(RichColumn(width=marks), RichColumn())
        table.add_row(str(number), headline)
        for sign, text, style in [
            ("", card.place, "cyan"),
            ("", card.why, ""),
            ("→", card.do, ""),
            *(("+", part, "") for part in card.also),
        ]:
            if text:
                table.add_row(sign, Prose(Text(sanitize(text), style)))
        yield Constrain(table, width)


@drawn.register(Notes)
def _(block: Notes, page: Page) -> Iterator[RenderableType]:
    for note in block.notes:
        table = RichTable.grid(RichColumn(width=2), RichColumn())
        table.add_row("•", Prose(Text.assemble((sanitize(note.kind), "yellow"), ": ", sanitize(note_text(note)))))
        yield Constrain(table, min(page.width, PROSE))


@drawn.register(Series)
def _(block: Series, page: Page) -> Iterator[RenderableType]:
    names = aligned([line.name for line in block.lines], max(page.width // 4, 8))
    for name, line in zip(names, block.lines, strict=True):
        legend_text = legend(line)
        room = max(page.width - len(name) - len(legend_text) - 5, 8)
        yield Text.assemble("  ", (name, "cyan"), " ", glyphs(line, room), "  ", (legend_text, "dim"))


@drawn.register(Excerpt)
def _(block: Excerpt, page: Page) -> Iterator[RenderableType]:
    table = RichTable(box=SIMPLE_HEAD, title=Text(sanitize(block.file)), title_justify="left", show_edge=False)
    for name in block.costs:
        table.add_column(Text(sanitize(name, 28)), justify="right", no_wrap=True)
    table.add_column("", justify="right", style="dim")
    table.add_column("", no_wrap=True, overflow="ellipsis")
    for number, line in enumerate(block.lines, block.first):
        table.add_row(*margins(block, number), str(number), Text(sanitize(line)))
    yield table


@drawn.register(Table)
def _(block: Table, page: Page) -> Iterator[RenderableType]:
    table = grid(block, page.rows, page.full)
    columns = [
        Column(head, figure, not key, [row[k] for row in table.rows])
        for k, (head, figure, key) in enumerate(zip(table.heads, table.figures, table.keys, strict=True))
    ]
    if table.rows:
        yield from fitting_tables(columns, page.width)
    if table.shown_rows < table.total_rows:
        yield Text(f"  {table.shown_rows} of {table.total_rows:,} rows", style="dim")


@drawn.register(Breakdown)
def _(block: Breakdown, page: Page) -> Iterator[RenderableType]:
    title = f"{block.title} ({block.unit})"
    for shares, doubts, head in _LAYOUTS:
        table = _bucket_table(title, block, block.variants, block.compared, shares=shares, doubts=doubts, head=head)
        if width_of(table) <= page.width and len(set(short(block.variants, head))) == len(block.variants):
            yield table
            return
    # There is no room for one table: the variants come first, and below them the differences from each baseline.
    tables, _ = _side_by_side(block.variants, page.width, partial(_bucket_table, title, block, compared=[]))
    yield from tables
    for base in dict.fromkeys(block.baselines[name] for name in block.compared):
        compared = [name for name in block.compared if block.baselines[name] == base]
        tabulated = partial(_bucket_table, f"Against {sanitize(base)} ({block.unit})", block, [])
        tables, fit = _side_by_side(compared, page.width, partial(tabulated, doubts=True))
        if not fit:
            tables, _ = _side_by_side(compared, page.width, tabulated)
        yield from tables


def _bucket_table(
    title: str,
    block: Breakdown,
    names: list[str],
    compared: list[str],
    *,
    shares: bool = False,
    doubts: bool = False,
    head: int = _HEAD,
) -> RichTable:
    """A row for each bucket, with the times of some variants and the differences of others."""
    if compared and not doubts:
        title = f"{title}, Δ from {' and '.join(dict.fromkeys(rests_on(block, name) for name in compared))} each"
    table = RichTable(
        title=Text(title), title_justify="left", title_style="bold", box=SIMPLE_HEAD, show_edge=False, padding=(0, 1)
    )
    table.add_column("bucket", no_wrap=True)
    for heading in aligned(names, head):
        table.add_column(Text(heading), justify="right", overflow="ellipsis")
        if shares:
            table.add_column("", justify="right", no_wrap=True, style="dim")
    for name, heading in zip(compared, aligned(compared, head), strict=True):
        delta_head = "Δ" if names and len(compared) == 1 else f"Δ {heading.strip()}"
        table.add_column(Text(delta_head), justify="right", overflow="ellipsis")
        if doubts:
            table.add_column(rests_on(block, name), style="dim", no_wrap=True)
    for key in block.keys:
        part = block.part(key)
        chip = ("■ ", part.colour) if part is not None else ""
        cells: list[RenderableType] = [Text.assemble(chip, label(block, key))]
        for name in names:
            cells += [taken(block, key, name), *([share(block, key, name)] if shares else [])]
        for name in compared:
            doubted, delta = doubt(block, key, name), change(block, key, name)
            if doubted and not doubts:
                delta = f"{delta} {mark(block, key, name)}"
            cells += [Text(delta, "dim" if doubted else ""), *([certainty(block, key, name)] if doubts else [])]
        table.add_row(*cells, style="bold" if key == TOTAL else "")
    return table
