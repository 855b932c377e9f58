"""Tables of the terminal's report: a table too wide for the terminal becomes several, one below the other."""

from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from tracekit.names import short

HEAD = 24  # letters of a variant over a column
# How many letters per line a figure and a text may have, tried in turn: longer ones continue on the next line.
_FOLDS = ((None, None), (24, None), (20, None), (20, 40), (20, 28), (20, 20))


@dataclass(frozen=True)
class Column:
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
    for figure, text in _FOLDS if parallel else ():
        if width_of(table := _table(columns, figure, text)) <= width:
            yield table
            return
    for room in range(len(parallel), 0, -1):
        tables = [
            _table([*fixed, *parallel[start : start + room]], text=_FOLDS[-1][1])
            for start in range(0, len(parallel), room)
        ]
        if room == 1 or all(width_of(table) <= width for table in tables):
            yield from tables
            return
    yield _table(columns)


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
