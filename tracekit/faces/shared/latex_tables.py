"""Text and tables of LaTeX that fit on the page: text is escaped and breaks lines, columns without room go into another
table below. Widths are those of an article in ten points, and its tables in small print.
"""

import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache

from msgspec import Struct

from tracekit.base.names import sanitize

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


def escape(text: str) -> str:
    """Text that TeX sets as it is, whatever it contains; letters beyond Latin are replaced by their numbers."""
    parts = ("".join(map(_sign, part)) for part in sanitize(text).split("--"))
    return "-{}-".join(parts)  # two hyphens would become a dash


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


def _sign(character: str) -> str:
    if character in _SIGNS:
        return _SIGNS[character]
    return character if _is_set(character) else rf"\texttt{{U+{ord(character):04X}}}"


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
    name_count = _name_count(columns)
    gaps = _GAP * (name_count - 1)
    room = _WIDTH * (_NAMES if name_count < len(columns) else 1) - gaps
    widths = _fitted([column.natural for column in columns[:name_count]], room)
    names: Laid = [*zip(columns[:name_count], widths, strict=True)]
    begun = _width_of(names) - _GAP
    piece, used_width = [*names], begun
    for group in _groups(columns[name_count:]):
        needed = _width_of(group)
        if used_width + needed > _WIDTH and len(piece) > name_count:
            yield _widened(piece)
            piece, used_width = [*names], begun
        piece += group
        used_width += needed
    yield _widened(piece)


def _widened(laid: Laid) -> Laid:
    """The columns, with the remaining room given to those that break their lines."""
    narrowed = sum(width is not None for _, width in laid)
    room = _WIDTH - _width_of(laid) + _GAP
    extra = max(room, 0.0) / max(narrowed, 1)
    return [(column, None if width is None else min(width + extra, column.natural)) for column, width in laid]


def _groups(columns: Sequence[Column]) -> list[Laid]:
    """Groups of columns that are never separated."""
    groups: list[Laid] = []
    for column in columns:
        width = None if column.written or column.natural <= _TEXT_WIDTH else _TEXT_WIDTH
        groups += [] if column.joined and groups else [[]]
        groups[-1].append((column, width))
    return groups


def _width_of(laid: Laid) -> float:
    return sum((width or column.natural) + _GAP for column, width in laid)


def _name_count(columns: Sequence[Column]) -> int:
    """How many columns name a row: the texts before the first figure, or only some of them if there are many."""
    texts = next((k for k, column in enumerate(columns) if column.figure), len(columns))
    room = _WIDTH * (_NAMES if texts < len(columns) else 1)
    fits = sum(min(column.natural, _TEXT_WIDTH / 2) + _GAP for column in columns[:texts]) <= room
    return texts if fits else min(texts, _MAX_NAME_COLUMNS)


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
    kinds = "".join(_kind(*laid_column) for laid_column in laid)
    head = " & ".join(_head(column) for column, _ in laid) + r" \tabularnewline"
    cells = [
        column.written or [escape(text) if width is None else prose(text, width) for text in column.cells]
        for column, width in laid
    ]
    rows = [" & ".join(row) + r" \tabularnewline" for row in zip(*cells, strict=True)]
    if total:
        rows.insert(-1, r"\midrule")
    if _height(laid) > _FLOATING:  # it continues over pages, with its head on each
        top = (r"\toprule", head, r"\midrule")
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


def _height(laid: Laid) -> int:
    """About how many lines the rows take, since not every line is full."""
    lines = ([math.ceil(1.2 * points(text) / width) for text in column.cells] for column, width in laid if width)
    return sum(map(max, zip(*lines, [1] * len(laid[0][0].cells), strict=True)))


def _kind(column: Column, width: float | None) -> str:
    if width is not None:
        ragged = "left" if column.figure else "right"
        return rf">{{\ragged{ragged}}}p{{{width / _WIDTH:.3f}\linewidth}}"
    return "r" if column.figure else "l"


def _head(column: Column) -> str:
    """A heading, in several lines if it is long."""
    stacked = [escape(line) for line in lines_of(column.head, _HEAD)]
    if len(stacked) == 1:
        return stacked[0]
    kind = "r" if column.figure else "l"
    return rf"\begin{{tabular}}[b]{{@{{}}{kind}@{{}}}}" + r" \\ ".join(stacked) + r"\end{tabular}"
