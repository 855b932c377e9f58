"""What the terminal's report is laid out with: prose wrapped where it is read well, and tables, the breakdown's among
them, of which one too wide for the terminal becomes several, one below the other.
"""

import re
from collections.abc import Callable, Iterator
from io import StringIO
from typing import TypeVar

from msgspec import Struct
from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from tracekit.base.names import aligned, sanitize, short
from tracekit.faces.shared.wording import certainty, change, doubt, label, mark, rests_on, share, taken
from tracekit.report.breakdown import TOTAL, Breakdown

PROSE = 100  # columns: longer lines are hard to read
# The space between a number and its unit.
UNIT = re.compile(r"(?<=\d) (?=(?:[nµm]?s|min|h|%|×|[KMGT]?i?B)(?!\w))")
_GLUE = "\ue000"  # stands for a space at which a line must not end: wrapping ends lines at no-break spaces, too
HEAD = 24  # letters of a variant over a column
# How many letters per line a figure and a text may have, tried in turn: longer ones continue on the next line.
_FOLDS = ((None, None), (24, None), (20, None), (20, 40), (20, 28), (20, 20))
# The forms of a single table: whether it has shares and doubts, and how long names may be.
_LAYOUTS = ((True, True, HEAD), (True, False, HEAD), (False, False, HEAD), (False, False, 11))
_Item = TypeVar("_Item")


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
    heads = iter(short([column.head for column in columns if column.parallel], HEAD))
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


def bucket_tables(block: Breakdown, width: int) -> Iterator[RenderableType]:
    """One table if there is room for it, else the variants, and below them each comparison by itself.

    If room is short, first the doubts and then the shares are left out, but never a time.
    """
    title = f"{block.title} ({block.unit})"
    for shares, doubts, head in _LAYOUTS:
        columns = Columns(block.variants, block.compared, shares, doubts, head)
        single_table = _buckets(title, block, columns)
        if width_of(single_table) <= width and len(set(short(block.variants, head))) == len(block.variants):
            yield single_table
            return
    tables, _ = _side_by_side(block.variants, width, lambda names: _buckets(title, block, Columns(names, [])))
    yield from tables
    for base in dict.fromkeys(block.baselines[name] for name in block.compared):
        compared = [name for name in block.compared if block.baselines[name] == base]
        yield from _comparisons(block, base, compared, width)


class Columns(Struct, frozen=True):
    """Which columns of a breakdown to draw."""

    names: list[str]
    compared: list[str]
    shares: bool = False
    doubts: bool = False
    head: int = HEAD  # letters of a name over a column


def _comparisons(block: Breakdown, base: str, compared: list[str], width: int) -> Iterator[RenderableType]:
    """The differences from one baseline, as many per table as there is room for; doubts are left out first."""
    title = f"Against {sanitize(base)} ({block.unit})"
    tables, fit = _side_by_side(compared, width, lambda names: _buckets(title, block, Columns([], names, doubts=True)))
    if not fit:
        tables, _ = _side_by_side(compared, width, lambda names: _buckets(title, block, Columns([], names)))
    yield from tables


def _buckets(title: str, block: Breakdown, columns: Columns) -> RichTable:
    if columns.compared and not columns.doubts:
        title = (
            f"{title}, Δ from {' and '.join(dict.fromkeys(rests_on(block, name) for name in columns.compared))} each"
        )
    table = RichTable(
        title=Text(title), title_justify="left", title_style="bold", box=SIMPLE_HEAD, show_edge=False, padding=(0, 1)
    )
    table.add_column("bucket", no_wrap=True)
    for heading in aligned(columns.names, columns.head):
        table.add_column(Text(heading), justify="right", overflow="ellipsis")
        if columns.shares:
            table.add_column("", justify="right", no_wrap=True, style="dim")
    for name, heading in zip(columns.compared, aligned(columns.compared, columns.head), strict=True):
        head = "Δ" if columns.names and len(columns.compared) == 1 else f"Δ {heading.strip()}"
        table.add_column(Text(head), justify="right", overflow="ellipsis")
        if columns.doubts:
            table.add_column(rests_on(block, name), style="dim", no_wrap=True)
    for key in block.keys:
        table.add_row(*_row(block, key, columns), style="bold" if key == TOTAL else "")
    return table


def _row(block: Breakdown, key: str, columns: Columns) -> Iterator[RenderableType]:
    part = block.part(key)
    yield Text.assemble(("■ ", part.colour), part.label) if part is not None else Text(label(block, key))
    for name in columns.names:
        yield taken(block, key, name)
        if columns.shares:
            yield share(block, key, name)
    for name in columns.compared:
        doubted = doubt(block, key, name)
        delta = change(block, key, name)
        yield Text(
            delta if columns.doubts or not doubted else f"{delta} {mark(block, key, name)}",
            style="dim" if doubted else "",
        )
        if columns.doubts:
            yield certainty(block, key, name)
