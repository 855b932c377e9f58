r"""The report as LaTeX: booktabs tables for a paper, to be included by `\input`, which fit on its pages.

Text is escaped and breaks lines, columns without room go into another table below. Widths are those of an article in
ten points, and its tables in small print.
"""

import math
import re
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache, singledispatch

from msgspec import Struct
from msgspec.structs import replace

from tracekit.base.names import sanitize, short
from tracekit.faces import Options, face
from tracekit.faces.shared.cells import grid
from tracekit.faces.shared.wording import certainty, change, label, legend, margins, note_text, rests_on, share, taken
from tracekit.report import Report
from tracekit.report.blocks import Block, Cards, Excerpt, Notes, Sentences, Series, Table
from tracekit.report.breakdown import Breakdown
from tracekit.report.outline import outline

_BARS = 60  # steps that are drawn as bars
_BAR, _BESIDE, _HEIGHT = 1.2, 0.6, 8.0  # points: how wide one is, how far from the next, how high at most
_CHIP = 9.0  # points that the colour of a bucket takes
_NAME = 18  # letters of a variant beside its bars
_SIDE_BY_SIDE = 2  # variants that have room in a table together with their differences
_MAX_PENDING_TABLES = 12  # tables that may wait until LaTeX finds a page for them
_TEXT_SIGNS = ("backslash", "asciitilde", "asciicircum", "less", "greater", "bar", "asciigrave")
_MATHS = {
    "−": "-",
    "×": r"\times",
    "±": r"\pm",
    "·": r"\cdot",
    "Δ": r"\Delta",
    "→": r"\to",
    "≥": r"\ge",
    "≠": r"\ne",
    "≤": r"\le",
    "∼": r"\sim",
}
_SIGNS = {sign: f"\\{sign}" for sign in "&%$#_{}"}
_SIGNS |= {sign: rf"\text{name}{{}}" for sign, name in zip("\\~^<>|`", _TEXT_SIGNS, strict=True)}
_SIGNS |= {sign: f"${maths}$" for sign, maths in _MATHS.items()}
_SIGNS |= {sign: f"{{{sign}}}" for sign in "[*"}  # at the beginning of a row, TeX would take them for its options
_SIGNS |= {"…": r"\ldots{}", "–": "--", "µ": r"\textmu{}", "\u2009": r"\,", "’": "'", '"': "''"}
_LATIN = range(0xC0, 0x180)
_OGONEK = "0328"  # the one accent that TeX's first encoding lacks
_BREAK = r"\allowbreak{}"
_WORD = 80.0  # points; a longer word may break
_PARTING = r"_/.,:;=&|@+)\]}>\-"  # signs after which a word may break
# It may also break after this many letters, and after each letter that is written as its number.
_PIECE = re.compile(rf"[{_PARTING}]+|[^\x00-\u017f]|[^{_PARTING}\u0180-\U0010ffff]{{1,8}}")
# Widths in Computer Modern of ten points, rounded up, in hundredths of a point.
_WIDTHS = {
    letter: width
    for letters, width in (
        ("ijl.,:;!'|I’", 361),
        ("frst()[]-/ ", 400),
        ("acegknopqvxyzuhbd0123456789$_~^`{}\\*", 556),
        ("wABCDEFHKLNOPQRTUVXYZJS", 785),
        ("mM%#&@=+<>×±Δ−GQ", 917),
        ("W…", 1172),
    )
    for letter in letters
}
_DEFAULT_WIDTH = 785
_NUMBER = 6 * 525  # `U+65E5` in letters of equal width
_EM_OF_A_TABLE = 0.925 / 100  # of the print of tables, relative to ten points
_WIDTH = 345.0  # points of a line
_GAP = 12.0  # points between columns
_HEAD = 65.0  # points of a line of a heading
_TEXT_WIDTH = 110.0  # points of a text that is not the name of a row
_NAMES = 0.6  # of the width, for the names of the rows where figures follow
_MAX_NAME_COLUMNS = 4  # columns that name a row, at most
_FLOATING = 40  # lines of a table that stays on one page


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
    rows = options.rows if options.rows is not None or report.subject.study is None else sys.maxsize
    outlined = outline(report, rows, options.full)  # a table of a study is for a paper, which needs all of it
    lines = ["% Made by tracekit. Needs \\usepackage{array,booktabs,longtable,xcolor}, and no other package."]
    for chapter in outlined.chapters:
        if not chapter.leads:
            lines.append(f"\n\\paragraph{{{prose(chapter.title)}}}")
        for entry in chapter.entries:
            has_captions = sum(isinstance(block, Table | Series) for block in entry.blocks) > 1
            for block in entry.blocks:
                title = chapter.title
                if isinstance(block, Table | Series) and has_captions:
                    title += f", {block.name.replace('_', ' ')}"
                lines += ["", *written(block, Page(options.full, entry.rows, entry.subject, title))]
    lines += [f"\n{prose(sentence)}" for sentence in outlined.closing]
    pending_tables = 0
    for number, line in enumerate(lines):
        pending_tables += line == r"\end{table}"
        if pending_tables == _MAX_PENDING_TABLES:
            lines[number] += "\n\\clearpage"
            pending_tables = 0
    return "\n".join(lines) + "\n"


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
    bars = []  # a rule for each step, as high as it is long; one that compiles is grey and as high as the highest
    for line in block.lines:
        top = max(line.usual, default=0) or 1
        rules = []
        for group in line.groups(_BARS):
            if "compiles" in line.marks[group]:
                rules.append(rf"\textcolor{{gray}}{{\rule{{{_BAR}pt}}{{{_HEIGHT:.1f}pt}}}}")
            else:
                longest_ns = max([0, *(value for value in line.values[group] if value is not None)])
                rules.append(rf"\rule{{{_BAR}pt}}{{{longest_ns / top * _HEIGHT:.1f}pt}}")
        bars.append(rf"\kern{_BESIDE}pt".join(rules))
    longest = max((len(line.values) for line in block.lines), default=0)
    columns = [
        Column("", short([line.name for line in block.lines], _NAME)),
        Column("steps", [""] * len(bars), written=bars, drawn=min(longest, _BARS) * (_BAR + _BESIDE)),
        Column("", [legend(line, marked=False) for line in block.lines]),
    ]
    yield from listing(page.caption, columns)


@written.register(Excerpt)
def _(block: Excerpt, page: Page) -> Iterator[str]:
    numbers = range(block.first, block.first + len(block.lines))
    costs = zip(*(margins(block, number) for number in numbers), strict=True)
    bare_lines = [line.lstrip(" ") for line in block.lines]
    source = [
        rf"\texttt{{{'~' * (len(line) - len(bare)) + prose(bare)}}}"
        for line, bare in zip(block.lines, bare_lines, strict=True)
    ]
    columns = [
        *(Column(name, of_line, figure=True) for name, of_line in zip(block.costs, costs, strict=True)),
        Column("line", [str(number) for number in numbers], figure=True),
        Column(block.file, block.lines, written=source),
    ]
    yield from listing(page.caption, columns)


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
    chips = []
    for key, text in zip(block.keys, labels, strict=True):
        colour = part.colour.removeprefix("#").upper() if (part := block.part(key)) else ""
        chip = rf"\textcolor[HTML]{{{colour}}}{{\rule{{5pt}}{{5pt}}}} " if colour else ""
        chips.append(chip + escape(text))
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


def escape(text: str) -> str:
    """Text that TeX sets as it is, whatever it contains; letters beyond Latin are replaced by their numbers."""
    parts = sanitize(text).split("--")  # two hyphens would become a dash
    return "-{}-".join(
        "".join(_SIGNS.get(sign) or (sign if _is_set(sign) else rf"\texttt{{U+{ord(sign):04X}}}") for sign in part)
        for part in parts
    )


def prose(text: str, room: float = _WORD) -> str:
    """The same for text that is broken into lines: an overlong word may break, too."""
    return "".join(
        escape(piece) if points(piece) <= room else _BREAK.join(map(escape, _PIECE.findall(piece)))
        for piece in re.findall(r"\s+|\S+", sanitize(text))
    )


def lines_of(text: str, room: float) -> list[str]:
    """The text in lines that are no wider than the room, as far as it can be broken."""
    words = re.findall(r"\S+\s?", sanitize(text))
    lines = [""]
    for piece in (
        fragment for word in words for fragment in ([word] if points(word) <= room else _PIECE.findall(word))
    ):
        if lines[-1] and points(lines[-1] + piece.rstrip()) > room:
            lines.append("")
        lines[-1] += piece
    return [line.strip() for line in lines]


@lru_cache(10_000)
def points(text: str) -> float:
    """The greatest possible width of the text in a table, points."""
    return (
        sum(
            _WIDTHS.get(character) or (_DEFAULT_WIDTH if _is_set(character) else _NUMBER)
            for character in sanitize(text)
        )
        * _EM_OF_A_TABLE
    )


def _is_set(character: str) -> bool:
    """Whether every TeX engine can set the letter: beyond ASCII, only letters composed of a letter and an accent."""
    if character.isascii() or character in _SIGNS:
        return True
    parts = unicodedata.decomposition(character)
    return ord(character) in _LATIN and bool(parts) and not parts.startswith("<") and _OGONEK not in parts


class Column(Struct, frozen=True):
    """A column as plain text, by which its width is measured; `written` is its TeX, if that differs from the text."""

    head: str
    cells: Sequence[str]
    figure: bool = False
    written: Sequence[str] = ()
    drawn: float = 0.0  # width of drawings in it, points
    joined: bool = False  # never separated from the column before it

    @property
    def natural(self) -> float:
        """The column's width if none of its cells breaks into lines."""
        return max([0.0, *map(points, lines_of(self.head, _HEAD)), *(self.drawn + points(text) for text in self.cells)])


Laid = list[tuple[Column, float | None]]  # columns that stand side by side; those with a width break their lines


def tables(caption: str, columns: Sequence[Column], total: bool = False) -> Iterator[str]:
    """One table, or several one below the other: each begins with the names of its rows. A total is the last row."""
    pieces = [*_pieces(columns)]
    for number, laid in enumerate(pieces, 1):
        yield from _table(f"{caption} ({number} of {len(pieces)})" if len(pieces) > 1 else caption, laid, total)


def listing(caption: str, columns: Sequence[Column]) -> Iterator[str]:
    """One table, whose last column gets the room that the others leave."""
    *other_columns, last = columns
    room = _WIDTH - sum(column.natural + _GAP for column in other_columns)
    laid: Laid = [*((column, None) for column in other_columns), (last, max(room, _TEXT_WIDTH))]
    yield from _table(caption, laid, total=False)


def _pieces(columns: Sequence[Column]) -> Iterator[Laid]:
    """The columns of one table after the other."""
    # The names of a row are the texts before the first figure, or only some of them if there are many.
    name_count = next((k for k, column in enumerate(columns) if column.figure), len(columns))
    room = _WIDTH * (_NAMES if name_count < len(columns) else 1)
    if sum(min(column.natural, _TEXT_WIDTH / 2) + _GAP for column in columns[:name_count]) > room:
        name_count = min(name_count, _MAX_NAME_COLUMNS)
    room = _WIDTH * (_NAMES if name_count < len(columns) else 1) - _GAP * (name_count - 1)
    widths = _fitted([column.natural for column in columns[:name_count]], room)
    names: Laid = [*zip(columns[:name_count], widths, strict=True)]
    groups: list[Laid] = []  # of columns that are never separated
    for column in columns[name_count:]:
        width = None if column.written or column.natural <= _TEXT_WIDTH else _TEXT_WIDTH
        groups += [] if column.joined and groups else [[]]
        groups[-1].append((column, width))
    piece, used_width = [*names], _width_of(names) - _GAP
    for group in groups:
        needed = _width_of(group)
        if used_width + needed > _WIDTH and len(piece) > name_count:
            yield _widened(piece)
            piece, used_width = [*names], _width_of(names) - _GAP
        piece += group
        used_width += needed
    yield _widened(piece)


def _widened(laid: Laid) -> Laid:
    """The columns, with the remaining room given to those that break their lines."""
    narrowed = sum(width is not None for _, width in laid)
    room = _WIDTH - _width_of(laid) + _GAP
    extra = max(room, 0.0) / max(narrowed, 1)
    return [(column, None if width is None else min(width + extra, column.natural)) for column, width in laid]


def _width_of(laid: Laid) -> float:
    return sum((width or column.natural) + _GAP for column, width in laid)


def _fitted(naturals: Sequence[float], room: float) -> list[float | None]:
    """The widths of columns, with the widest narrowed alike until all fit; None for a column with its natural width."""
    remaining, narrow = room, len(naturals)
    for natural in sorted(naturals):
        if natural * narrow > remaining:
            break
        remaining, narrow = remaining - natural, narrow - 1
    widest = remaining / narrow if narrow else room
    return [None if natural <= widest else widest for natural in naturals]


def _table(caption: str, laid: Laid, total: bool) -> Iterator[str]:
    kinds, heads, cells = "", [], []
    for column, width in laid:
        flush = "r" if column.figure else "l"
        ragged = "left" if column.figure else "right"
        kinds += flush if width is None else rf">{{\ragged{ragged}}}p{{{width / _WIDTH:.3f}\linewidth}}"
        stacked = [escape(line) for line in lines_of(column.head, _HEAD)]
        several_lines = rf"\begin{{tabular}}[b]{{@{{}}{flush}@{{}}}}" + r" \\ ".join(stacked) + r"\end{tabular}"
        heads.append(stacked[0] if len(stacked) == 1 else several_lines)
        texts = [escape(text) if width is None else prose(text, width) for text in column.cells]
        cells.append(column.written or texts)
    head = " & ".join(heads) + r" \tabularnewline"
    rows = [" & ".join(row) + r" \tabularnewline" for row in zip(*cells, strict=True)]
    if total:
        rows.insert(-1, r"\midrule")
    # About how many lines each row takes, since not every line is full.
    heights = ([math.ceil(1.2 * points(text) / width) for text in column.cells] for column, width in laid if width)
    if sum(map(max, zip(*heights, [1] * len(cells[0]), strict=True))) > _FLOATING:
        top = (r"\toprule", head, r"\midrule")  # it continues over pages, with its head on each
        yield r"\begingroup\small"
        yield rf"\begin{{longtable}}{{@{{}}{kinds}@{{}}}}"
        yield rf"\caption{{{prose(caption)}}} \tabularnewline"
        yield from (*top, r"\endfirsthead", *top, r"\endhead", r"\bottomrule", r"\endfoot", *rows)
        yield from (r"\end{longtable}", r"\endgroup")
        return
    yield r"\begin{table}[htbp]\centering\small"
    yield rf"\caption{{{prose(caption)}}}"
    yield rf"\begin{{tabular}}{{@{{}}{kinds}@{{}}}}"
    yield from (r"\toprule", head, r"\midrule", *rows, r"\bottomrule", r"\end{tabular}", r"\end{table}")
