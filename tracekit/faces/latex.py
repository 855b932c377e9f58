r"""The report as LaTeX: booktabs tables for a paper, to be included by `\input`."""

import sys
from collections.abc import Iterator
from functools import singledispatch

from msgspec import Struct
from msgspec.structs import replace

from tracekit.base.names import short
from tracekit.faces import Options, face
from tracekit.faces.shared.cells import grid
from tracekit.faces.shared.latex_tables import Column, escape, listing, prose, tables
from tracekit.faces.shared.wording import certainty, change, label, legend, margins, note_text, rests_on, share, taken
from tracekit.report import Report
from tracekit.report.blocks import Block, Cards, Excerpt, Line, Notes, Sentences, Series, Table
from tracekit.report.breakdown import Breakdown
from tracekit.report.outline import Chapter, outline

_BARS = 60  # steps that are drawn as bars
_BAR, _BESIDE, _HEIGHT = 1.2, 0.6, 8.0  # points: how wide one is, how far from the next, how high at most
_CHIP = 9.0  # points that the colour of a bucket takes
_NAME = 18  # letters of a variant beside its bars
_SIDE_BY_SIDE = 2  # variants that have room in a table together with their differences
_MAX_PENDING_TABLES = 12  # tables that may wait until LaTeX finds a page for them


class Page(Struct, frozen=True):
    """How much of a block to write, and what it is about."""

    full: bool
    rows: int | None
    subject: str
    title: str

    @property
    def caption(self) -> str:
        """The caption of its tables: the title of the chapter."""
        return f"{self.title}: {self.subject}" if self.subject else self.title


@face("latex")
def render(report: Report, options: Options) -> str:
    """The report as LaTeX to be included."""
    head = "% Made by tracekit. Needs \\usepackage{array,booktabs,longtable,xcolor}, and no other package.\n"
    rows = options.rows if options.rows is not None or report.subject.study is None else sys.maxsize
    outlined = outline(report, rows, options.full)  # a table of a study is for a paper, which needs all of it
    lines = [line for chapter in outlined.chapters for line in _chapter(chapter, options.full)]
    lines += [f"\n{prose(sentence)}" for sentence in outlined.closing]
    return head + "\n".join(_letting_tables_out(lines)) + "\n"


def _letting_tables_out(lines: list[str]) -> Iterator[str]:
    """The lines, with page breaks wherever too many tables wait for a page, which LaTeX cannot handle."""
    pending_tables = 0
    for line in lines:
        yield line
        pending_tables += line == r"\end{table}"
        if pending_tables == _MAX_PENDING_TABLES:
            yield r"\clearpage"
            pending_tables = 0


def _chapter(chapter: Chapter, full: bool) -> Iterator[str]:
    if not chapter.leads:
        yield f"\n\\paragraph{{{prose(chapter.title)}}}"
    for entry in chapter.entries:
        captioned = [block for block in entry.blocks if isinstance(block, Table | Series)]
        for block in entry.blocks:
            yield ""
            suffix = (
                f", {block.name.replace('_', ' ')}" if isinstance(block, Table | Series) and len(captioned) > 1 else ""
            )
            yield from written(block, Page(full, entry.rows, entry.subject, chapter.title + suffix))


@singledispatch
def written(block: Block, page: Page) -> Iterator[str]:
    """One block as lines of LaTeX."""
    raise TypeError(f"{type(block).__name__}: is not a kind of block")


@written.register(Sentences)
def _(block: Sentences, page: Page) -> Iterator[str]:
    prefix = rf"\textbf{{{prose(page.subject)}}}: " if page.subject else ""
    for line in block.lines:
        yield rf"{{\sloppy {prefix}{prose(line)}\par}}"


@written.register(Cards)
def _(block: Cards, page: Page) -> Iterator[str]:
    yield r"\begin{enumerate}\sloppy"
    for card in block.cards:
        cost = "; ".join(card.cost_phrases(block.several))
        yield rf"  \item \textbf{{{prose(card.headline)}}}" + (f": {prose(cost)}." if cost else ".")
        for text in (card.place and f"{card.place}.", card.why):
            if text:
                yield f"    {prose(text)}"
        if card.do:
            yield rf"    \emph{{{prose(card.do)}}}"
        yield from (f"    {prose(part)}" for part in card.also)
    yield r"\end{enumerate}"


@written.register(Notes)
def _(block: Notes, page: Page) -> Iterator[str]:
    yield r"\begin{itemize}\sloppy"
    for note in block.notes:
        yield rf"  \item \emph{{{prose(note.kind)}}}: {prose(note_text(note))}"
    yield r"\end{itemize}"


@written.register(Series)
def _(block: Series, page: Page) -> Iterator[str]:
    bars = [_bars(line) for line in block.lines]
    longest = max((len(line.values) for line in block.lines), default=0)
    columns = [
        Column("", short([line.name for line in block.lines], _NAME)),
        Column("steps", [""] * len(bars), written=bars, drawn=min(longest, _BARS) * (_BAR + _BESIDE)),
        Column("", [legend(line, marked=False) for line in block.lines]),
    ]
    yield from listing(page.caption, columns)


def _bars(line: Line) -> str:
    """A rule for each step, whose height shows its duration; one that compiles is grey and as high as the highest."""
    top = max(line.usual, default=0) or 1
    rules = []
    for group in line.groups(_BARS):
        values = [value for value in line.values[group] if value is not None]
        if "compiles" in line.marks[group]:
            rules.append(rf"\textcolor{{gray}}{{\rule{{{_BAR}pt}}{{{_HEIGHT:.1f}pt}}}}")
        else:
            rules.append(rf"\rule{{{_BAR}pt}}{{{max([0, *values]) / top * _HEIGHT:.1f}pt}}")
    return rf"\kern{_BESIDE}pt".join(rules)


@written.register(Excerpt)
def _(block: Excerpt, page: Page) -> Iterator[str]:
    numbers = range(block.first, block.first + len(block.lines))
    costs = zip(*(margins(block, number) for number in numbers), strict=True)
    columns = [
        *(Column(name, of_line, figure=True) for name, of_line in zip(block.costs, costs, strict=True)),
        Column("line", [str(number) for number in numbers], figure=True),
        Column(block.file, block.lines, written=[rf"\texttt{{{_indented(line)}}}" for line in block.lines]),
    ]
    yield from listing(page.caption, columns)


def _indented(line: str) -> str:
    bare = line.lstrip(" ")
    return "~" * (len(line) - len(bare)) + prose(bare)


@written.register(Table)
def _(block: Table, page: Page) -> Iterator[str]:
    table = grid(block, page.rows, page.full)
    if not table.rows:
        return
    cells = zip(*table.rows, strict=True)
    columns = [Column(*column_parts) for column_parts in zip(table.heads, cells, table.figures, strict=True)]
    yield from tables(page.caption, columns)
    if table.shown_rows < table.total_rows:
        yield f"{table.shown_rows} of {table.total_rows} rows.\\par"


@written.register(Breakdown)
def _(block: Breakdown, page: Page) -> Iterator[str]:
    together = len(block.variants) <= _SIDE_BY_SIDE
    yield from _parts(block, page, block.variants, block.compared if together else [])
    if not together and block.compared:
        yield from _parts(block, replace(page, title=f"{page.title}, differences"), [], block.compared)


def _parts(block: Breakdown, page: Page, variants: list[str], compared: list[str]) -> Iterator[str]:
    """A row for each bucket: the time of some variants, and the difference of others."""
    labels = [label(block, key) for key in block.keys]
    chips = [_chip(block, key) + escape(text) for key, text in zip(block.keys, labels, strict=True)]
    columns = [Column(f"bucket ({block.unit})", labels, written=chips, drawn=_CHIP)]
    for name in variants:
        times = [taken(block, key, name) for key in block.keys]
        shares = [share(block, key, name).removesuffix(" %") for key in block.keys]
        columns += [Column(name, times, figure=True), Column("%", shares, figure=True, joined=True)]
    for name in compared:
        changes = [change(block, key, name) for key in block.keys]
        doubts = [certainty(block, key, name).replace("~", "∼") for key in block.keys]
        columns += [Column(f"Δ {name}", changes, figure=True), Column(rests_on(block, name), doubts, joined=True)]
    yield from tables(page.caption, columns, total=True)


def _chip(block: Breakdown, key: str) -> str:
    part = block.part(key)
    return rf"\textcolor[HTML]{{{part.colour.removeprefix('#').upper()}}}{{\rule{{5pt}}{{5pt}}}} " if part else ""
