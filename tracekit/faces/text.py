"""The report for the terminal, in rich renderables. Names are Text, never markup."""

import os
from collections.abc import Iterable, Iterator
from functools import singledispatch
from io import StringIO
from typing import TextIO

from msgspec import Struct
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.constrain import Constrain
from rich.table import Column as RichColumn
from rich.table import Table as RichTable
from rich.text import Text

from tracekit.base.names import aligned, sanitize
from tracekit.faces import DEFAULTS, Options, face
from tracekit.faces.shared.cells import grid
from tracekit.faces.shared.text_layout import PROSE, Column, Prose, bucket_tables, fitting_tables
from tracekit.faces.shared.wording import glyphs, legend, margins, note_text
from tracekit.report import Report
from tracekit.report.blocks import Block, Card, Cards, Excerpt, Headline, Notes, Sentences, Series, Table
from tracekit.report.breakdown import Breakdown
from tracekit.report.outline import Chapter, Entry, outline

_PIPED_WIDTH = 160  # of a report that does not go to a terminal
_COLUMNS_BEFORE_COST = 2  # columns between a headline and its cost
_STYLES = {"lead": "bold", "plain": "", "quiet": "dim"}


@face("text")
def draw(report: Report, options: Options) -> str:
    """The report as text, in the width and with the colours of the terminal."""
    console = _console(options.stream)
    with console.capture() as drawn:
        show(report, console, options)
    return drawn.get()


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
        for part in _chapter(chapter, Page(console.width, options.full)):
            console.print(part)
    if outlined.closing:
        console.print()
    for sentence in outlined.closing:
        console.print(Prose(Text(sanitize(sentence), style="dim")))


class Page(Struct, frozen=True):
    """How to draw a block: how wide, how much of it, and what it is about."""

    width: int
    full: bool = False
    rows: int | None = None
    subject: str = ""


def _chapter(chapter: Chapter, page: Page) -> Iterator[RenderableType]:
    if not chapter.leads and not isinstance(chapter.entries[0].blocks[0], Breakdown):
        yield Text(sanitize(chapter.title), style="bold")
    for entry in chapter.entries:
        yield from _entry(entry, page, last=entry is chapter.entries[-1])


def _entry(entry: Entry, page: Page, last: bool) -> Iterator[RenderableType]:
    if entry.subject and not isinstance(entry.blocks[0], Sentences):
        yield Text(sanitize(entry.subject), style="cyan")
    for index, block in enumerate(entry.blocks):
        yield from drawn(block, Page(page.width, page.full, entry.rows, entry.subject if index == 0 else ""))
    if isinstance(entry.blocks[0], Cards) and not last:
        yield ""


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
        table = RichTable.grid(RichColumn(width=marks), RichColumn())
        table.add_row(str(number), _headline(card, block.several, width - marks))
        for mark, text, style in [
            ("", card.place, "cyan"),
            ("", card.why, ""),
            ("→", card.do, ""),
            *(("+", part, "") for part in card.also),
        ]:
            if text:
                table.add_row(mark, Prose(Text(sanitize(text), style)))
        yield Constrain(table, width)


def _headline(card: Card, with_names: bool, width: int) -> Text:
    """The headline, and what it costs: at the right where there is room for both, and otherwise in lines of its own."""
    headline, costs = Text(sanitize(card.headline), "bold"), [*map(sanitize, card.cost_phrases(with_names))]
    room = width - headline.cell_len - sum(map(cell_len, costs))
    if len(costs) == 1 and room >= _COLUMNS_BEFORE_COST:
        return Text.assemble(headline, " " * room, costs[0])
    return Text("\n").join([headline, *map(Text, costs)])


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
    yield from bucket_tables(block, page.width)
